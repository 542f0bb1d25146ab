/**
 * The shape check's findings as named errors: one per field, every unknown member by its own pointer. Called by
 * `register.ts`.
 */
import { atPointer, type JsonObject, pointerSegment } from "../json.ts";
import type { FieldError, Issue } from "../refusal.ts";

export function fault(field: string, error: string, expected: string, issue: Issue, hint = ""): FieldError {
	return { error, field, issue, expected, hint };
}

type ZodIssue = {
	readonly code: string;
	readonly path: readonly PropertyKey[];
	readonly message: string;
	readonly input?: unknown;
};

/** One zod issue as named errors: every unknown member by its own pointer. */
export function readIssue(issue: ZodIssue, input: JsonObject): FieldError[] {
	const field = issue.path.map((part) => `/${pointerSegment(String(part))}`).join("");
	const details = issue as ZodIssue & { keys?: string[]; expected?: string; values?: unknown[]; errors?: ZodIssue[][] };
	if (issue.code === "unrecognized_keys")
		return (details.keys ?? []).map((key) =>
			fault(
				`${field}/${pointerSegment(key)}`,
				`\`${key.slice(0, 64)}\` is not a known field`,
				"no such field",
				"unknown_field",
				"leave it out",
			),
		);
	if (atPointer(input, field) === undefined)
		return [
			fault(
				field,
				`\`${field.slice(1)}\` is missing`,
				String(details.expected ?? details.values?.join(", ") ?? "a value"),
				"required_field_missing",
			),
		];
	const kinds: { [code: string]: Issue } = {
		invalid_type: "type_mismatch",
		invalid_value: "enum_out_of_range",
		invalid_union: "schema_violation",
		invalid_format: "pattern_mismatch",
		too_small: "out_of_range",
		too_big: "out_of_range",
	};
	const expected = details.values?.map(String).join(", ") ?? details.expected ?? "see the descriptor's documentation";
	return [fault(field, plain(issue.message), String(expected), kinds[issue.code] ?? "schema_violation")];
}

/** Messages start in lower case and end without a stop. */
const plain = (message: string): string =>
	(message.charAt(0).toLowerCase() + message.slice(1)).replace(/\.$/, "").slice(0, 300);
