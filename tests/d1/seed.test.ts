import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { D1AuthorityStore } from "#adapters/d1/d1-authority-store.ts";
import { D1Channels } from "#adapters/d1/d1-channels.ts";
import { D1KeyStore } from "#adapters/d1/d1-key-store.ts";
import { D1ToolCatalog } from "#adapters/d1/d1-tool-catalog.ts";
import { FullTextInvoker } from "#adapters/fulltext/fulltext-invoker.ts";
import { indexTerms } from "#adapters/fulltext/terms.ts";
import { SqlInvoker, type SqlResult } from "#adapters/sql/sql-invoker.ts";
import { checkFixedSql } from "#core/data/fixed-sql.ts";
import type { JsonObject } from "#core/json.ts";
import { judgeTool } from "#core/policy/permits.ts";
import { role } from "#core/principal.ts";
import { checkDescriptor } from "#core/registry/register.ts";
import demoSql from "../../ops/demo-dataset/0000_demo.sql?raw";
import { demoDatasetSql } from "../../ops/seed/demo-dataset.ts";
import { ROLES } from "../../ops/seed/roles.ts";
import { DEVELOPMENT_PRINCIPALS, DEVELOPMENT_TENANT, seedDevelopment } from "../../ops/seed/seed.ts";
import { DEMO_TOOLS } from "../../ops/seed/tools.ts";
import { invocation, quiet, success } from "./datasets.ts";
import { AT } from "./rows.ts";

const keys = (Object.keys(DEVELOPMENT_PRINCIPALS) as (keyof typeof DEVELOPMENT_PRINCIPALS)[]).map((principal, n) => ({
	hash: String(n).repeat(64),
	prefix: "belay_dev",
	last4: `000${n}`,
	principal,
}));
const seed = () =>
	seedDevelopment(env.DB, { now: AT, keys, definitionHash: (descriptor) => `hash of ${descriptor.tool_id}` });
const rowCounts = async () => {
	const tables = ["tenants", "api_keys", "principals", "roles", "role_bindings", "tool_versions", "channels"];
	const counts = await env.DB.batch<{ n: number }>(
		tables.map((table) => env.DB.prepare(`SELECT count(*) AS n FROM ${table}`)),
	);
	return counts.map((count) => count.results[0]?.n);
};

beforeAll(seed);

describe("the development tenant", () => {
	it("is the same when it is made again, and what was changed since stays", async () => {
		const before = await rowCounts();
		await env.DB.prepare("UPDATE principals SET name = 'changed' WHERE principal_id = 'usr_reader'").run();
		await new D1ToolCatalog(env.DB).retire(DEVELOPMENT_TENANT, "echo", AT);
		await seed();
		expect(await rowCounts()).toEqual(before);
		expect(await env.DB.prepare("SELECT name FROM principals WHERE principal_id = 'usr_reader'").first("name")).toBe(
			"changed",
		);
		expect((await new D1ToolCatalog(env.DB).get(DEVELOPMENT_TENANT, "echo", "1.0.0"))?.status).toBe("offline");
	});

	it("has the kinds of decision 22, found by their keys", async () => {
		const found = await Promise.all(keys.map((key) => new D1KeyStore(env.DB).find(key.hash, AT)));
		expect(found.map((one) => one.ok && [one.principal.kind, one.principal.tenant_id])).toEqual([
			["user", "tenant_dev"],
			["user", "tenant_dev"],
			["user", "tenant_dev"],
			["agent", "tenant_dev"],
			["agent", "tenant_dev"],
		]);
		expect(found[1]).toMatchObject({ principal: { name: "approver@example.com" } });
		expect((await new D1KeyStore(env.DB).find(keys[0]?.hash ?? "", "2027-01-30T00:00:00.000Z")).ok).toBe(false);
		expect(await new D1Channels(env.DB).find(DEVELOPMENT_TENANT, "owner")).toMatchObject({
			kind: "email",
			to: "owner@example.com",
		});
	});

	it("gives each principal the tools it should have", async () => {
		const store = new D1AuthorityStore(env.DB);
		const allowed = async (name: keyof typeof DEVELOPMENT_PRINCIPALS) => {
			const authority = await store.resolve(DEVELOPMENT_TENANT, DEVELOPMENT_PRINCIPALS[name].principal_id, 1);
			if (authority === undefined) throw new Error("no authority");
			return DEMO_TOOLS.filter((tool) => judgeTool(authority, tool).decision === "allow").map((tool) => tool.tool_id);
		};
		const all = DEMO_TOOLS.map((tool) => tool.tool_id);
		expect(await allowed("operator")).toEqual(all);
		expect(await allowed("agent")).toEqual(all);
		expect(await allowed("reader")).toEqual([
			"sales_query",
			"product_specs",
			"report_search",
			"text_stats",
			"clock_now",
			"echo",
		]);
		expect(await allowed("limited")).toEqual(["text_stats", "clock_now", "echo"]);
		expect(await allowed("approver")).toEqual([]);
	});

	it("has roles and tools that the API would take", () => {
		for (const one of ROLES) expect(role.parse(one)).toEqual(one);
		for (const tool of DEMO_TOOLS) {
			expect(checkDescriptor(JSON.parse(JSON.stringify(tool)), (text) => text)).toMatchObject({
				ok: true,
				warnings: [],
			});
			if (tool.implementation.kind === "sql")
				expect(checkFixedSql(tool.implementation.sql, tool.input_schema)).toEqual([]);
			expect(tool.example_queries.some((query) => /\p{Script=Han}/u.test(query))).toBe(true);
			expect(tool.example_queries.some((query) => /^[\x20-\x7e]+$/.test(query))).toBe(true);
		}
	});
});

