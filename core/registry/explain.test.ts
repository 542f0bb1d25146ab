/** What a planner reads to repair a call (V4, T13): the branch that was meant, the language of the user, never the value. */
import { describe, expect, it } from "vitest";
import type { Json, JsonObject } from "../json.ts";
import type { Locale } from "./explain-words.ts";
import { importSchema } from "./import-schema.ts";
import { compileValidator } from "./validator.ts";

const errorsOf = (schema: JsonObject, value: Json, locale?: Locale) => {
	const imported = importSchema(schema, "");
	expect(imported.errors).toEqual([]);
	return compileValidator(imported.schema)(value, locale);
};
const issues = (schema: JsonObject, value: Json): string[] =>
	errorsOf(schema, value).map((error) => `${error.field} ${error.issue}`);

const branch = (type: string, properties: JsonObject): JsonObject => ({
	type: "object",
	properties: { type: { const: type }, ...properties },
	required: ["type", ...Object.keys(properties)],
	additionalProperties: false,
});
const PAYMENT = (keyword: "anyOf" | "oneOf"): JsonObject => ({
	$defs: { iban: branch("iban", { iban: { type: "string", minLength: 15 } }) },
	properties: {
		pay: { [keyword]: [branch("card", { number: { type: "string" } }), { $ref: "#/$defs/iban" }, { type: "null" }] },
	},
});

describe.each(["anyOf", "oneOf"] as const)("%s", (keyword) => {
	const schema = PAYMENT(keyword);

	it.each([
		[{ type: "card", number: 5 }, ["/pay/number type_mismatch"]],
		[{ type: "iban", iban: "DE" }, ["/pay/iban out_of_range"]],
		[{ type: "iban" }, ["/pay/iban required_field_missing"]],
		[{ type: "iban", iban: "DE89370400440532013000", bic: "x" }, ["/pay/bic unknown_field"]],
		[{ number: "4" }, ["/pay/type required_field_missing"]],
		[{ type: "crad", number: "4" }, ["/pay/type enum_out_of_range"]],
		[7, ["/pay schema_violation"]],
	])("tells what is wrong with %j by the branch that was meant", (pay, expected) => {
		expect(issues(schema, { pay } as Json)).toEqual(expected);
	});

	it("names all tags when none was met", () => {
		const [error] = errorsOf(schema, { pay: { type: "crad" } });
		expect(error).toMatchObject({ field: "/pay/type", expected: 'one of "card", "iban"' });
	});

	it("follows the branch that was meant into a branch inside", () => {
		const nested = {
			[keyword]: [
				{ type: "string" },
				{ type: "object", properties: { to: PAYMENT(keyword).properties?.["pay" as never] ?? true } },
			],
			$defs: PAYMENT(keyword).$defs,
		} as JsonObject;
		expect(issues(nested, { to: { type: "card", number: 5 } })).toEqual(["/to/number type_mismatch"]);
	});

	it("says only that nothing fits when two branches are equally near", () => {
		expect(issues({ [keyword]: [{ required: ["a"] }, { required: ["b"] }] } as JsonObject, {})).toEqual([
			" schema_violation",
		]);
	});
});

it("does not blame a branch when several fit", () => {
	const schema = { oneOf: [{ type: "string" }, { maxLength: 3 }, { type: "integer" }] };
	expect(issues(schema, "x")).toEqual([" schema_violation"]);
	expect(issues({ oneOf: [...schema.oneOf].reverse() }, "x")).toEqual([" schema_violation"]);
});

it("keeps the branches of many items apart, in time", () => {
	const schema = {
		items: { anyOf: [branch("a", { v: { type: "string" } }), branch("b", { v: { type: "integer" } })] },
	};
	const start = performance.now();
	const found = issues(
		schema,
		Array.from({ length: 5_000 }, (_, i) => (i % 2 === 0 ? { type: "a", v: 1 } : { type: "b", v: "x" })),
	);
	expect(found.slice(0, 3)).toEqual(["/0/v type_mismatch", "/1/v type_mismatch", "/2/v type_mismatch"]);
	expect(performance.now() - start).toBeLessThan(2_000);
});

it("speaks the user's language, with the schema's own examples and the contract's own words", () => {
	const schema = {
		properties: {
			date: { type: "string", format: "date", examples: ["2026-11-30"] },
			n: { type: "integer", minimum: 1 },
			c: { enum: ["a", "b"] },
		},
		required: ["date"],
		additionalProperties: false,
	};
	expect(errorsOf(schema, { n: 0, c: "z", x: 1 }, "zh")).toEqual([
		{
			error: "`date` 缺失",
			field: "/date",
			issue: "required_field_missing",
			expected: "string (date)",
			hint: '例如 "date": "2026-11-30"',
		},
		{ error: "`n` 太小", field: "/n", issue: "out_of_range", expected: "至少 1", hint: "" },
		{ error: "`c` 不是允许的值", field: "/c", issue: "enum_out_of_range", expected: '以下之一 "a", "b"', hint: "" },
		{ error: "`x` 不是已知字段", field: "/x", issue: "unknown_field", expected: "以下之一 date, n, c", hint: "请去掉" },
	]);
	expect(errorsOf(schema, {})).toEqual(errorsOf(schema, {}, "en"));
});
