import { describe, expect, test } from "vitest";
import { ARGUMENTS_MAX_BYTES, JSON_DEPTH_MAX } from "../limits.ts";
import { readArguments } from "./arguments.ts";

const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;

describe("readArguments", () => {
	test.each(["", "  ", "\n", null, undefined, "{}", "null"])("%j stands for no arguments (T01)", (text) => {
		expect(readArguments(text)).toEqual({ ok: true, value: {} });
	});

	test.each([
		['{"sku":"A1"', "not_json", "arguments are not valid JSON: the text ends too early"],
		['{"selected: ["A", "C"]}', "not_json", "arguments are not valid JSON at position 14"],
		['{"a":1}{"b":2}', "not_json", "arguments are not valid JSON at position 7"],
		["{'a':1}", "not_json", "arguments are not valid JSON at position 1"],
		["[1]", "type_mismatch", "arguments are not a JSON object"],
		["7", "type_mismatch", "arguments are not a JSON object"],
		['"{\\"sku\\":\\"A1\\"}"', "type_mismatch", "arguments are not a JSON object"],
		[nested(JSON_DEPTH_MAX + 1), "too_deep", "arguments are nested too deep"],
		["[".repeat(200_000), "too_deep", "arguments are nested too deep"],
		[`{"a":"${"x".repeat(ARGUMENTS_MAX_BYTES)}"}`, "too_large", "arguments are too large"],
		[`{"a":"${"日".repeat(ARGUMENTS_MAX_BYTES / 3)}"}`, "too_large", "arguments are too large"],
		['{"a":{"b/c":"\\ud800"}}', "format_invalid", "text holds half a character"],
		['{"\\udc00":1}', "format_invalid", "text holds half a character"],
	])("%.40s is refused", (text, issue, error) => {
		expect(readArguments(text)).toMatchObject({ ok: false, reason: "arguments_not_json", errors: [{ issue, error }] });
	});

	test("depth and size at the limit pass; brackets in strings do not count", () => {
		expect(readArguments(nested(JSON_DEPTH_MAX)).ok).toBe(true);
		expect(readArguments(`{"a":"${"[".repeat(500)}\\"${"{".repeat(500)}"}`).ok).toBe(true);
	});

	test("half a character is named by its place", () => {
		expect(readArguments('{"a":[0,{"b/c":"\\ud800"}]}')).toMatchObject({ errors: [{ field: "/a/1/b~1c" }] });
	});

	test("integers beyond 2^53 are refused by name, never rounded (T09)", () => {
		const read = readArguments('{"id":2512292042121000001,"list":[1,9007199254740993]}');
		expect(read).toEqual({
			ok: false,
			reason: "integer_out_of_range",
			errors: ["/id", "/list/1"].map((field) => ({
				error: "the number is too large to be held exactly",
				field,
				issue: "integer_out_of_range",
				expected: "an integer between -(2^53-1) and 2^53-1",
				hint: "send as string",
			})),
		});
		expect(readArguments('{"id":9007199254740991}')).toEqual({ ok: true, value: { id: 9007199254740991 } });
	});

	test("a repeated key keeps the last value, for the approver as for the tool", () => {
		expect(readArguments('{"amount":1,"amount":9000}')).toEqual({ ok: true, value: { amount: 9000 } });
	});

	test("names of the prototype are plain data (S05)", () => {
		const read = readArguments('{"__proto__":{"admin":true},"constructor":1}');
		if (!read.ok) throw new Error("refused");
		expect(Object.keys(read.value)).toEqual(["__proto__", "constructor"]);
		expect(({} as { admin?: boolean }).admin).toBeUndefined();
	});

	test("a refusal never quotes the text", () => {
		for (const text of [
			'{"password":"hunter2',
			'{"password":"hunter2" oops}',
			'"hunter2"',
			'{"hunter2":12345678901234567890',
		])
			expect(JSON.stringify(readArguments(text))).not.toContain("hunter2");
	});
});
