import { describe, expect, test } from "vitest";
import type { PlannerMessage } from "../ports.ts";
import { seeded } from "../run/sample-run.ts";
import {
	contextTokens,
	estimateMessage,
	estimateRequest,
	estimateText,
	requestTokens,
	tokenFamily,
} from "./token-estimate.ts";

const FAMILIES = ["deepseek", "openai", "generic"] as const;
const ENGLISH = "How much more did product A sell than product B last quarter and why".repeat(20);
const CHINESE = "产品甲上季度比产品乙多卖了多少以及为什么".repeat(50);

describe("against the rules that providers publish", () => {
	test("DeepSeek: 0.3 a letter, 0.6 a Chinese character", () => {
		expect(estimateText(ENGLISH, "deepseek")).toBe(Math.ceil(ENGLISH.length * 0.3));
		expect(estimateText(CHINESE, "deepseek")).toBe(Math.ceil(CHINESE.length * 0.6));
	});
	test("OpenAI: four letters a token", () => expect(estimateText(ENGLISH, "openai")).toBe(ENGLISH.length / 4));
	test("JSON costs more than the rule says, at most 1.7 times", () => {
		const json = JSON.stringify({ status: "success", data: { rows: [[1, 2.5, "A", -17]], total: 240_113 } });
		for (const text of [json.repeat(20), "0123456789".repeat(20), '{"":[]},,;'.repeat(20)])
			for (const [family, rule] of [
				["deepseek", 0.3],
				["openai", 0.25],
			] as const) {
				const share = estimateText(text, family) / (text.length * rule);
				expect(share).toBeGreaterThanOrEqual(1);
				expect(share).toBeLessThanOrEqual(1.7);
			}
	});
	test("what is not known is never taken for cheaper", () => {
		for (const text of [ENGLISH, CHINESE, "👨‍👩‍👧", "Привет", "ÄÖÜ", '{"a":1}'])
			for (const family of FAMILIES)
				expect(estimateText(text, "generic")).toBeGreaterThanOrEqual(estimateText(text, family));
	});
});

test("monotone: more of anything never costs less", () => {
	const random = seeded(7);
	const alphabet = [...'ab Z9{"中ё\ud83d\ude00é', "\ud800"];
	for (const family of FAMILIES) {
		let text = "";
		let before = 0;
		for (let n = 0; n < 300; n++) {
			text += alphabet[Math.floor(random() * alphabet.length)];
			const now = estimateText(text, family);
			expect(now).toBeGreaterThanOrEqual(before);
			before = now;
		}
	}
});

test("thoughts, calls, ids and functions count", () => {
	const plain: PlannerMessage = { role: "assistant", content: "x" };
	const call = { id: "call_1", type: "function" as const, function: { name: "find", arguments: '{"q":"abc"}' } };
	const size = (message: PlannerMessage) => estimateMessage(message, "deepseek");
	expect(size({ ...plain, reasoning_content: "I think so" })).toBeGreaterThan(size(plain));
	expect(size({ ...plain, tool_calls: [call] })).toBeGreaterThan(size(plain) + 10);
	expect(estimateRequest([plain], [{ name: "f", description: "d", parameters: {} }], "deepseek")).toBeGreaterThan(
		estimateRequest([plain], [], "deepseek"),
	);
});

test("one pass: a megabyte of text is counted in well under a second", () => {
	expect(estimateText("x".repeat(1_000_000), "deepseek")).toBe(300_000);
});

test.each([
	[null, "deepseek", 1_048_576],
	["deepseek-flash", "deepseek", 1_048_576],
	["@cf/deepseek-ai/deepseek-v4-pro-0813", "deepseek", 1_048_576],
	["gpt-5.2", "openai", 131_072],
	["o4-mini", "openai", 131_072],
	["@cf/meta/llama-9", "generic", 131_072],
])("%s is %s with %i tokens", (model, family, tokens) => {
	expect(tokenFamily(model)).toBe(family);
	expect(contextTokens(model)).toBe(tokens);
});

describe("what a request may hold", () => {
	test("is the context less what the model may write, by its name or by the deployment's word", () => {
		expect(requestTokens("deepseek-flash", "")).toBe(1_048_576 - 32_768);
		expect(requestTokens("some-model", " ")).toBe(131_072 - 32_768);
		expect(requestTokens("some-model", "200000")).toBe(200_000 - 32_768);
		expect(requestTokens("deepseek-flash", "8192")).toBe(6_144);
	});
	test.each(["0", "4095", "-8192", "1e6", "8k", "8192.5", "99999999999999999999"])(
		"refuses the setting %j",
		(setting) => {
			expect(requestTokens("m", setting)).toBeNull();
		},
	);
});
