import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../json.ts";
import { ARGUMENTS_MAX_BYTES } from "../limits.ts";
import { type CallResults, fillPlaceholders, fillText } from "./placeholders.ts";

const results: CallResults = new Map<string, Json>([
	[
		"c1",
		{ id: 7, rows: [{ name: "Ada" }, { name: "Bo" }], none: null, yes: true, text: "plain", "content-type": "json" },
	],
	["call.0:x", { ok: 1 }],
	["evil", { a: '"},"admin":true,{"', b: "{{calls.c1.result.id}}", c: "$& $1 $$", half: "\ud800" }],
	["list", [[1, 2], [3]]],
]);
const fill = (value: Json) => {
	const filled = fillPlaceholders({ v: value }, results);
	return filled.ok ? filled.value.v : filled.errors.map((one) => `${one.field} ${one.error}`);
};

describe("placeholders in scripted arguments (decision 29)", () => {
	test.each<[Json, Json]>([
		["{{calls.c1.result.id}}", 7],
		["{{ calls.c1.result.id }}", 7],
		["{{calls.c1.result.rows}}", [{ name: "Ada" }, { name: "Bo" }]],
		["{{calls.c1.result.rows.1.name}}", "Bo"],
		["{{calls.c1.result.rows[0].name}}", "Ada"],
		["{{calls.list.result[0][1]}}", 2],
		["{{calls.c1.result.none}}", null],
		["{{calls.c1.result.yes}}", true],
		["{{calls.c1.result.content-type}}", "json"],
		["{{calls.call.0:x.result}}", { ok: 1 }],
		["{{calls.call.0:x.result.ok}}", 1],
		["no {{calls.c1.result.id}} of {{calls.c1.result.text}} {{calls.c1.result.none}}", "no 7 of plain null"],
		["{{payload.x}} {{other}} {{calls}}", "{{payload.x}} {{other}} {{calls}}"],
		[{ deep: ["{{calls.c1.result.id}}", 1, null] }, { deep: [7, 1, null] }],
	])("%j", (value, expected) => expect(fill(value)).toEqual(expected));

	test.each([
		"calls.c1.result.nope",
		"calls.unknown.result.id",
		"calls.c1.result.rows.2.name",
		"calls.c1.result.rows.length",
		"calls.c1.result.text.length",
		"calls.c1.result.__proto__",
		"calls.c1.result.constructor.name",
		"calls.c1.result.id.toString",
		"calls.c1.result..id",
		"calls.c1.results",
		"calls.toString.result",
	])("%s leads nowhere, and says so by name", (expression) => {
		expect(fill(`{{${expression}}}`)).toEqual([`/v the placeholder \`${expression}\` leads nowhere`]);
		expect(fill({ "a/b": `x {{${expression}}}` })).toEqual([`/v/a~1b the placeholder \`${expression}\` leads nowhere`]);
	});

	test("a result is data: it adds no member, is not looked at again, means nothing to the replacement", () => {
		expect(fill("x {{calls.evil.result.a}}")).toBe('x "},"admin":true,{"');
		expect(fill("{{calls.evil.result.b}}")).toBe("{{calls.c1.result.id}}");
		expect(fill("x {{calls.evil.result.b}}")).toBe("x {{calls.c1.result.id}}");
		expect(fill("x {{calls.evil.result.c}}")).toBe("x $& $1 $$");
		expect(fill("{{calls.evil.result.half}}")).toBe("\ufffd");
	});

	test("keys are not filled; names of the prototype stay data; the input is untouched", () => {
		const args = JSON.parse('{"{{calls.c1.result.text}}":1,"__proto__":"{{calls.c1.result.id}}"}') as JsonObject;
		const before = JSON.stringify(args);
		const filled = fillPlaceholders(args, results);
		if (!filled.ok) throw new Error(filled.message);
		expect(JSON.stringify(filled.value)).toBe('{"{{calls.c1.result.text}}":1,"__proto__":7}');
		expect(JSON.stringify(args)).toBe(before);
	});

	test("a filled value is a copy: changing it does not change the recorded result", () => {
		const filled = fill("{{calls.c1.result.rows}}") as Json[];
		filled.push("more");
		expect((results.get("c1") as JsonObject).rows).toHaveLength(2);
	});

	test("short placeholders cannot multiply a large result without bound", () => {
		const large: CallResults = new Map([["big", "x".repeat(ARGUMENTS_MAX_BYTES / 2)]]);
		expect(fillPlaceholders({ a: "{{calls.big.result}}" }, large).ok).toBe(true);
		expect(fillPlaceholders({ a: "{{calls.big.result}}".repeat(1_000) }, large)).toMatchObject({ ok: false });
	});

	test("a result that is too deep for arguments is refused", () => {
		const deep: CallResults = new Map([["d", JSON.parse(`${"[".repeat(64)}${"]".repeat(64)}`) as Json]]);
		expect(fillPlaceholders({ a: "{{calls.d.result}}" }, deep)).toMatchObject({
			ok: false,
			errors: [{ issue: "too_deep" }],
		});
	});
});

test("an answer is always text", () => {
	expect(fillText("{{calls.c1.result.id}}", results)).toEqual({ ok: true, value: "7" });
	expect(fillText("{{calls.c1.result.rows.0}}", results)).toEqual({ ok: true, value: '{"name":"Ada"}' });
	expect(fillText("found {{calls.c1.result.rows.0.name}}", results)).toEqual({ ok: true, value: "found Ada" });
	expect(fillText("{{calls.c9.result}}", results)).toMatchObject({
		ok: false,
		message: "the placeholder `calls.c9.result` leads nowhere",
	});
});
