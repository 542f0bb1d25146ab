/** L4: a run's budget of calls holds whatever is parallel, retried, approved late, stood in for or restarted. */
import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { call, pluck, seedTenant, type TestTenant } from "../support/client.ts";
import { answering, askedOf, calling, script } from "../support/planner-script.ts";
import {
	approve,
	callOf,
	decide,
	externalRun,
	getRun,
	ledger,
	ledgerTool,
	PAY,
	READ,
	type Run,
	rested,
	turn,
} from "./tools.ts";

let tenant: TestTenant;
let act: string;
let pay: string;
let backup: string;

beforeAll(async () => {
	tenant = await seedTenant();
	act = await ledgerTool(tenant, "act");
	pay = await ledgerTool(tenant, "pay", PAY);
	backup = await ledgerTool(tenant, "backup", READ);
	await ledgerTool(tenant, "flaky", READ, "flaky/1");
	await ledgerTool(tenant, "broken", { ...READ, fallback: { tool_id: "backup", args: {} } }, "status/404");
	await ledgerTool(tenant, "kept", { ...READ, cache: { tier: "realtime" } });
});

const limited = (max_calls: number) => ({ limits: { max_calls } });
const restart = (run: Run): Promise<void> => evictDurableObject(env.AGENT_RUN.getByName(run.run_id));
const states = (run: Run) => pluck(run.calls, "state");

describe("a budget of calls", () => {
	it("lets so many start and no more, also in parallel, and the planner is told", async () => {
		const since = (await ledger(act)).length;
		const run = await externalRun(tenant, limited(2));
		const all = ["a", "b", "c"].map((id): [string, string, unknown] => ["act", id, { to: id }]);
		const done = await decide(tenant, run.run_id, turn(...all));
		expect(states(done.run)).toEqual(["COMPLETED", "COMPLETED", "REFUSED"]);
		expect((await ledger(act)).length - since).toBe(2);
		expect(callOf(done.run, "c").refusal).toMatchObject({ reason: "budget_exhausted", stage: "invoke" });
		expect(JSON.parse(done.messages[2].content).error.errors[0].error).toContain("all of the run's 2 calls");
		expect(done.run.usage.calls).toBe(2);
	});

	it("is not renewed by turns, messages or the loss of memory", async () => {
		const run = await externalRun(tenant, limited(2));
		for (const id of ["a", "b"]) {
			expect(states((await decide(tenant, run.run_id, turn(["act", id, { to: id }]))).run)).toEqual(["COMPLETED"]);
			await restart(run);
		}
		await call("POST", `/v1/runs/${run.run_id}/messages`, { content: "go on" }, tenant.operator);
		const third = await decide(tenant, run.run_id, turn(["act", "c", { to: "c" }]));
		expect(callOf(third.run, "c").refusal.reason).toBe("budget_exhausted");
		expect((await getRun(tenant, run.run_id)).usage.calls).toBe(2);
	});

	it("counts a retried call once and a declared fallback as a call of its own", async () => {
		const run = await externalRun(tenant, limited(2));
		const retried = await decide(tenant, run.run_id, turn(["flaky", "a", {}]), tenant.operator, { prefer: "wait=20" });
		expect([callOf(retried.run, "a").attempts.length, retried.run.usage.calls]).toEqual([2, 1]);
		const since = (await ledger(backup)).length;
		const broken = await decide(tenant, run.run_id, turn(["broken", "b", {}]), tenant.operator, { prefer: "wait=20" });
		expect(broken.run.usage.calls).toBe(2);
		const child = broken.run.calls.find((one: Run) => one.tool_id === "backup");
		expect([child?.state, child?.refusal?.reason]).toEqual(["REFUSED", "budget_exhausted"]);
		expect((await ledger(backup)).length).toBe(since);
	});

	it("asks nobody about a call that may not start, and judges an approved one again", async () => {
		const since = (await ledger(pay)).length;
		const poor = await externalRun(tenant, limited(0));
		const refused = await decide(tenant, poor.run_id, turn(["pay", "a", { to: "A" }]));
		expect([refused.pending_approvals, callOf(refused.run, "a").refusal.reason]).toEqual([[], "budget_exhausted"]);
		const run = await externalRun(tenant, limited(1));
		const asked = await decide(tenant, run.run_id, turn(["pay", "a", { to: "A" }], ["pay", "b", { to: "B" }]));
		expect(asked.pending_approvals).toHaveLength(2);
		expect((await approve(tenant, asked.pending_approvals[0])).status).toBe(200);
		const late = await approve(tenant, asked.pending_approvals[1]);
		expect([late.status, late.body.code]).toEqual([409, "approval_superseded"]);
		await rested(tenant, run.run_id, asked.run.seq);
		expect((await ledger(pay)).length - since).toBe(1);
	});

	it("is not spent by what a cache answers or what is refused", async () => {
		const run = await externalRun(tenant, limited(2));
		await decide(tenant, run.run_id, turn(["kept", "a", { q: "x" }]));
		const again = await decide(
			tenant,
			run.run_id,
			turn(["kept", "b", { q: "x" }], ["act", "c", "{"], ["act", "d", { to: 7 }]),
		);
		expect(states(again.run)).toEqual(["COMPLETED", "REFUSED", "REFUSED"]);
		expect([callOf(again.run, "b").source, again.run.usage.calls]).toEqual(["cache", 1]);
		const last = await decide(tenant, run.run_id, turn(["act", "e", { to: "E" }], ["kept", "f", { q: "x" }]));
		expect(states(last.run)).toEqual(["COMPLETED", "REFUSED"]);
		expect(last.run.usage.calls).toBe(2);
	});

	it("leaves a managed planner to answer with what it has", async () => {
		const turns = [calling([["act", "a", { to: "A" }]]), calling([["act", "b", { to: "B" }]]), answering("one done")];
		const model = await script(turns);
		const body = { goal: "do two", planner: { kind: "openai", model }, ...limited(1) };
		const run = await call("POST", "/v1/runs", body, tenant.operator, { prefer: "wait=20" });
		expect(run.body).toMatchObject({ status: "completed", answer: "one done", usage: { calls: 1 } });
		expect(await askedOf(model)).toHaveLength(3);
	});

	it.each([-1, 0.5, "5", null, 1e300])("of %j is not one", async (max_calls) => {
		const body = { goal: "x", planner: { kind: "external" }, limits: { max_calls } };
		const answer = await call("POST", "/v1/runs", body, tenant.operator);
		expect([answer.status, answer.body.errors[0].field]).toEqual([422, "/limits/max_calls"]);
	});
});
