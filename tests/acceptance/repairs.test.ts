/** V4: after three refusals in a row the planner is told of the declared fallback, where it may call it. */
import { beforeAll, describe, expect, it } from "vitest";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import { answering, calling, script } from "../support/planner-script.ts";
import { callOf, ledgerTool, READ, type Run } from "./tools.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	const input_schema = { type: "object", properties: { to: { type: "string" } }, required: ["to"] };
	const strict = { ...READ, input_schema };
	await ledgerTool(tenant, "plain", READ);
	await ledgerTool(tenant, "hidden", { ...READ, visibility: "internal" });
	await ledgerTool(tenant, "strict", { ...strict, fallback: { tool_id: "plain" } });
	await ledgerTool(tenant, "strict_hidden", { ...strict, fallback: { tool_id: "hidden" } });
});

async function wrongThrice(tool_id: string, then: string): Promise<Run> {
	const model = await script([...["a", "b", "c"].map((id) => calling([[tool_id, id, {}]])), then, answering("done")]);
	const body = { goal: "look it up", planner: { kind: "openai", model } };
	return (await call("POST", "/v1/runs", body, tenant.operator, { prefer: "wait=20" })).body;
}

describe("the third refusal", () => {
	it("names the fallback, and the planner's call of it goes through", async () => {
		const done = await wrongThrice("strict", calling([["plain", "d", { q: "x" }]]));
		expect(done).toMatchObject({ status: "completed", answer: "done" });
		expect(callOf(done, "b").refusal.reason).toBe("validation_failed");
		expect(callOf(done, "c").refusal).toMatchObject({ reason: "budget_exhausted" });
		expect(callOf(done, "c").refusal.errors[0].hint).toContain("call `plain` instead");
		expect(callOf(done, "d").state).toBe("COMPLETED");
	});

	it("does not name one that is not on the planner's surface", async () => {
		const done = await wrongThrice("strict_hidden", answering("could not"));
		expect(callOf(done, "c").refusal).toMatchObject({ reason: "budget_exhausted" });
		expect(JSON.stringify(callOf(done, "c").refusal)).not.toContain("hidden`");
		expect(callOf(done, "c").refusal.errors[0].hint).toContain("tell the user");
	});
});
