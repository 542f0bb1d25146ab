/**
 * Schema import and validator against tests nobody here wrote (V1, yardstick 2): the mandatory part of the
 * JSON-Schema-Test-Suite, and two other validators on every schema times every instance of it. What import refuses by
 * declared limits is counted by its reason; what it takes must be judged as the suite says.
 */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import ZSchema from "z-schema";
import type { Json, JsonObject } from "../json.ts";
import { importSchema } from "./import-schema.ts";
import { compileValidator } from "./validator.ts";

type Group = {
	readonly file: string;
	readonly description: string;
	readonly schema: Json;
	readonly tests: readonly { readonly description: string; readonly data: Json; readonly valid: boolean }[];
};
const groups = readFileSync(new URL("../../tests/schema-suite/draft2020-12.jsonl", import.meta.url), "utf8")
	.trim()
	.split("\n")
	.map((line) => JSON.parse(line) as Group);

/** A descriptor's schema is an object; `true` and `false` are judged one level down. */
const asObject = (schema: Json): JsonObject =>
	(typeof schema === "boolean" ? { allOf: [schema] } : schema) as JsonObject;
const imported = groups.map((group) => ({ group, ...importSchema(asObject(group.schema), "") }));
const taken = imported.filter(({ errors }) => errors.length === 0);

/** Pinned: a change of either way of these numbers is looked at by a person. */
const PASSED = 1_039;
const REFUSED = {
	"`$ref` leads out of the schema": 91,
	"`$id` inside a schema is not supported": 25,
	"`$dynamicAnchor` is not supported, use `$defs`": 8,
	"`$schema` names another dialect": 5,
	"`$anchor` is not supported, use `$ref` with `#/…`": 4,
	"`$dynamicRef` is not supported, use `$ref`": 4,
};

describe("JSON-Schema-Test-Suite, draft 2020-12, mandatory", () => {
	it("is judged as the suite says, wherever the schema is taken", () => {
		expect(groups.length).toBe(350);
		let passed = 0;
		const wrong: string[] = [];
		for (const { group, schema } of taken) {
			const validate = compileValidator(schema);
			for (const test of group.tests) {
				if ((validate(test.data).length === 0) === test.valid) passed += 1;
				else
					wrong.push(
						`false ${test.valid ? "reject" : "accept"}: ${group.file}: ${group.description}: ${test.description}`,
					);
			}
		}
		expect(wrong).toEqual([]);
		expect(passed).toBe(PASSED);
	});

	it("is refused at import only for the declared reasons", () => {
		const counts: { [reason: string]: number } = {};
		for (const { group, errors } of imported) {
			const reason = errors[0]?.error;
			if (reason !== undefined) counts[reason] = (counts[reason] ?? 0) + group.tests.length;
		}
		expect(counts).toEqual(REFUSED);
		expect(PASSED + Object.values(REFUSED).reduce((sum, count) => sum + count, 0)).toBe(1_176);
	});

	it("says something to repair about every invalid instance, and where", () => {
		for (const { group, schema } of taken) {
			const validate = compileValidator(schema);
			for (const test of group.tests.filter(({ valid }) => !valid)) {
				const errors = validate(test.data);
				expect(errors.length, group.description).toBeGreaterThan(0);
				for (const error of errors) expect(error.error, group.description).not.toBe("");
			}
		}
	});
});

/**
 * Where both others agree and Belay does not, by (file, description): instances. Belay is right on `multipleOf` (2^53 is no
 * multiple of 1.5; the others round the quotient), and stricter on `regex`: it reads patterns in Unicode mode, where `{}` is
 * no pattern.
 */
const OTHERWISE: { [group: string]: readonly string[] } = {
	"format: regex format": ['"{\\"foo\\": \\"bar\\"}"', '"{:}"', '"{}"'],
	"multipleOf: by number": ["9007199254740992", "9007199254740991"],
	"multipleOf: by small number": ["1e+308"],
	"multipleOf: float division = inf": ["9007199254740992", "9007199254740991"],
	"multipleOf: small multiple of large integer": ["1e+308"],
};

describe("two other validators", () => {
	it("agree on every schema times every instance of the suite, or the difference is named", { timeout: 60_000 }, () => {
		const instances = new Map(groups.flatMap(({ tests }) => tests.map(({ data }) => [JSON.stringify(data), data])));
		expect(instances.size).toBeGreaterThan(400);
		const other = ZSchema.create({ safe: true, breakOnFirstError: true, noEmptyStrings: false });
		const found: { [group: string]: string[] } = {};
		let agreed = 0;
		for (const { group, schema } of taken) {
			const validate = compileValidator(schema);
			const compiled = new Ajv2020({
				strict: false,
				validateFormats: false,
				validateSchema: false,
				meta: false,
				logger: false,
			}).compile(schema);
			for (const [text, data] of instances) {
				const verdict = verdictOf(() => compiled(data) as boolean);
				if (verdict === undefined || verdict !== verdictOf(() => other.validate(data, schema).valid)) continue;
				if ((validate(data).length === 0) === verdict) agreed += 1;
				else {
					const name = `${group.file}: ${group.description}`;
					found[name] = [...(found[name] ?? []), text];
				}
			}
		}
		expect(found).toEqual(OTHERWISE);
		expect(agreed).toBe(116_748);
	});
});

/** Undefined where a validator breaks: ajv calls `toString` of the data. */
function verdictOf(run: () => boolean): boolean | undefined {
	try {
		return run();
	} catch {
		return undefined;
	}
}
