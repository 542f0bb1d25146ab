/** O6, the happy path: real rows, real full text, real code, a human, and figures that are computed. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import { approve, callOf, type Run, rested } from "./tools.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});

const QUARTER = "2026-Q3";
const code =
	"rows = {r['product']: r['revenue_cents'] for r in inputs['rows']}\ndiff = rows['A'] - rows['B']\nresult = {'difference': diff, 'percent': round(100.0 * diff / rows['B'], 1)}";
const tool = (id: string, name: string, args: unknown) => ({
	id,
	type: "function",
	function: { name, arguments: JSON.stringify(args) },
});
const script = [
	{
		content: null,
		tool_calls: [
			tool("sales", "sales_query", { from_quarter: QUARTER, products: ["A", "B"] }),
			tool("why", "report_search", { query: "Product A outsold Product B reason" }),
		],
	},
	{
		content: null,
		tool_calls: [tool("calc", "code_execute_python", { code, inputs: { rows: "{{calls.sales.result.rows}}" } })],
	},
	{
		content: null,
		tool_calls: [
			tool("tell", "notify_owner", {
				subject: "A and B",
				message: "A is ahead by {{calls.calc.result.result.percent}} percent",
			}),
		],
	},
	{
		content:
			"A sold {{calls.calc.result.result.difference}} cents more than B ({{calls.calc.result.result.percent}} %). {{calls.why.result.matches.0.title}}",
	},
];

describe("the worked case", () => {
	it("runs in parallel, computes, waits for a person, and answers with computed figures", async () => {
		const started = await call(
			"POST",
			"/v1/runs",
			{ goal: "how much more did A sell than B last quarter, and why?", planner: { kind: "scripted", script } },
			tenant.operator,
			{ prefer: "wait=30" },
		);
		expect(started.status).toBe(201);
		const waiting: Run = started.body;
		expect(waiting.status).toBe("awaiting_approval");
		const [sales, why] = [callOf(waiting, "sales"), callOf(waiting, "why")];
		expect([sales.state, why.state, sales.turn, why.turn]).toEqual(["COMPLETED", "COMPLETED", 1, 1]);
		const { results } = await env.DATASET_DEMO.prepare(
			"SELECT product, sum(revenue_cents) AS cents FROM sales WHERE quarter = ? AND product IN ('A', 'B') GROUP BY product ORDER BY product",
		)
			.bind(QUARTER)
			.all<{ product: string; cents: number }>();
		const [a, b] = results.map((row) => row.cents) as [number, number];
		const percent = Math.round((1000 * (a - b)) / b) / 10;
		expect(callOf(waiting, "calc").result.result).toEqual({ difference: a - b, percent });
		const [approval] = waiting.pending_approvals;
		expect(approval).toMatchObject({
			tool_id: "notify_owner",
			arguments: { message: `A is ahead by ${percent} percent` },
		});
		expect((await approve(tenant, approval)).status).toBe(200);
		const done = await rested(tenant, waiting.run_id, waiting.seq);
		expect(done.error).toBeNull();
		expect(done.status).toBe("completed");
		expect(done.answer).toContain(`${a - b} cents`);
		expect(done.answer).toContain(`${percent} %`);
		expect(callOf(done, "tell")).toMatchObject({ state: "COMPLETED", result: { delivered: true } });
		const evidence = (await call("GET", `/v1/runs/${done.run_id}/evidence`, undefined, tenant.operator)).body;
		expect(evidence.data.map((one: Run) => one.outcome)).toEqual([
			"success",
			"success",
			"success",
			"waiting",
			"success",
		]);
		const verified = (await call("GET", `/v1/runs/${done.run_id}/evidence/verify`, undefined, tenant.operator)).body;
		expect(verified).toEqual({ valid: true, checked: 5, broken_at: null });
	});

	it("a code error comes back with type, message, line and snippet", async () => {
		const broken = [
			{
				content: null,
				tool_calls: [
					tool("bad", "code_execute_python", { code: "x = 1\ny = x / 0\n" }),
					tool("js", "code_execute_js", { code: "const a = 1;\nmissing();\n" }),
				],
			},
			{ content: "done" },
		];
		const { body } = await call(
			"POST",
			"/v1/runs",
			{ goal: "x", planner: { kind: "scripted", script: broken } },
			tenant.operator,
			{ prefer: "wait=30" },
		);
		expect(callOf(body, "bad")).toMatchObject({
			state: "FAILED",
			error: { code: "code_error", detail: { type: "ZeroDivisionError", line: 2 } },
		});
		expect(callOf(body, "js")).toMatchObject({
			state: "FAILED",
			error: { code: "code_error", detail: { type: "ReferenceError", line: 2 } },
		});
		expect(body.status).toBe("completed");
	});
});
