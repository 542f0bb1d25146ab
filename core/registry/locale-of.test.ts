import { expect, test } from "vitest";
import { localeOf } from "./explain-words.ts";

test.each([
	["上个季度产品甲比产品乙多卖了多少？", "zh"],
	["查询 product A 与 product B 的 sales", "zh"],
	["How much more did A sell than B?", "en"],
	["translate the word 你好 for me, please, into plain English", "en"],
	["先月の売上を教えてください", "en"],
	["지난 분기 매출을 알려 주세요", "en"],
	["12345 !?", "en"],
	["", "en"],
	[`${"a".repeat(1_000)}${"字".repeat(100_000)}`, "en"],
	["\ud840", "en"],
] as const)("%j is %s", (text, locale) => {
	expect(localeOf(text)).toBe(locale);
});
