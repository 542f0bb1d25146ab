/**
 * The shape check's findings as named errors: one per field, every unknown member by its own pointer. Called by
 * `register.ts`.
 */
import { atPointer, type JsonObject, pointerSegment } from "../json.ts";
import type { FieldError, Issue } from "../refusal.ts";

export function fault(field: string, error: string, expected: string, issue: Issue, hint = ""): FieldError {
	return { error, field, issue, expected, hint };
}

const TYPES: Readonly<Record<string, string>> = { record: "an object", object: "an object", int: "a whole number" };
/** The name of a type as people say it; the checker's own words (`record`, `int`) are nobody else's. */
export const typeInWords = (name: string): string =>
	TYPES[name] ?? (/^[aeiou]/.test(name) ? `an ${name}` : `a ${name}`);

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
	const typed = details.expected === undefined ? undefined : typeInWords(details.expected);
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
				String(typed ?? details.values?.join(", ") ?? "a value"),
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
	// A pattern's message is what it wants, in words; the checker's own would show the pattern.
	const form = issue.code === "invalid_format" ? formInWords(issue.message) : undefined;
	const expected = details.values?.map(String).join(", ") ?? typed ?? form ?? "see docs/tools.md";
	const said =
		issue.code === "invalid_type"
			? `must be ${typed}`
			: form === undefined
				? plain(issue.message)
				: "does not have the expected form";
	return [fault(field, said, expected, kinds[issue.code] ?? "schema_violation")];
}

export const formInWords = (message: string): string =>
	message.startsWith("Invalid ") ? "another form, see /openapi.json" : message;

/** Messages start in lower case and end without a stop. */
const plain = (message: string): string =>
	(message.charAt(0).toLowerCase() + message.slice(1)).replace(/\.$/, "").slice(0, 300);
