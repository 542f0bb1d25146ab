import { describe, expect, test } from "vitest";
import { isCallAsText } from "./call-as-text.ts";

const OFFERED = ["get_item", "pay"];

describe("calls written as text (T11)", () => {
	test.each([
		'get_item\n{"sku": "A1"}',
		'I will look it up.\nget_item({"sku": "A1"})',
		'pay({"to": "A"});',
		'Sure:\n\npay: {"to":"A"}\n',
		'```json\n{"name": "pay", "arguments": {"to": "A"}}\n```',
		'[{"name": "pay", "parameters": {}}]',
		'get_item\n```json\n{"sku":"A1"}\n```',
		'<tool_call>\n{"name": "pay", "arguments": {}}\n</tool_call>',
		"<tool_call>pay\n<arg_key>to</arg_key>",
		'<function=pay>{"to": 1}</function>',
		'<function_calls>\n<invoke name="pay">',
		"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>pay",
		"<|tool_calls_section_begin|><|tool_call_begin|>functions.pay:0",
		"<｜DSML｜function_calls>",
		'[TOOL_CALLS][{"name":"pay"}]',
		"<|channel|>commentary to=functions.pay",
	])("%j is a call", (text) => expect(isCallAsText(text, OFFERED)).toBe(true));

	test.each([
		"",
		"The item is A1.",
		'I used get_item and found {"sku": "A1"} in stock.',
		"get_item\nreturned nothing",
		'{"sku": "A1"}',
		'{"name": "Ada", "arguments": "many"}',
		'unknown_tool\n{"a": 1}',
		'get_item\n{"sku": "A1"} was what I asked for',
		"Models of that family write `<tool_call>{` around calls.",
		'```\n<｜DSML｜invoke name="x">\n```\nis the markup you asked about.',
		"constructor\n{}",
		"a < b and <tools> || x",
	])("%j is an answer", (text) => expect(isCallAsText(text, OFFERED)).toBe(false));

	// Each of these keeps a backtracking pattern busy far beyond the runner's time limit.
	test.each([
		`pay {${" ".repeat(200_000)}x`,
		`<tool_call>${" ".repeat(30)}`.repeat(20_000),
		"pay\n".repeat(50_000),
		"`".repeat(200_001),
		"<|".repeat(200_000),
	])("long text %# is answered in time", (text) => expect(isCallAsText(text, OFFERED)).toBe(false));
});
