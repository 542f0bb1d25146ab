/**
 * A token bucket for one tool of one tenant (R1, I8), and the pause that a 429 asks for (I2). Whole numbers only: one
 * request is worth 60,000 parts, a millisecond brings `requests_per_minute` of them, so nothing drifts. Called by ToolGate.
 */
import { RETRY_AFTER_MAX_MS } from "../limits.ts";
import type { RateLimit } from "./gate-keys.ts";

const REQUEST_PARTS = 60_000;
/** Keeps the parts within what a double counts exactly; far above what any upstream grants. */
const REQUESTS_MAX = 1_000_000_000;

export type RateBucket = { readonly parts: number; readonly at: number };

export type Take = { readonly ok: true; readonly next: RateBucket } | { readonly ok: false; readonly retry_at: number };

/** One request, or when there is one again. `bucket` is null before the first. A clock that steps back brings nothing. */
export function takeToken(bucket: RateBucket | null, limit: RateLimit, now: number): Take {
	const rate = Math.min(limit.requests_per_minute, REQUESTS_MAX);
	const size = Math.min(limit.burst, REQUESTS_MAX) * REQUEST_PARTS;
	const at = Math.max(now, bucket?.at ?? now);
	const passed = at - (bucket?.at ?? at);
	// A full bucket is reached before the product could leave the exact numbers.
	const parts = bucket === null || passed >= size / rate ? size : Math.min(size, bucket.parts + passed * rate);
	if (parts < REQUEST_PARTS) return { ok: false, retry_at: at + Math.ceil((REQUEST_PARTS - parts) / rate) };
	return { ok: true, next: { parts: parts - REQUEST_PARTS, at } };
}

/** Until when nobody of this tenant calls the tool. A later pause never shortens one; none is longer than a day. */
export function pauseUntil(paused_until: number | null, now: number, pause_ms: number | null): number | null {
	if (pause_ms === null || !(pause_ms > 0)) return paused_until;
	return Math.max(paused_until ?? 0, now + Math.min(Math.ceil(pause_ms), RETRY_AFTER_MAX_MS));
}
