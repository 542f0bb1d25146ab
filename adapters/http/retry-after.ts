/** Reads `Retry-After` (RFC 9110: seconds or a date). Called by the invokers; it waits for nothing. */
import { RETRY_AFTER_MAX_MS } from "#core/limits.ts";

/** Milliseconds from `now` (ms since the epoch), cut to RETRY_AFTER_MAX_MS; undefined when absent or unreadable. */
export function retryAfterMs(value: string | null, now: number): number | undefined {
	if (value === null) return undefined;
	const text = value.trim();
	if (/^\d{1,10}$/.test(text)) return Math.min(Number(text) * 1_000, RETRY_AFTER_MAX_MS);
	// Only a real HTTP date: `Date.parse` alone also takes `-5` and `1.5` for years.
	if (!/^[A-Z][a-z]+, ?\d{1,2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return undefined;
	const at = Date.parse(text);
	return Number.isNaN(at) ? undefined : Math.min(Math.max(at - now, 0), RETRY_AFTER_MAX_MS);
}
