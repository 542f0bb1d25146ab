/**
 * Reads the JSON text that a guest hands out. The guest is not trusted: too much text, too deep a value and text that is
 * no JSON are refused before anything walks over it.
 */
import { parseJson } from "#core/json.ts";
import { JSON_DEPTH_MAX, SANDBOX_RESULT_MAX_BYTES } from "#core/limits.ts";
import type { RunEnd } from "./executor-api.ts";
import { wellFormedJson } from "./well-formed-json.ts";

export const RESULT_TOO_LARGE: RunEnd = {
	ok: false,
	code: "response_too_large",
	message: `the result has more than ${SANDBOX_RESULT_MAX_BYTES} bytes as JSON`,
};

/** Integers that JavaScript would round come as strings and are named in `notes` (decision 27). */
export function readResult(text: string): RunEnd {
	if (text.length > SANDBOX_RESULT_MAX_BYTES) return RESULT_TOO_LARGE;
	if (depthOf(text) > JSON_DEPTH_MAX) {
		return {
			ok: false,
			code: "invalid_response",
			message: `the result is nested deeper than ${JSON_DEPTH_MAX} levels`,
		};
	}
	const parsed = parseJson(wellFormedJson(text), "string");
	if (!parsed.ok) return { ok: false, code: "invalid_response", message: "the result is not JSON" };
	const notes = parsed.unsafe_integers.map(
		({ pointer }) => `\`${pointer}\` is an integer beyond 2^53 and is given as a string`,
	);
	return { ok: true, result: parsed.value, notes: notes.slice(0, 20) };
}

/** How deep brackets nest outside strings, counted without recursion: parsers and printers of others do recurse. */
function depthOf(text: string): number {
	let depth = 0;
	let deepest = 0;
	for (let at = 0; at < text.length; at++) {
		const code = text.charCodeAt(at);
		if (code === 0x22) {
			for (at++; at < text.length && text.charCodeAt(at) !== 0x22; at++) if (text.charCodeAt(at) === 0x5c) at++;
		} else if (code === 0x5b || code === 0x7b) {
			depth++;
			if (depth > deepest) deepest = depth;
		} else if (code === 0x5d || code === 0x7d) depth--;
	}
	return deepest;
}
