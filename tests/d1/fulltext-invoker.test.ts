import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { FullTextInvoker, type Match } from "#adapters/fulltext/fulltext-invoker.ts";
import { fullTextQuery, indexTerms } from "#adapters/fulltext/terms.ts";
import type { JsonObject } from "#core/json.ts";
import { invocation, quiet, success } from "./datasets.ts";

const invoker = new FullTextInvoker((tenant, index) =>
	tenant === "tenant_dev" && index === "reports" ? env.DATASET_DEMO : undefined,
);
const call = (args: JsonObject, index = "reports", mode: "fulltext" | "vector" = "fulltext", more = {}) =>
	invoker.invoke(invocation({ kind: "retrieval", index, mode }, args, more), quiet);
const search = async (query: string, limit = 50) => {
	const outcome = success(await call({ query, limit }));
	return { ...(outcome.result as { matches: Match[]; total: number }), notes: outcome.notes, facts: outcome.facts };
};
const ids = async (query: string) => (await search(query)).matches.map((match) => match.id);

describe("what is found", () => {
	it("comes best first, with positive scores and its own text", async () => {
		const found = await search("supply shortage", 2);
		expect(found.matches[0]).toMatchObject({
			id: "rep_2026q3_supply_shortage",
			title: "Product B: battery cell supply shortage",
			metadata: { language: "en", quarter: "2026-Q3" },
		});
		expect(found.matches[0]?.text).toContain("battery cells stopped deliveries");
		const scores = found.matches.map((match) => match.score);
		expect(scores.every((score) => score > 0)).toBe(true);
		expect(scores).toEqual([...scores].sort((a, b) => b - a));
	});

	it.each([
		["缺货", ["rep_2026q3_zh_shortage"]],
		["电芯", ["rep_2026q3_zh_shortage"]],
		["返利", ["rep_2026q3_zh_promotion"]],
		["退货率", ["rep_2026q3_zh_service"]],
		["首页推荐位", ["rep_2026q3_zh_promotion"]],
		["购物节", ["rep_2026q4_zh_outlook"]],
		["火", ["rep_2026q3_zh_shortage"]],
		["shortages", ["rep_2026q3_supply_shortage"]],
		["SOUNDBAR", ["rep_2025q4_holidays"]],
		["电芯 火灾", ["rep_2026q3_zh_shortage"]],
	])("`%s`, exactly", async (query, expected) => {
		expect(await ids(query)).toEqual(expected);
	});

	it.each([
		["促销", "rep_2026q3_zh_promotion"],
		["供应短缺", "rep_2026q3_zh_shortage"],
		["产品B为什么上季度缺货了", "rep_2026q3_zh_shortage"],
		["为什么产品A因为开学季促销卖得好", "rep_2026q3_zh_promotion"],
		["why did product B have no stock: battery cells?", "rep_2026q3_supply_shortage"],
		["back-to-school promotion campus stores", "rep_2026q3_channel_promotion"],
		["竞品 降价 market", "rep_2026q3_zh_competition"],
		["ｓｏｕｎｄｂａｒ", "rep_2025q4_holidays"],
	])("`%s`, best", async (query, expected) => {
		expect((await ids(query))[0]).toBe(expected);
	});

	it("says when only some of the words are held", async () => {
		expect((await search("soundbar 电芯")).notes).toEqual([expect.stringContaining("some of them")]);
		expect((await search("battery supplier")).notes).toEqual([]);
	});

	it("says what nothing means", async () => {
		const found = await search("zebra");
		expect(found).toMatchObject({ matches: [], total: 0, facts: ["0 of 0 matches from index reports"] });
		expect(found.notes[0]).toContain("infer from the data");
		expect((await search(" -- !? ")).notes[0]).toContain("no word");
	});

	it("is limited to what was asked, 5 by default, 50 at most, and counted whole", async () => {
		const outcome = success(await call({ query: "product" }));
		const result = outcome.result as { matches: Match[]; total: number };
		expect(result.matches).toHaveLength(5);
		expect(result.total).toBeGreaterThan(5);
		expect((await search("product", 1)).matches).toHaveLength(1);
		expect((await search("product", -3)).matches).toHaveLength(1);
		expect((await search("product", 1e9)).matches.length).toBe(result.total);
	});

	it("names no figure: how much is for the caller to compute", async () => {
		const texts = await env.DATASET_DEMO.prepare("SELECT title || ' ' || text AS t FROM fts_reports").all<{
			t: string;
		}>();
		expect(texts.results).toHaveLength(12);
		for (const { t } of texts.results) expect(t).not.toMatch(/[0-9]|per ?cent|%|百分/);
	});
});

