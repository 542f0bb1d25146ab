/**
 * What this isolate remembers of API keys, so that a busy client costs one look-up in KEY_CACHE_TTL_MS. Known and unknown
 * keys are kept apart: a flood of guesses pushes out other guesses only. Holds hashes, never keys. Both sides are bounded.
 */
import { KEY_CACHE_TTL_MS } from "#core/limits.ts";
import type { Caller } from "#core/principal.ts";

/** About 1 KB each. */
const KNOWN_MAX_KEYS = 5_000;
const UNKNOWN_MAX_KEYS = 5_000;
/** Short: a key that was just made in another isolate must work at once. */
const UNKNOWN_TTL_MS = 1_000;

type Entry = { readonly caller: Caller | null; readonly until: number };

export class KeyCache {
	readonly #known = new Map<string, Entry>();
	readonly #unknown = new Map<string, Entry>();

	/** The caller of a key; null for one known not to exist; undefined when nothing (fresh) is known. */
	get(hash: string, now: number): Caller | null | undefined {
		const entry = this.#known.get(hash) ?? this.#unknown.get(hash);
		return entry === undefined || entry.until <= now ? undefined : entry.caller;
	}

	/** `expires_at` (ms since the epoch) ends an entry early: a key must not outlive itself in a cache. */
	put(hash: string, caller: Caller | null, now: number, expires_at = Number.POSITIVE_INFINITY): void {
		if (caller === null) {
			this.#known.delete(hash);
			keep(this.#unknown, hash, { caller, until: now + UNKNOWN_TTL_MS }, UNKNOWN_MAX_KEYS);
		} else {
			this.#unknown.delete(hash);
			keep(this.#known, hash, { caller, until: Math.min(now + KEY_CACHE_TTL_MS, expires_at) }, KNOWN_MAX_KEYS);
		}
	}

	/** After a change of keys, roles or bindings through this isolate; other isolates see it within KEY_CACHE_TTL_MS. */
	clear(): void {
		this.#known.clear();
		this.#unknown.clear();
	}
}

function keep(map: Map<string, Entry>, hash: string, entry: Entry, max: number): void {
	// insertion order is age: the oldest goes first
	map.delete(hash);
	map.set(hash, entry);
	if (map.size <= max) return;
	const [oldest] = map.keys();
	if (oldest !== undefined) map.delete(oldest);
}

/** One per isolate; keyed by the key's hash, so tenants cannot meet in it. */
export const keyCache = new KeyCache();
