/** L4, D07: a run's budget of money holds for its calls and its planner, whatever is parallel, retried, approved or restarted. */
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

const MILLI = { cost: { amount: 0.001 } };
let tenant: TestTenant;
let dear: string;
let pay: string;

beforeAll(async () => {
	tenant = await seedTenant();
	dear = await ledgerTool(tenant, "dear", { approval: { mode: "never" }, ...MILLI });
	pay = await ledgerTool(tenant, "pay", { ...PAY, ...MILLI });
	await ledgerTool(tenant, "free", READ);
	await ledgerTool(tenant, "flaky", { ...READ, ...MILLI }, "flaky/2");
	await ledgerTool(tenant, "kept", { ...READ, ...MILLI, cache: { tier: "realtime" } });
});

const limited = (max_cost_micro_usd: number) => ({ limits: { max_cost_micro_usd } });
const restart = (run: Run): Promise<void> => evictDurableObject(env.AGENT_RUN.getByName(run.run_id));
const states = (run: Run) => pluck(run.calls, "state");
async function managed(model: string, more: Record<string, unknown> = {}, key = tenant.operator) {
	const body = { goal: "look it up", planner: { kind: "openai", model }, ...more };
	return call("POST", "/v1/runs", body, key, { prefer: "wait=20" });
}

describe("calls", () => {
	it("start while the budget pays for them, also in parallel; what costs nothing still runs; the planner is told", async () => {
		const since = (await ledger(dear)).length;
		const run = await externalRun(tenant, limited(2_500));
		const four = ["a", "b", "c", "d"].map((id): [string, string, unknown] => ["dear", id, { to: id }]);
		const done = await decide(tenant, run.run_id, turn(...four, ["free", "e", {}]));
		expect(states(done.run)).toEqual(["COMPLETED", "COMPLETED", "REFUSED", "REFUSED", "COMPLETED"]);
		expect((await ledger(dear)).length - since).toBe(2);
		expect(done.run.usage.cost_micro_usd).toBe(2_000);
		expect(callOf(done.run, "c").refusal).toMatchObject({ reason: "budget_exhausted", stage: "invoke" });
		expect(JSON.parse(done.messages[2].content).error.errors[0].error).toContain("500 of the run's 2500 are left");
		const { data } = (await call("GET", `/v1/runs/${run.run_id}/evidence`, undefined, tenant.operator)).body;
		expect(data.map(({ outcome, envelope }: Run) => [outcome, envelope.cost_micro_usd])).toEqual(
			expect.arrayContaining([
				["success", 1_000],
				["refused", 0],
				["success", undefined],
			]),
		);
	});

	it("are counted over restarts, turns and messages", async () => {
		const run = await externalRun(tenant, limited(2_000));
		for (const id of ["a", "b"]) {
			expect(states((await decide(tenant, run.run_id, turn(["dear", id, { to: id }]))).run)).toEqual(["COMPLETED"]);
			await restart(run);
		}
		await call("POST", `/v1/runs/${run.run_id}/messages`, { content: "go on" }, tenant.operator);
		const third = await decide(tenant, run.run_id, turn(["dear", "c", { to: "c" }]));
		expect(callOf(third.run, "c").refusal.reason).toBe("budget_exhausted");
		expect((await getRun(tenant, run.run_id)).usage.cost_micro_usd).toBe(2_000);
	});

	it("that cannot be paid are not put before a person, and what a person approved is judged again", async () => {
		const since = (await ledger(pay)).length;
		const poor = await externalRun(tenant, limited(999));
		const refused = await decide(tenant, poor.run_id, turn(["pay", "a", { to: "A" }]));
		expect([refused.pending_approvals, callOf(refused.run, "a").refusal.reason]).toEqual([[], "budget_exhausted"]);
		const run = await externalRun(tenant, limited(1_500));
		const asked = await decide(tenant, run.run_id, turn(["pay", "a", { to: "A" }], ["pay", "b", { to: "B" }]));
		expect(asked.pending_approvals).toHaveLength(2);
		expect((await approve(tenant, asked.pending_approvals[0])).status).toBe(200);
		await restart(run);
		const late = await approve(tenant, asked.pending_approvals[1]);
		expect([late.status, late.body.code]).toEqual([409, "approval_superseded"]);
		const done = await rested(tenant, run.run_id, asked.run.seq);
		expect(done.usage.cost_micro_usd).toBe(1_000);
		expect((await ledger(pay)).length - since).toBe(1);
	});

	it("cost once for each attempt, and a retry that cannot be paid is not made", async () => {
		const run = await externalRun(tenant, limited(2_000));
		const done = await decide(tenant, run.run_id, turn(["flaky", "a", {}]), tenant.operator, { prefer: "wait=20" });
		const flaky = callOf(done.run, "a");
		expect([flaky.state, flaky.attempts.length, done.run.usage.cost_micro_usd]).toEqual(["FAILED", 2, 2_000]);
		expect(flaky.error.message).toContain("are left");
	});

	it("served from the cache cost nothing", async () => {
		const run = await externalRun(tenant, limited(5_000));
		await decide(tenant, run.run_id, turn(["kept", "a", { q: "x" }]));
		const again = await decide(tenant, run.run_id, turn(["kept", "b", { q: "x" }]));
		expect(callOf(again.run, "b").source).toBe("cache");
		expect((await getRun(tenant, run.run_id)).usage.cost_micro_usd).toBe(1_000);
	});

	it("of a run with nothing to spend are those that cost nothing", async () => {
		const run = await externalRun(tenant, limited(0));
		const done = await decide(tenant, run.run_id, turn(["free", "a", {}], ["dear", "b", {}]));
		expect(states(done.run)).toEqual(["COMPLETED", "REFUSED"]);
	});
});

