/**
 * Turns what zod found into field errors of the wire contract: JSON Pointers and frozen issues. Never echoes a value of
 * the request: a body may hold a secret, and an answer may be logged. Called by `noun.ts`.
 */
import type * as z from "zod";
import { pointerSegment } from "#core/json.ts";
import type { FieldError, Issue } from "#core/refusal.ts";
import { formInWords, typeInWords } from "#core/registry/read-issue.ts";

type ZodIssue = z.core.$ZodIssue;
/** More errors than this help nobody and make the answer large. */
const ERRORS_MAX = 50;

export function fieldErrors(error: z.ZodError, input: unknown): FieldError[] {
	return error.issues.flatMap((issue) => convert(issue, [], input)).slice(0, ERRORS_MAX);
}

function convert(issue: ZodIssue, base: readonly PropertyKey[], input: unknown): FieldError[] {
	const path = [...base, ...issue.path];
	if (issue.code === "unrecognized_keys") {
		return issue.keys.map((key) => make([...path, key], "unknown_field", "is not a known field", "no such field"));
	}
	const absent = valueAt(input, path) === undefined;
	switch (issue.code) {
		case "invalid_type":
			return [
				absent
					? missing(path, typeInWords(issue.expected))
					: make(path, "type_mismatch", `must be ${typeInWords(issue.expected)}`, typeInWords(issue.expected)),
			];
		case "invalid_value": {
			const expected = issue.values.map((one) => `\`${String(one)}\``).join(", ");
			return [
				absent ? missing(path, expected) : make(path, "enum_out_of_range", `must be one of ${expected}`, expected),
			];
		}
		case "invalid_format":
			return [
				issue.format === "regex"
					? make(path, "pattern_mismatch", "does not have the expected form", formInWords(issue.message))
					: make(path, "format_invalid", `must be a valid ${issue.format}`, issue.format),
			];
		case "too_small":
			return [make(path, "out_of_range", "is too small", `at least ${issue.minimum}${unit(issue.origin)}`)];
		case "too_big":
			return [
				make(
					path,
					issue.origin === "string" ? "too_large" : "out_of_range",
					"is too large",
					`at most ${issue.maximum}${unit(issue.origin)}`,
				),
			];
		case "not_multiple_of":
			return [make(path, "out_of_range", "is not a multiple", `a multiple of ${issue.divisor}`)];
		case "invalid_union":
			return union(issue, path, input, absent);
		default:
			return [make(path, issueOf(issue), "is not valid", issue.message)];
	}
}

/** The branch that nearly fits says more than "no branch fits". */
function union(
	issue: Extract<ZodIssue, { code: "invalid_union" }>,
	path: readonly PropertyKey[],
	input: unknown,
	absent: boolean,
): FieldError[] {
	const options = (issue as { options?: readonly unknown[] }).options;
	if (options !== undefined) {
		const expected = options.map((one) => `\`${String(one)}\``).join(", ");
		return [absent ? missing(path, expected) : make(path, "enum_out_of_range", `must be one of ${expected}`, expected)];
	}
	const [nearest] = issue.errors.toSorted((a, b) => a.length - b.length);
	if (absent || nearest === undefined)
		return [
			make(path, absent ? "required_field_missing" : "schema_violation", absent ? "is required" : "is not valid", ""),
		];
	return nearest.flatMap((one) => convert(one, path, input));
}

/** A refinement may name a frozen issue of its own: `params: {issue}`. */
function issueOf(issue: ZodIssue): Issue {
	const named = issue.code === "custom" ? (issue.params?.issue as Issue | undefined) : undefined;
	return named ?? "schema_violation";
}

const missing = (path: readonly PropertyKey[], expected: string): FieldError =>
	make(path, "required_field_missing", "is required", expected);

function make(path: readonly PropertyKey[], issue: Issue, what: string, expected: string): FieldError {
	const field = path.map((one) => `/${pointerSegment(String(one).slice(0, 128))}`).join("");
	return { error: field === "" ? `the body ${what}` : `\`${field}\` ${what}`, field, issue, expected, hint: "" };
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
	let at = input;
	for (const key of path) {
		if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
		at = (at as Record<PropertyKey, unknown>)[key];
	}
	return at;
}

const unit = (origin: string): string => (origin === "string" ? " characters" : origin === "array" ? " items" : "");
