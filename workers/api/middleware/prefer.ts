/**
 * `Prefer: wait=n` (RFC 7240): how long an answer may wait for the run to rest. More than the limit is cut to it; a
 * preference that makes no sense is ignored, as that standard asks, never an error.
 */
import { PREFER_WAIT_MAX_S } from "#core/limits.ts";

/** Milliseconds, or null when nothing (valid) was asked. */
export function preferredWait(prefer: string | undefined): number | null {
	for (const preference of (prefer ?? "").split(",")) {
		// parameters of a preference follow a semicolon and mean nothing here
		const found = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;|$)/i.exec(preference);
		// the first of several equal preferences counts
		if (found?.[1] !== undefined) return Math.min(Number(found[1]), PREFER_WAIT_MAX_S) * 1_000;
	}
	return null;
}
