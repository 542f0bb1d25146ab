import { describe, expect, it } from "vitest";
import type { JsonObject } from "../json.ts";
import { importSchema } from "./import-schema.ts";
import { compileValidator } from "./validator.ts";

const fields = (schema: unknown): string[] => importSchema(schema as JsonObject, "").errors.map((error) => error.field);
const parse = (text: string): JsonObject => JSON.parse(text) as JsonObject;

describe("importSchema", () => {
	it.each([
		["$dynamicRef", { properties: { a: { $dynamicRef: "#x" } } }, "/properties/a/$dynamicRef"],
		["$dynamicAnchor", { $dynamicAnchor: "x" }, "/$dynamicAnchor"],
		["$vocabulary", { $vocabulary: {} }, "/$vocabulary"],
		["$recursiveRef", { $recursiveRef: "#" }, "/$recursiveRef"],
		["$anchor", { $anchor: "x" }, "/$anchor"],
		["a remote $ref", { properties: { a: { $ref: "https://example.com/schema" } } }, "/properties/a/$ref"],
		["a relative $ref", { $ref: "other.json#/x" }, "/$ref"],
		["a dangling $ref", { properties: { a: { $ref: "#/$defs/none" } } }, "/properties/a/$ref"],
		[
			"a $ref into a value",
			{ properties: { a: { $ref: "#/default" } }, default: { type: "string" } },
			"/properties/a/$ref",
		],
		["a $ref by prototype", { properties: { a: { $ref: "#/constructor" } } }, "/properties/a/$ref"],
		["a nested $id", { properties: { a: { $id: "https://example.com/" } } }, "/properties/a/$id"],
		["another dialect", { $schema: "http://json-schema.org/draft-04/schema#" }, "/$schema"],
		["items as an array", { items: [{}] }, "/items"],
		["dependencies", { dependencies: {} }, "/dependencies"],
		["a type that is none", { type: "strnig" }, "/type"],
		["required that is not a list", { required: true }, "/required"],
		["required twice the same", { required: ["a", "a"] }, "/required"],
		["an empty enum", { enum: [] }, "/enum"],
		["properties as a list", { properties: [] }, "/properties"],
		["a sub-schema that is none", { properties: { a: 5 } }, "/properties/a"],
		["an empty anyOf", { anyOf: [] }, "/anyOf"],
		["a negative length", { minLength: -1 }, "/minLength"],
		["multipleOf 0", { multipleOf: 0 }, "/multipleOf"],
		["a pattern that runs away", { properties: { a: { pattern: "^(a+)+$" } } }, "/properties/a/pattern"],
		["a property pattern that runs away", { patternProperties: { "^(a+)+$": {} } }, "/patternProperties/^(a+)+$"],
		["a pattern that is none", { pattern: "[" }, "/pattern"],
		["an unknown danger", { properties: { a: { "x-belay-kind": "fire" } } }, "/properties/a/x-belay-kind"],
		["itself in place", { $ref: "#" }, ""],
		[
			"itself in place by allOf",
			{ $defs: { a: { allOf: [{ $ref: "#/$defs/b" }] }, b: { anyOf: [{ $ref: "#/$defs/a" }] } } },
			"/$defs/a",
		],
	])("refuses %s", (_, schema, field) => {
		expect(fields(schema)).toContain(field);
	});

	it("names all errors, not the first", () => {
		expect(fields({ type: "x", required: 1, properties: { a: { type: 5 } } })).toEqual([
			"/type",
			"/required",
			"/properties/a/type",
		]);
	});

	it("refuses depth and size beyond the limits without overflowing", () => {
		let deep: JsonObject = {};
		for (let i = 0; i < 5_000; i += 1) deep = { items: deep };
		expect(fields(deep).length).toBe(1);
		const wide = { properties: Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`p${i}`, {}])) };
		expect(fields(wide).length).toBe(1);
	});

	it("accepts recursion through properties and items", () => {
		expect(
			fields({ type: "object", properties: { reply: { $ref: "#" }, all: { type: "array", items: { $ref: "#" } } } }),
		).toEqual([]);
	});

	it("accepts references with escapes, and drops what the validator would misread", () => {
		const { schema, errors, warnings } = importSchema(
			{
				$id: "https://example.com/x",
				$defs: { "a b/c": { type: "string" } },
				properties: { x: { $ref: "#/$defs/a%20b~1c" }, y: { format: "no-such" }, z: { format: "toString" } },
			} as JsonObject,
			"",
		);
		expect(errors).toEqual([]);
		expect(warnings.length).toBe(2);
		expect(schema).not.toHaveProperty("$id");
		const validate = compileValidator(schema);
		expect(validate({ x: "a", y: "b", z: "c" })).toEqual([]);
		expect(validate({ x: 1 }).map((error) => error.issue)).toEqual(["type_mismatch"]);
	});
});

