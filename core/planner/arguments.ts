/**
 * Reads the argument text of a call as the planner sent it, without repairing it: what was guessed must not run. Says
 * precisely what to send instead, and never quotes the text, which may hold secrets. Called by core/run before
 * normalize, and by `conversation.ts` to decide what may be replayed.
 *
 * A repeated key keeps the last value (as JSON.parse does everywhere); the frozen arguments that an approver sees are
 * made from the parsed value, so nobody approves the first and runs the last.
 */
import { findIllFormed, utf8Bytes } from "../data/well-formed.ts";
import { isJsonObject, type JsonObject, parseJson } from "../json.ts";
import { ARGUMENTS_MAX_BYTES, JSON_DEPTH_MAX } from "../limits.ts";
import type { FieldError, Issue } from "../refusal.ts";

type ArgumentsRead =
	| { readonly ok: true; readonly value: JsonObject }
	| {
			readonly ok: false;
			readonly reason: "arguments_not_json" | "integer_out_of_range";
			readonly errors: FieldError[];
	  };

/** @param text JSON text; null, blank or `null` stands for `{}` (T01) */
export function readArguments(text: string | null | undefined): ArgumentsRead {
	const source = (text ?? "").trim();
	if (source === "" || source === "null") return { ok: true, value: {} };
	if (utf8Bytes(source) > ARGUMENTS_MAX_BYTES) {
		return refused(
			"",
			"too_large",
			"arguments are too large",
			`at most ${ARGUMENTS_MAX_BYTES} bytes`,
			"send less, or in several calls",
		);
	}
	// Before parsing: recursion over what comes out must stay far from the stack limit.
	if (textDepth(source) > JSON_DEPTH_MAX) {
		return refused(
			"",
			"too_deep",
			"arguments are nested too deep",
			`at most ${JSON_DEPTH_MAX} levels`,
			"flatten the arguments",
		);
	}
	const parsed = parseJson(source);
	if (!parsed.ok) {
		return refused(
			"",
			"not_json",
			`arguments are ${parsed.message}`,
			"one JSON object",
			"send the whole call again as valid JSON",
		);
	}
	if (!isJsonObject(parsed.value)) {
		const twice = typeof parsed.value === "string" && parsed.value.trimStart().startsWith("{");
		const hint = twice
			? "the object is encoded twice: send it as JSON once"
			: "put the values into an object by parameter name";
		return refused("", "type_mismatch", "arguments are not a JSON object", "one JSON object", hint);
	}
	// Canonical JSON refuses a lone surrogate, and UTF-8 would make two different ones hash alike.
	const illFormed = findIllFormed(parsed.value);
	if (illFormed !== undefined) {
		return refused(
			illFormed,
			"format_invalid",
			"text holds half a character",
			"well-formed Unicode",
			"send the character whole or leave it out",
		);
	}
	if (parsed.unsafe_integers.length > 0) {
		const errors = parsed.unsafe_integers.slice(0, 20).map(({ pointer }) => ({
			error: "the number is too large to be held exactly",
			field: pointer,
			issue: "integer_out_of_range" as const,
			expected: "an integer between -(2^53-1) and 2^53-1",
			hint: "send as string",
		}));
		return { ok: false, reason: "integer_out_of_range", errors };
	}
	return { ok: true, value: parsed.value };
}

function refused(field: string, issue: Issue, error: string, expected: string, hint: string): ArgumentsRead {
	return { ok: false, reason: "arguments_not_json", errors: [{ error, field, issue, expected, hint }] };
}

/** How deep brackets nest outside of strings. On text that is no JSON it may overstate, never understate what parses. */
export function textDepth(text: string): number {
	let depth = 0;
	let most = 0;
	let quoted = false;
	for (let at = 0; at < text.length; at++) {
		const unit = text.charCodeAt(at);
		if (quoted) {
			if (unit === 0x5c) at += 1;
			else if (unit === 0x22) quoted = false;
		} else if (unit === 0x22) quoted = true;
		else if (unit === 0x7b || unit === 0x5b) most = Math.max(most, ++depth);
		else if (unit === 0x7d || unit === 0x5d) depth -= 1;
	}
	return most;
}
