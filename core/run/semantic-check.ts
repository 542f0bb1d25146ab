/**
 * The verdict of a tool's own check (`semantic_check`, V2): a program of the tool's author looks at the normalized arguments
 * and answers with what is wrong. It runs in the sandbox, so the shell runs it before the step; here its answer is read. The
 * answer is a guest's word: whatever is not a list of `{field, message}` is a check that failed, and that never passes.
 */
import { cutText, wellFormedJson } from "../data/well-formed.ts";
import { type Json, own } from "../json.ts";
import { SEMANTIC_ERRORS_MAX, SEMANTIC_FIELD_MAX_CHARS, SEMANTIC_MESSAGE_MAX_CHARS } from "../limits.ts";
import type { FieldError } from "../refusal.ts";

export type SemanticVerdict =
	| { readonly kind: "held" }
	| { readonly kind: "violated"; readonly errors: readonly FieldError[] }
	/** It did not run to its end, or answered something else; `code` is for the evidence. */
	| { readonly kind: "failed"; readonly code: string };

/** By `input_hash`, which covers definition and arguments: a verdict on anything else is not found. */
export type SemanticVerdicts = ReadonlyMap<string, SemanticVerdict>;

/** Control characters, line separators, and what turns the direction of text around. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]+/gu;

/** Reads what the program returned. */
export function readVerdict(result: Json): SemanticVerdict {
	if (!Array.isArray(result)) return { kind: "failed", code: "invalid_response" };
	const errors: FieldError[] = [];
	// All are looked at: one that is wrong further down says that the program is not to be believed.
	for (const item of result) {
		const field = own(item, "field");
		const message = own(item, "message");
		if (typeof field !== "string" || typeof message !== "string") return { kind: "failed", code: "invalid_response" };
		if (errors.length < SEMANTIC_ERRORS_MAX) errors.push(violation(field, message));
	}
	return errors.length === 0 ? { kind: "held" } : { kind: "violated", errors };
}

function violation(field: string, message: string): FieldError {
	const at = clean(field, SEMANTIC_FIELD_MAX_CHARS);
	const said = clean(message, SEMANTIC_MESSAGE_MAX_CHARS) || "the tool's own check does not hold";
	return {
		error: said,
		field: at === "" || at.startsWith("/") ? at : `/${at}`,
		issue: "semantic_violation",
		expected: "arguments that the tool's own check accepts",
		hint: said,
	};
}

const clean = (text: string, max: number): string =>
	// Cut first: the answer may be 2 MiB, and no more of it is worth looking at.
	cutText(
		String(wellFormedJson(text.slice(0, max * 2)))
			.replace(UNPRINTABLE, " ")
			.trim(),
		max,
		() => 1,
	);