describe("compileValidator", () => {
	const issues = (schema: unknown, value: unknown): string[] => {
		const imported = importSchema(schema as JsonObject, "");
		expect(imported.errors).toEqual([]);
		return compileValidator(imported.schema)(value as JsonObject).map((error) => `${error.field} ${error.issue}`);
	};

	it("names every missing field and every wrong type", () => {
		const schema = {
			type: "object",
			properties: { a: { type: "string" }, b: { type: "integer" }, c: { type: "array", items: { type: "number" } } },
			required: ["a", "b", "d"],
		};
		expect(issues(schema, { a: 1, c: [1, "x", true] })).toEqual([
			"/b required_field_missing",
			"/d required_field_missing",
			"/a type_mismatch",
			"/c/1 type_mismatch",
			"/c/2 type_mismatch",
		]);
	});

	it.each([
		[{ properties: { a: { enum: ["x", "y"] } } }, { a: "z" }, "/a enum_out_of_range"],
		[{ properties: { a: { const: 1 } } }, { a: 2 }, "/a enum_out_of_range"],
		[{ properties: { a: { minimum: 1 } } }, { a: 0 }, "/a out_of_range"],
		[{ properties: { a: { maxLength: 2 } } }, { a: "abc" }, "/a out_of_range"],
		[{ properties: { a: { pattern: "^x$" } } }, { a: "y" }, "/a pattern_mismatch"],
		[{ properties: { a: { format: "date" } } }, { a: "2026-02-30" }, "/a format_invalid"],
		[{ properties: { a: { uniqueItems: true } } }, { a: [1, 1] }, "/a not_unique"],
		[{ properties: { a: {} }, additionalProperties: false }, { b: 1 }, "/b unknown_field"],
		[{ dependentRequired: { a: ["b"] } }, { a: 1 }, "/b required_field_missing"],
		[{ properties: { a: { anyOf: [{ type: "string" }, { type: "integer" }] } } }, { a: true }, "/a schema_violation"],
		[{ properties: { a: { oneOf: [{ type: "string" }, { maxLength: 3 }] } } }, { a: "x" }, "/a schema_violation"],
		[{ properties: { a: { not: { type: "string" } } } }, { a: "x" }, "/a schema_violation"],
		[{ properties: { a: { contains: { type: "string" } } } }, { a: [1] }, "/a schema_violation"],
		[{ properties: { "a/b~c d%": { type: "string" } } }, { "a/b~c d%": 1 }, "/a~1b~0c d% type_mismatch"],
		// biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
		[{ if: { required: ["a"] }, then: { required: ["b"] } }, { a: 1 }, "/b required_field_missing"],
	])("%j", (schema, value, expected) => {
		expect(issues(schema, value)).toEqual([expected]);
	});

	it("does not call a declared field unknown because it failed", () => {
		expect(issues({ properties: { a: { type: "string" } }, unevaluatedProperties: false }, { a: 1, b: 2 })).toEqual([
			"/a type_mismatch",
			"/b unknown_field",
		]);
	});

	it("tells what was expected from the schema, and never quotes the value", () => {
		const { schema } = importSchema(
			{
				properties: { key: { type: "string", pattern: "^k_", examples: ["k_1"] }, n: { type: "integer" } },
				required: ["key"],
			} as JsonObject,
			"",
		);
		const validate = compileValidator(schema);
		const errors = [...validate({ key: "s3cr3t-value", n: "s3cr3t-value" }), ...validate({})];
		expect(JSON.stringify(errors)).not.toContain("s3cr3t");
		expect(errors[0]).toEqual({
			error: "`key` does not match the pattern",
			field: "/key",
			issue: "pattern_mismatch",
			expected: 'text matching "^k_"',
			hint: 'for example "k_1"',
		});
		expect(errors[2]).toMatchObject({
			field: "/key",
			issue: "required_field_missing",
			hint: 'for example "key": "k_1"',
		});
	});

	it("treats prototype names as plain names (S05)", () => {
		const schema = parse(
			'{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"},"toString":{"type":"string"}},"required":["__proto__","constructor","toString","hasOwnProperty"],"additionalProperties":false}',
		);
		expect(issues(schema, {})).toEqual([
			"/__proto__ required_field_missing",
			"/constructor required_field_missing",
			"/toString required_field_missing",
			"/hasOwnProperty required_field_missing",
		]);
		expect(issues(schema, parse('{"__proto__":1,"constructor":1,"toString":1,"hasOwnProperty":1}'))).toEqual([
			"/__proto__ type_mismatch",
			"/constructor type_mismatch",
			"/toString type_mismatch",
			"/hasOwnProperty unknown_field",
		]);
		expect(issues({ type: "object", additionalProperties: false }, parse('{"__proto__":{"polluted":1}}'))).toEqual([
			"/__proto__ unknown_field",
		]);
		expect(({} as JsonObject).polluted).toBeUndefined();
	});

	it("bounds a recursive schema whose branches double the work with each level", () => {
		const schema = {
			$defs: {
				n: {
					anyOf: [
						{ properties: { a: { $ref: "#/$defs/n" } } },
						{ properties: { a: { $ref: "#/$defs/n" } } },
						{ properties: { a: { $ref: "#/$defs/n" } } },
					],
				},
			},
			$ref: "#/$defs/n",
		};
		let value: JsonObject = {};
		for (let i = 0; i < 60; i += 1) value = { a: value };
		const start = performance.now();
		expect(issues(schema, value)).toEqual([" too_large"]);
		expect(performance.now() - start).toBeLessThan(2_000);
		expect(issues(schema, { a: { a: {} } })).toEqual([]);
	});

	it("bounds uniqueItems, long texts under a quadratic pattern, and long names under patterns", () => {
		const start = performance.now();
		expect(
			issues({ properties: { a: { uniqueItems: true } } }, { a: Array.from({ length: 50_000 }, (_, i) => i) }),
		).toEqual([" too_large"]);
		expect(issues({ anyOf: [{ properties: { a: { pattern: "[a-z]+0" } } }] }, { a: "a".repeat(200_000) })).toEqual([
			"/a too_large",
		]);
		expect(issues({ patternProperties: { "^[a-z]+$": {} } }, { ["a".repeat(2_000)]: 1 })).toEqual([" too_large"]);
		expect(performance.now() - start).toBeLessThan(500);
	});

	it("bounds the texts under a quadratic pattern together, and many errors", () => {
		const item = { type: "object", properties: { x: { type: "string", pattern: "[a-z]+0" } } };
		const start = performance.now();
		const long = Array.from({ length: 16 }, () => ({ x: "a".repeat(16_000) }));
		expect(issues({ properties: { s: { type: "array", items: item } } }, { s: long })).toEqual(["/s/1/x too_large"]);
		const wrong = Array.from({ length: 20_000 }, () => "x");
		expect(issues({ properties: { s: { items: { type: "integer" } } } }, { s: wrong })).toHaveLength(20);
		expect(performance.now() - start).toBeLessThan(1_500);
	});

	it("keeps a field that is called like the counter's keyword", () => {
		expect(issues({ properties: { $recursiveRef: { type: "string" } } }, { $recursiveRef: 1 })).toEqual([
			"/$recursiveRef type_mismatch",
		]);
	});
});