describe("the demonstration data set", () => {
	const tool = (tool_id: string) => {
		const found = DEMO_TOOLS.find((one) => one.tool_id === tool_id);
		if (found === undefined) throw new Error(tool_id);
		return found;
	};
	const ask = async (tool_id: string, args: JsonObject) => {
		const descriptor = tool(tool_id);
		const sql = new SqlInvoker(() => env.DATASET_DEMO);
		const text = new FullTextInvoker(() => env.DATASET_DEMO);
		const call = { ...invocation(descriptor.implementation, args), descriptor };
		return success(await (descriptor.implementation.kind === "sql" ? sql : text).invoke(call, quiet));
	};

	it("is what its generator writes", () => {
		expect(demoSql).toBe(demoDatasetSql());
	});

	it("lets A sell clearly more than B last quarter, and not in the quarter before", async () => {
		const units = async (from_quarter: string) => {
			const { rows } = (await ask("sales_query", { products: ["A", "B"], from_quarter })).result as SqlResult;
			return rows.map((row) => Number(row.units));
		};
		const [a = 0, b = 0] = await units("2026-Q3");
		expect(a).toBeGreaterThan(b * 1.3);
		const [before_a = 0, before_b = 0] = await units("2026-Q2");
		expect(Math.abs(before_a - before_b)).toBeLessThan(before_b * 0.1);
	});

	it("has every product in every quarter, and ranges, regions and products narrow it", async () => {
		const all = (await ask("sales_query", { from_quarter: "2024-Q4", to_quarter: "2026-Q4" })).result as SqlResult;
		expect(all.rows).toHaveLength(9 * 5);
		const some = (
			await ask("sales_query", { from_quarter: "2026-Q1", to_quarter: "2026-Q2", region: "East", products: ["C"] })
		).result as SqlResult;
		expect(some.rows.map((row) => [row.product, row.quarter])).toEqual([
			["C", "2026-Q1"],
			["C", "2026-Q2"],
		]);
		const specs = (await ask("product_specs", { products: ["B"] })).result as SqlResult;
		expect(specs.rows).toMatchObject([{ product_id: "B", specs: expect.stringContaining("battery_hours") }]);
		expect(((await ask("product_specs", {})).result as SqlResult).rows).toHaveLength(5);
	});

	it("explains why, in both languages", async () => {
		const found = async (query: string) => JSON.stringify((await ask("report_search", { query, limit: 3 })).result);
		expect(await found("why did product A sell better than product B last quarter")).toMatch(/promotion|shortage/);
		expect(await found("为什么产品A上季度卖得比产品B好")).toMatch(/促销|短缺/);
	});

	it("is indexed by the same terms that questions are made of", async () => {
		const rows = await env.DATASET_DEMO.prepare("SELECT title, text, title_terms, text_terms FROM fts_reports").all<
			Record<string, string>
		>();
		for (const row of rows.results) {
			expect(row.title_terms).toBe(indexTerms(row.title ?? ""));
			expect(row.text_terms).toBe(indexTerms(row.text ?? ""));
		}
	});
});
