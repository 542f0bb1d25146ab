/** `GET /v1/tools/:tool_id/health`: what the tool's gate counts, for whoever may see the tool. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import type { GateNeeds } from "#core/invoke/gate-keys.ts";
import type { ToolGateApi } from "#objects/tool-gate/api.ts";
import { call, seedTenant, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});

const health = (tool_id: string, key: string) => call("GET", `/v1/tools/${tool_id}/health`, undefined, key);
const gate = (of: TestTenant, tool_id: string) =>
	env.TOOL_GATE.getByName(`${of.tenant_id}:${tool_id}`) as unknown as ToolGateApi;

describe("a tool's health", () => {
	it("is closed and empty before anybody calls it", async () => {
		const { status, body } = await health("echo", tenant.operator);
		expect(status).toBe(200);
		expect(body).toEqual({
			tool_id: "echo",
			breaker: { state: "closed", until: null, samples: 0, failures: 0 },
			rate: { paused_until: null },
			cache: { cached: 0, hits: 0, misses: 0, hit_rate: null },
			claims: 0,
		});
	});

	it("shows an open breaker, a pause and the share of cache hits", async () => {
		const named = { v: 1 as const, tenant_id: tenant.tenant_id, tool_id: "text_stats" };
		const needs: GateNeeds = {
			criticality: "normal",
			rate_limit: null,
			claim: null,
			cache: { key: "k", ttl_ms: 60_000 },
			snapshot: null,
		};
		const object = gate(tenant, "text_stats");
		await object.enter({ ...named, tool_call_id: "c1", needs, hold_ms: 60_000 });
		const stored = { result: { secret: "s3cret" }, notes: [], at: Date.now(), tool_call_id: "c1" };
		await object.leave({
			...named,
			tool_call_id: "c1",
			needs,
			outcome: "success",
			settle: "free",
			stored,
			pause_ms: null,
		});
		await object.enter({ ...named, tool_call_id: "c2", needs, hold_ms: 60_000 });
		await object.report({ ...named, criticality: "normal", successes: 0, failures: 10, pause_ms: 5_000 });
		const { body, text } = await health("text_stats", tenant.operator);
		expect(body.breaker.state).toBe("open");
		expect(Date.parse(body.breaker.until)).toBeGreaterThan(Date.now());
		expect(Date.parse(body.rate.paused_until)).toBeGreaterThan(Date.now());
		expect(body.cache).toEqual({ cached: 1, hits: 1, misses: 1, hit_rate: 0.5 });
		expect(text).not.toContain("s3cret");
	});

	it("is one tenant's: another one's breaker says nothing about it", async () => {
		const other = await seedTenant();
		const named = { v: 1 as const, tenant_id: other.tenant_id, tool_id: "echo" };
		await gate(other, "echo").report({ ...named, criticality: "normal", successes: 0, failures: 10, pause_ms: null });
		expect((await health("echo", other.operator)).body.breaker.state).toBe("open");
		expect((await health("echo", tenant.operator)).body.breaker.state).toBe("closed");
	});

	it("a tool that does not exist, or that the caller may not call, is 404", async () => {
		expect((await health("nothing", tenant.operator)).status).toBe(404);
		expect((await health("clock_now", tenant.limited)).status).toBe(200);
		const published = await call(
			"PUT",
			"/v1/tools/hidden_write",
			{
				tool_id: "hidden_write",
				name: "hidden_write",
				version: "1.0.0",
				description: "writes to the test ledger; does not read it",
				category: "data_retrieval",
				effect: "write",
				approval: { mode: "always" },
				input_schema: { type: "object", properties: {} },
				implementation: { kind: "http", method: "POST", url: "https://ledger.test/h/ok" },
			},
			tenant.operator,
		);
		expect(published.status).toBe(201);
		expect((await health("hidden_write", tenant.operator)).status).toBe(200);
		for (const key of [tenant.limited, tenant.reader])
			expect((await health("hidden_write", key)).body).toMatchObject({
				...(await health("nothing", key)).body,
				trace_id: expect.any(String),
			});
	});
});
