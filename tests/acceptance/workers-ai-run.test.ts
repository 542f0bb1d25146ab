/** Planner kind `workers_ai` end to end behind its binding, in workerd: tests/support/fake-ai.ts is bound as `AI`. */
import { beforeAll, describe, expect, it } from "vitest";
import { plannerMissing } from "#objects/agent-run/planners.ts";
import { seedTenant, type TestTenant } from "../support/client.ts";
import { answer, asked, calls, managedRun, sse, toolCall } from "./provider.ts";
import { approve, callOf, ledger, ledgerTool, PAY, READ, type Run, rested } from "./tools.ts";

let tenant: TestTenant;
let ledgerKey: string;
beforeAll(async () => {
	tenant = await seedTenant();
	ledgerKey = await ledgerTool(tenant, "pay", PAY);
	await ledgerTool(tenant, "find", READ);
});
const newModel = (): string => `@cf/test/${crypto.randomUUID()}`;
const start = (model: string, turns: string[]): Promise<Run> =>
	managedRun(tenant, model, turns, { planner: { kind: "workers_ai", model } });

describe("planner kind workers_ai", () => {
	it("is governed like any other: offered tools, an approval, one effect, an answer", async () => {
		const model = newModel();
		const waiting = await start(model, [
			calls(["c", "find", { q: "x" }]),
			calls(["p", "pay", { to: "A", amount: 1 }]),
			answer("paid"),
		]);
		expect(waiting).toMatchObject({ status: "awaiting_approval", planner: { kind: "workers_ai", model } });
		expect(await ledger(ledgerKey)).toHaveLength(0);
		expect((await approve(tenant, waiting.pending_approvals[0])).status).toBe(200);
		const done = await rested(tenant, waiting.run_id, waiting.seq);
		expect(done).toMatchObject({ status: "completed", answer: "paid", usage: { prompt_tokens: 30 } });
		expect(await ledger(ledgerKey)).toHaveLength(1);
		const requests = await asked(model);
		expect(requests).toHaveLength(3);
		expect(requests[0].body).toMatchObject({ model, stream: true, max_tokens: 32_768 });
		expect(requests[0].body.tools.map((tool: any) => tool.function.name)).toContain("pay");
		// The key of the other planner has no business here.
		expect(JSON.stringify(requests)).not.toContain("test-planner-key");
	});

	it("T03: a turn that was cut off runs nothing", async () => {
		const done = await start(newModel(), [
			sse([{ role: "assistant", content: null }, toolCall("c", "find", '{"q":"x')], "length"),
			answer("ok"),
		]);
		expect(callOf(done, "c")).toMatchObject({ state: "REFUSED", refusal: { reason: "truncated_output" } });
		expect(done).toMatchObject({ status: "completed", answer: "ok" });
	});

	it("what the binding throws ends the run with a code of Belay's own, without the platform's words", async () => {
		const failed = await start(newModel(), ["status:400"]);
		expect(failed).toMatchObject({ status: "failed", answer: null });
		expect(failed.error.code).toMatch(/^planner_/);
		expect(JSON.stringify(failed)).not.toContain("as asked");
	});

	it("is said to be missing where a deployment has no such binding", () => {
		const env = { BELAY_PLANNER_API_KEY: "key" } as unknown as Env;
		expect(plannerMissing(env, "workers_ai")).toMatch(/no Workers AI binding/);
		expect(plannerMissing({ ...env, AI: {} } as unknown as Env, "workers_ai")).toBeNull();
	});
});
