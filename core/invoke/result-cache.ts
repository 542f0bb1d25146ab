/**
 * How long results are kept and which go first (I7). Holds nothing itself: ToolGate keeps the rows and asks here. What may
 * be cached at all is decided in `gate-keys.ts`: declared reads, never a write, never a failure.
 */
import {
	CACHE_NEAR_REALTIME_MS,
	CACHE_REALTIME_MS,
	CACHE_STATIC_MS,
	GATE_KEPT_MAX_BYTES,
	GATE_KEPT_MAX_ENTRIES,
} from "../limits.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";

const TIERS_MS = {
	realtime: CACHE_REALTIME_MS,
	near_realtime: CACHE_NEAR_REALTIME_MS,
	static: CACHE_STATIC_MS,
} as const;

/** Lifetime of a cached result, ms; null when this tool's results are not cached. A declared time wins, up to a day. */
export function cacheTtl(descriptor: ToolDescriptor): number | null {
	const { cache, effect } = descriptor;
	if (cache === undefined || effect !== "read") return null;
	return cache.ttl_seconds === undefined ? TIERS_MS[cache.tier] : Math.min(cache.ttl_seconds * 1_000, CACHE_STATIC_MS);
}

export type Kept = {
	readonly key: string;
	/** A cached copy costs a call when it goes, a snapshot a fallback, a claim's result the proof of what was done. */
	readonly kind: "cache" | "snapshot" | "claim";
	readonly bytes: number;
	/** Order of use: greater is later. */
	readonly used: number;
	readonly expires_at: number;
};

const WORTH: Record<Kept["kind"], number> = { cache: 0, snapshot: 1, claim: 2 };

/**
 * Which entries go so that one of `bytes` under `key` fits: what has expired, what it replaces, then the least worth and
 * least recently used. An entry that could only be had at the cost of a worthier one does not fit.
 */
export function makeRoom(
	kept: readonly Kept[],
	incoming: Pick<Kept, "key" | "kind" | "bytes">,
	now: number,
	limits = { entries: GATE_KEPT_MAX_ENTRIES, bytes: GATE_KEPT_MAX_BYTES },
): { readonly fits: boolean; readonly drop: readonly string[] } {
	const gone = kept.filter((entry) => entry.expires_at <= now || entry.key === incoming.key);
	const drop = gone.map(({ key }) => key);
	const stay = kept
		.filter((entry) => !gone.includes(entry))
		.sort((a, b) => WORTH[a.kind] - WORTH[b.kind] || a.used - b.used);
	let bytes = stay.reduce((sum, entry) => sum + entry.bytes, incoming.bytes);
	let entries = stay.length + 1;
	const out: string[] = [];
	for (const entry of stay) {
		if (bytes <= limits.bytes && entries <= limits.entries) break;
		if (WORTH[entry.kind] > WORTH[incoming.kind]) break;
		out.push(entry.key);
		bytes -= entry.bytes;
		entries--;
	}
	const fits = bytes <= limits.bytes && entries <= limits.entries;
	return { fits, drop: fits ? [...drop, ...out] : drop };
}