describe("a managed planner", () => {
	// 10 prompt and 5 completion tokens a turn, at 100 and 200 micro-dollars each
	const TURN = 2_000;

	it("ends the run when its tokens went past the budget, and a next message does not renew it", async () => {
		const model = await script([calling([["dear", "a", { to: "A" }]]), answering("late"), answering("more")], "priced");
		const before = (await askedOf(model)).length;
		const { body: run } = await managed(model, limited(TURN + 1_500));
		expect(run).toMatchObject({ status: "failed", answer: null, error: { code: "cost_budget" } });
		expect(run.usage.cost_micro_usd).toBe(2 * TURN + 1_000);
		await restart(run);
		const path = `/v1/runs/${run.run_id}/messages`;
		const again = await call("POST", path, { content: "and?" }, tenant.operator, { prefer: "wait=20" });
		expect(again.body).toMatchObject({ status: "failed", error: { code: "cost_budget" } });
		expect((await askedOf(model)).length - before).toBe(2);
	});

	it("is not asked again when nothing is left, and not at all when there was nothing", async () => {
		const model = await script([calling([["free", "a", {}]]), answering("done")], "priced");
		const before = (await askedOf(model)).length;
		expect((await managed(model, limited(TURN))).body).toMatchObject({
			status: "failed",
			error: { code: "cost_budget" },
			usage: { cost_micro_usd: TURN },
		});
		expect((await askedOf(model)).length - before).toBe(1);
		expect((await managed(model, limited(0))).body).toMatchObject({ status: "failed", error: { code: "cost_budget" } });
		expect((await askedOf(model)).length - before).toBe(1);
	});

	it("answers within its budget, rounded up turn by turn; a model that costs nothing needs none", async () => {
		const low = await managed(await script([answering("done")], "priced-low"), limited(2));
		// 10 * 0.07 + 5 * 0.1 = 1.2
		expect(low.body).toMatchObject({ status: "completed", usage: { cost_micro_usd: 2 } });
		const given = await managed(await script([answering("done")], "given"), limited(0));
		expect(given.body).toMatchObject({ status: "completed", usage: { cost_micro_usd: 0 } });
	});

	it("whose price nobody said is refused a budget before anything begins; without a budget its cost is unknown", async () => {
		const model = await script([answering("done")]);
		const refused = await managed(model, limited(1_000_000));
		expect([refused.status, refused.body.code]).toEqual([422, "invalid_request"]);
		expect(refused.body.errors).toMatchObject([{ field: "/limits/max_cost_micro_usd" }]);
		expect(refused.body.errors[0].error).toContain("price");
		expect(await askedOf(model)).toHaveLength(0);
		const open = await managed(model);
		expect(open.body).toMatchObject({ status: "completed", usage: { cost_micro_usd: null } });
	});

	it("whose provider does not say what it used is stopped: its cost is not guessed", async () => {
		const silent = { prompt_tokens: 0, completion_tokens: 0 };
		const model = await script([calling([["dear", "a", {}]], silent), answering("done")], "priced");
		const since = (await ledger(dear)).length;
		const { body } = await managed(model, limited(1_000_000));
		expect(body).toMatchObject({ status: "failed", error: { code: "cost_unknown" }, usage: { cost_micro_usd: null } });
		expect((await ledger(dear)).length).toBe(since);
	});
});

describe("other currencies", () => {
	it("are named when a run with a budget would be offered such a tool, and never added up", async () => {
		const other = await seedTenant();
		await ledgerTool(other, "euro", { ...READ, cost: { amount: 1, currency: "EUR" } });
		const begin = (more: object) =>
			call("POST", "/v1/runs", { goal: "x", planner: { kind: "external" }, ...more }, other.operator);
		const refused = await begin(limited(10));
		expect(refused.status).toBe(422);
		expect(refused.body.errors).toMatchObject([{ field: "/limits/max_cost_micro_usd" }]);
		expect(refused.body.errors[0].error).toContain("`euro` costs in EUR");
		const pinned = await begin({ ...limited(10), tools: ["clock_now"] });
		expect(pinned.status).toBe(201);
		const run = await externalRun(other);
		const done = await decide(other, run.run_id, turn(["euro", "a", {}]));
		expect([callOf(done.run, "a").state, done.run.usage.cost_micro_usd]).toEqual(["COMPLETED", null]);
		// Published while a run with a budget goes on: offered, and not started.
		const later = await seedTenant();
		const begun = await externalRun(later, limited(10));
		await ledgerTool(later, "euro", { ...READ, cost: { amount: 1, currency: "EUR" } });
		// A person's word has the run look at the registry anew.
		await call("POST", `/v1/runs/${begun.run_id}/messages`, { content: "look" }, later.operator);
		const late = await decide(later, begun.run_id, turn(["euro", "a", {}]));
		expect(callOf(late.run, "a").refusal.errors[0].error).toContain("another currency");
	});
});

describe("a budget", () => {
	it.each([-1, 0.5, "5", null, 1e300])("of %j is not one", async (max_cost_micro_usd) => {
		const body = { goal: "x", planner: { kind: "external" }, limits: { max_cost_micro_usd } };
		const answer = await call("POST", "/v1/runs", body, tenant.operator);
		expect([answer.status, answer.body.errors[0].field]).toEqual([422, "/limits/max_cost_micro_usd"]);
	});
});
