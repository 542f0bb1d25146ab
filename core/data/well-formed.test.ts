import { describe, expect, test } from "vitest";
import type { Json } from "../json.ts";
import { cutText, findIllFormed, utf8Bytes, wellFormedJson } from "./well-formed.ts";

const encoded = (text: string) => new TextEncoder().encode(text).length;

test.each(["", "abc", "é", "日本", "👍", "a\ud800b", "\udc00\ud800", "👨‍👩‍👧‍👦", "\u07ff\u0800\uffff"])(
	"%j has as many bytes as its encoding",
	(text) => {
		expect(utf8Bytes(text)).toBe(encoded(text));
	},
);

describe("cutText", () => {
	test("keeps the limit and ends between characters, at every length", () => {
		const text = "aé日👍👨‍👩‍👧‍👦e\u0301🏳️‍🌈z";
		const whole = [...new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text)].map((one) => one.segment);
		for (let max = 0; max <= encoded(text); max++) {
			const cut = cutText(text, max);
			expect(encoded(cut)).toBeLessThanOrEqual(max);
			expect(cut.isWellFormed()).toBe(true);
			expect(whole.map((_, at) => whole.slice(0, at).join(""))).toContain(cut === text ? "" : cut);
			// As much as fits: the next character would not have.
			const next = whole[[...new Intl.Segmenter("en").segment(cut)].length];
			if (next !== undefined) expect(encoded(cut + next)).toBeGreaterThan(max);
		}
	});

	test("a character without end is cut all the same", () => {
		const cut = cutText(`e${"\u0301".repeat(5_000)}`, 1_000);
		expect(cut.length).toBeGreaterThan(400);
	});
});

test("lone surrogates are found by place and replaced, in keys too", () => {
	const value = { a: [{ "b/c": "x\ud800" }], "k\udc00": 1 };
	expect(findIllFormed(value)).toBe("/a/0/b~1c");
	expect(findIllFormed({ deep: { "k\udc00": 1 } })).toBe("/deep");
	expect(wellFormedJson(value)).toEqual({ a: [{ "b/c": "x\ufffd" }], "k\ufffd": 1 });
	const proto = JSON.parse('{"__proto__":"\\ud800"}') as Json;
	expect(JSON.stringify(wellFormedJson(proto))).toBe('{"__proto__":"\ufffd"}');
	expect(findIllFormed(["👍", null, 1])).toBeUndefined();
});