describe("a hostile question", () => {
	it.each([
		'"',
		'" OR "',
		"title_terms : battery",
		"{id metadata} : en",
		"NEAR(battery supply, 2)",
		"battery NOT supply",
		"battery AND",
		"^battery",
		"bat*",
		"battery -supply",
		"') UNION SELECT 1,2,3,4 --",
		"(((((",
		"a".repeat(100_000),
		"battery ".repeat(5_000),
		Array.from({ length: 3_000 }, (_, n) => `w${n}`).join(" "),
		"电".repeat(5_000),
		"\0 battery \ud800",
	])("%.40j is words or nothing, never an error", async (query) => {
		expect(success(await call({ query })).result).toHaveProperty("total");
	});

	it("has no operators", async () => {
		expect(fullTextQuery('x" OR title_terms:NEAR(a b)*')?.all).toBe(
			'"x" AND "or" AND "title" AND "terms" AND "near" AND "a" AND "b"',
		);
		expect(await ids("bat*")).toEqual([]);
		expect(await ids("battery NOT supply")).toContain("rep_2026q3_supply_shortage");
	});
});

describe("refusals", () => {
	it("name what is missing", async () => {
		expect(await call({ query: "x" }, "reports", "vector")).toMatchObject({
			kind: "failed",
			code: "not_configured",
			message: expect.stringContaining("`vector`"),
		});
		expect(await call({ query: "x" }, "absent")).toMatchObject({ kind: "failed", code: "not_configured" });
		expect(await call({ query: "x" }, "reports", "fulltext", { tenant_id: "other" })).toMatchObject({
			code: "not_configured",
		});
		expect(await call({ query: 5 })).toMatchObject({ code: "not_configured" });
	});

	it("say nothing of the database", async () => {
		const other = new FullTextInvoker(() => env.DATASET_DEMO);
		const outcome = await other.invoke(
			invocation({ kind: "retrieval", index: "nothing", mode: "fulltext" }, { query: "s3cret" }),
			quiet,
		);
		expect(outcome).toMatchObject({ kind: "failed", code: "dataset_error", retryable: false, effect: "none" });
		expect(JSON.stringify(outcome)).not.toMatch(/s3cret|SELECT|no such|fts_/);
	});

	it("end in time", async () => {
		const silent = {
			prepare: () => ({ bind: () => ({}) }),
			batch: () => new Promise(() => undefined),
		} as unknown as D1Database;
		const slow = new FullTextInvoker(() => silent);
		const asked = invocation(
			{ kind: "retrieval", index: "reports", mode: "fulltext" },
			{ query: "x" },
			{ timeout_ms: 20 },
		);
		expect(await slow.invoke(asked, quiet)).toEqual({ kind: "timeout", phase: "body", effect: "none" });
	});
});

describe("terms", () => {
	it("set CJK characters apart and nothing else", () => {
		expect(indexTerms("产品A销量")).toBe("产 品 A 销 量");
		expect(indexTerms("コーヒー coffee 커피")).toBe("コ ー ヒ ー coffee 커 피");
		expect(indexTerms("plain text")).toBe("plain text");
	});

	it("ask for a run as a phrase first and for its pairs after", () => {
		expect(fullTextQuery("供应短缺 B")).toEqual({
			all: '"供 应 短 缺" AND "b"',
			any: '"供 应" OR "应 短" OR "短 缺" OR "b"',
		});
		expect(fullTextQuery("火")).toEqual({ all: '"火"', any: '"火"' });
	});
});
