/**
 * JSON text between host and guest, in both directions: valid UTF-8 and no half of a surrogate pair, neither raw nor
 * escaped. Half a pair would come out of a guest as other bytes than went in, and has no canonical JSON (RFC 8785).
 */
import { wellFormed } from "#core/json.ts";

/** An escaped backslash, a whole pair, or half of one: only the last is replaced. */
const SURROGATES = /\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\ud[89a-f][0-9a-f]{2}/gi;
const HALF_LENGTH = 6;

export function wellFormedJson(text: string): string {
	return wellFormed(text).replace(SURROGATES, (found) => (found.length === HALF_LENGTH ? "\ufffd" : found));
}
