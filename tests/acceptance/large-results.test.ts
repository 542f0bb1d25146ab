/** C03: large results and long texts neither break the run nor flood an answer or a planner. */
import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import { callOf, decide, externalRun, getRun, messageOf, turn } from "./tools.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});

describe("a result of 3 MB", () => {
	it("is kept whole, answered by reference, cut for the planner with a note, and survives a restart", async () => {
		const run = await externalRun(tenant);
		const code = "result = '\u4e16U0001F600' * 400000";
		const turned = await decide(
			tenant,
			run.run_id,
			turn(
				["code_execute_js", "c1", { code: "result = '\\u4e16\\u{1F600}'.repeat(400000)" }],
				["code_execute_python", "c2", { code }],
			),
		);
		expect(turned.run.status).toBe("awaiting_decision");
		await evictDurableObject(env.AGENT_RUN.getByName(run.run_id));
		const after = await getRun(tenant, run.run_id);
		const js = callOf(after, "c1");
		expect(js.state).toBe("COMPLETED");
		expect(js.result.reference).toBe(`/v1/artifacts/${js.result.artifact_id}`);
		const whole = (await call("GET", js.result.reference, undefined, tenant.operator)).body;
		expect(whole.result).toHaveLength(1_200_000);
		const { data } = (await call("GET", `/v1/runs/${run.run_id}/evidence`, undefined, tenant.operator)).body;
		expect(data.find((one: any) => one.tool_call_id === js.tool_call_id).artifacts).toEqual([js.result.artifact_id]);
		expect((await call("GET", js.result.reference, undefined, tenant.limited)).status).toBe(404);
		expect(new TextEncoder().encode(turned.messages[0].content).byteLength).toBeLessThanOrEqual(65_536);
		expect(messageOf(turned.messages).notes.join(" ")).toContain("artifact");
		expect(turned.messages[0].content.isWellFormed()).toBe(true);
	});

	it("500 log entries and a goal of 200,000 characters are readable after a restart", async () => {
		const run = await externalRun(tenant, {
			goal: "\u{1F468}\u200D\u{1F469}\u200D\u{1F467}x".repeat(20_000),
			limits: { turns: 100 },
		});
		for (let n = 0; n < 30; n++)
			await decide(tenant, run.run_id, turn(["echo", `c${n}`, { message: String(n) }], ["clock_now", `d${n}`, {}]));
		await evictDurableObject(env.AGENT_RUN.getByName(run.run_id));
		const after = await getRun(tenant, run.run_id);
		expect(after.calls).toHaveLength(50);
		expect(after.goal).toHaveLength(run.goal.length);
		const verified = (await call("GET", `/v1/runs/${run.run_id}/evidence/verify`, undefined, tenant.operator)).body;
		expect(verified).toMatchObject({ valid: true, checked: 60 });
	});
});
