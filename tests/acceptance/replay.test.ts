/** L5, decision 38: what a run recorded is played again, without the world or, asked for, with it. */
import { abortAllDurableObjects } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import { answer, calls, managedRun, sse, toolCall } from "./provider.ts";
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
const keys: Record<string, string> = {};
beforeAll(async () => {
	tenant = await seedTenant();
	keys.find = await ledgerTool(tenant, "find", READ);
	keys.pay = await ledgerTool(tenant, "pay", PAY);
	keys.note = await ledgerTool(tenant, "note");
	await ledgerTool(tenant, "copy", { ...READ, implementation: { kind: "builtin", name: "echo" } });
});

const newModel = (): string => `m-${crypto.randomUUID()}`;
const managed = (...turns: string[]): Promise<Run> => managedRun(tenant, newModel(), turns);
const seen = async (): Promise<number[]> =>
	Promise.all(Object.values(keys).map(async (key) => (await ledger(key)).length));
const replay = (run_id: string, body?: unknown, key = tenant.operator, headers = {}) =>
	call("POST", `/v1/runs/${run_id}/replay`, body, key, { prefer: "wait=20", ...headers });
async function replayed(run_id: string, mode: "recorded" | "live" = "recorded", key = tenant.operator): Promise<Run> {
	const { status, body, text } = await replay(run_id, { mode }, key);
	if (status !== 201) throw new Error(`${status} ${text}`);
	return body;
}
const outcomes = (run: Run) => run.calls.map((one: Run) => [one.function_name, one.state, one.source]);
const evidence = async (run: Run): Promise<Run[]> =>
	(await call("GET", `/v1/runs/${run.run_id}/evidence`, undefined, tenant.operator)).body.data;

/** Reads, a payment that a person approves, a write that nobody is asked about, an answer. */
async function recorded(): Promise<Run> {
	const waiting = await managed(
		calls(["c1", "find", { q: "x" }], ["c2", "pay", { to: "A", amount: 1 }]),
		calls(["c3", "note", { text: "paid" }]),
		answer("all done"),
	);
	expect((await approve(tenant, waiting.pending_approvals[0])).status).toBe(200);
	const done = await rested(tenant, waiting.run_id, waiting.seq);
	expect(done.status).toBe("completed");
	return done;
}

describe("a recorded replay", () => {
	it("comes to the same end with the same results, invokes nothing and asks nobody", async () => {
		const source = await recorded();
		const before = await seen();
		const again = await replayed(source.run_id);
		expect(again).toMatchObject({
			status: "completed",
			answer: "all done",
			goal: source.goal,
			turn: source.turn,
			planner: { kind: "scripted" },
			replay: { run_id: source.run_id, mode: "recorded" },
			pending_approvals: [],
		});
		expect(again.run_id).not.toBe(source.run_id);
		expect(again.session_id).not.toBe(source.session_id);
		expect(outcomes(again)).toEqual([
			["find", "COMPLETED", "recorded"],
			["pay", "COMPLETED", "recorded"],
			["note", "COMPLETED", "recorded"],
		]);
		for (const id of ["c1", "c2", "c3"]) {
			expect(callOf(again, id).result).toEqual(callOf(source, id).result);
			expect(callOf(again, id).input_hash).toBe(callOf(source, id).input_hash);
			expect(callOf(again, id).attempts).toEqual([]);
		}
		expect(await seen()).toEqual(before);
		expect(await getRun(tenant, source.run_id)).toEqual(source);
	});

	it("says in its evidence that nothing was invoked, and the chain holds", async () => {
		const source = await recorded();
		const again = await replayed(source.run_id);
		const records = await evidence(again);
		expect(records).toHaveLength(3);
		for (const record of records) {
			expect(record).toMatchObject({
				outcome: "success",
				envelope: { source: "recorded", attempts: 0, approval: null },
			});
			expect(record.proves).toContain("the tool was not invoked by this run");
			expect(record.proves.join()).not.toContain("the tool was invoked with");
			expect(record.facts[0]).toContain(callOf(source, "c1").tool_call_id.slice(0, 37));
		}
		const { body } = await call("GET", `/v1/runs/${again.run_id}/evidence/verify`, undefined, tenant.operator);
		expect(body).toEqual({ valid: true, checked: 3, broken_at: null });
	});

	it("plays a replay as well, and goes on over an eviction", async () => {
		const source = await recorded();
		const first = await replayed(source.run_id);
		await abortAllDurableObjects();
		const second = await replayed(first.run_id);
		expect(second).toMatchObject({ status: "completed", answer: "all done", replay: { run_id: first.run_id } });
		expect(callOf(second, "c2").result).toEqual(callOf(source, "c2").result);
	});

	it("keeps denials, their twins, failures and unknown outcomes as they were", async () => {
		const broken = await ledgerTool(tenant, "broken", {}, "status/503");
		const waiting = await managed(
			calls(["c1", "pay", { to: "D", amount: 1 }], ["c2", "broken", { text: "x" }]),
			calls(["c3", "pay", { to: "D", amount: 1 }]),
			answer("denied"),
		);
		await approve(tenant, waiting.pending_approvals[0], "deny", { reason: "too much" });
		const source = await rested(tenant, waiting.run_id, waiting.seq);
		const before = (await ledger(broken)).length;
		const again = await replayed(source.run_id);
		expect(callOf(source, "c2").state).toBe("OUTCOME_UNKNOWN");
		for (const id of ["c1", "c2", "c3"]) {
			const { state, error, refusal } = callOf(source, id);
			expect(callOf(again, id)).toMatchObject({ state, error, refusal });
		}
		expect(callOf(again, "c3").refusal.reason).toBe("duplicate_of_denied");
		expect((await evidence(again)).map(({ outcome }) => outcome).sort()).toEqual(["denied", "refused", "unknown"]);
		expect((await ledger(broken)).length).toBe(before);
	});

	it("gives an edited call the end that the edit had", async () => {
		const waiting = await managed(calls(["c1", "pay", { to: "E", amount: 100 }]), answer("paid less"));
		const path = `/v1/approvals/${waiting.pending_approvals[0].approval_id}/edit`;
		const edited = await call("POST", path, { arguments: { to: "E", amount: 1 } }, tenant.approver);
		expect(edited.status).toBe(200);
		const now = await getRun(tenant, waiting.run_id);
		await approve(tenant, now.pending_approvals[0]);
		const source = await rested(tenant, waiting.run_id, now.seq);
		const before = await seen();
		const again = await replayed(source.run_id);
		expect(again).toMatchObject({ status: "completed", answer: "paid less" });
		expect(callOf(again, "c1")).toMatchObject({ state: "COMPLETED", arguments: { to: "E", amount: 100 } });
		expect(callOf(again, "c1").notes.join()).toContain("edited the arguments before approval");
		expect(await seen()).toEqual(before);
	});

	it("goes on where the user did", async () => {
		const first = await managed(answer("one"), calls(["c1", "find", { q: "y" }]), answer("two"));
		expect(first.answer).toBe("one");
		const path = `/v1/runs/${first.run_id}/messages`;
		const wait = { prefer: "wait=20" };
		expect((await call("POST", path, { content: "and then?" }, tenant.operator, wait)).body.answer).toBe("two");
		expect(await replayed(first.run_id)).toMatchObject({ status: "completed", answer: "two", turn: 3 });
	});

	it("is judged by today's rules: another definition has no recorded end, a tool that is gone is unknown", async () => {
		await ledgerTool(tenant, "passing", READ);
		const source = await managed(calls(["c1", "passing", { q: "x" }]), answer("seen"));
		expect(callOf(source, "c1").state).toBe("COMPLETED");
		const changed = await ledgerTool(tenant, "passing", {
			...READ,
			version: "1.0.1",
			description: "It looks elsewhere now.",
		});
		const before = (await ledger(changed)).length;
		const other = await replayed(source.run_id);
		expect(callOf(other, "c1")).toMatchObject({ state: "REFUSED", refusal: { reason: "not_recorded" }, result: null });
		expect((await call("DELETE", "/v1/tools/passing", undefined, tenant.operator)).status).toBeLessThan(300);
		const gone = await replayed(source.run_id);
		expect(callOf(gone, "c1")).toMatchObject({ state: "REFUSED", refusal: { reason: "unknown_tool" }, result: null });
		expect((await ledger(changed)).length).toBe(before);
	});
});

describe("a live replay", () => {
	it("reads anew, and asks before every write, whatever policy and the old approval say", async () => {
		const source = await recorded();
		const before = await seen();
		const waiting = await replayed(source.run_id, "live");
		expect(waiting).toMatchObject({ status: "awaiting_approval", replay: { run_id: source.run_id, mode: "live" } });
		expect(callOf(waiting, "c1")).toMatchObject({ state: "COMPLETED", source: "live" });
		expect(callOf(waiting, "c2").state).toBe("AWAITING_APPROVAL");
		const [find = 0, pay = 0, note = 0] = before;
		expect(await seen()).toEqual([find + 1, pay, note]);
		// The old grant opens nothing here.
		const old = callOf(source, "c2");
		const { tool_id, tool_call_id, input_hash, approval_id } = old;
		const spent = await call(
			"POST",
			`/v1/approvals/${approval_id}/decision`,
			{ decision: "approve", tool_id, tool_call_id, input_hash },
			tenant.approver,
		);
		expect(spent.status).toBe(409);
		expect((await approve(tenant, waiting.pending_approvals[0])).status).toBe(200);
		const next = await rested(tenant, waiting.run_id, waiting.seq);
		// `note` asks nobody elsewhere.
		expect(next.status).toBe("awaiting_approval");
		expect(next.pending_approvals[0]).toMatchObject({ tool_id: "note", rule_ids: ["replay:write_asks"] });
		expect(await seen()).toEqual([find + 1, pay + 1, note]);
		await abortAllDurableObjects();
		expect((await approve(tenant, next.pending_approvals[0])).status).toBe(200);
		expect(await rested(tenant, next.run_id, next.seq)).toMatchObject({ status: "completed", answer: "all done" });
		expect(await seen()).toEqual([find + 1, pay + 1, note + 1]);
	});

	it("asks for a stand-in that writes, and for what a person made of a call", async () => {
		await ledgerTool(tenant, "fragile", { ...READ, fallback: { tool_id: "note", args: {} } }, "status/404");
		const source = await managed(calls(["c1", "fragile", { text: "x" }]), answer("seen"));
		expect(callOf(source, "c1")).toMatchObject({ state: "COMPLETED", source: "fallback" });
		const before = await seen();
		const again = await replayed(source.run_id);
		expect(callOf(again, "c1")).toMatchObject({ state: "COMPLETED", result: callOf(source, "c1").result });
		expect(again.calls).toHaveLength(1);
		const waiting = await replayed(source.run_id, "live");
		expect(waiting).toMatchObject({ status: "awaiting_approval", pending_approvals: [{ tool_id: "note" }] });
		const path = `/v1/approvals/${waiting.pending_approvals[0].approval_id}/edit`;
		const edited = await call("POST", path, { arguments: { text: "y" } }, tenant.approver);
		expect(edited.status).toBe(200);
		expect(await getRun(tenant, waiting.run_id)).toMatchObject({
			status: "awaiting_approval",
			pending_approvals: [{ tool_id: "note", arguments: { text: "y" } }],
		});
		expect(await seen()).toEqual(before);
	});

	it("never gives meaning to arguments that had none: cut, unreadable and unoffered calls stay what they were", async () => {
		const source = await managed(
			sse([{ role: "assistant", content: null }, toolCall("cut", "find", '{"q":"x"}')], "length"),
			sse([{ role: "assistant", content: null }, toolCall("bad", "find", "not json")], "tool_calls"),
			calls(["new", "find_later", { q: "x" }]),
			answer("nothing"),
		);
		expect(outcomes(source).map(([, state]: string[]) => state)).toEqual(["REFUSED", "REFUSED", "REFUSED"]);
		const later = await ledgerTool(tenant, "find_later", READ);
		const before = await seen();
		const again = await replayed(source.run_id, "live");
		expect(again).toMatchObject({ status: "completed", answer: "nothing" });
		expect(callOf(again, "cut").refusal.reason).toBe("truncated_output");
		expect(callOf(again, "bad").refusal.reason).toBe("arguments_not_json");
		expect(callOf(again, "new").refusal.reason).toBe("arguments_not_json");
		expect(await ledger(later)).toEqual([]);
		expect(await seen()).toEqual(before);
	});

	it.each(["recorded", "live"] as const)(
		"%s: a placeholder that a model wrote is text, a script's is filled",
		async (mode) => {
			const text = "{{calls.c1.result.text}}";
			const run = await externalRun(tenant);
			await decide(tenant, run.run_id, turn(["copy", "c1", { text: "secret" }]));
			await decide(tenant, run.run_id, turn(["copy", "c2", { text }]));
			await decide(tenant, run.run_id, { content: `it was ${text}` });
			const again = await replayed(run.run_id, mode);
			expect(again).toMatchObject({ status: "completed", answer: `it was ${text}` });
			expect(callOf(again, "c2")).toMatchObject({ state: "COMPLETED", arguments: { text } });
			const script = [
				turn(["copy", "c1", { text: "7" }]),
				turn(["copy", "c2", { text }]),
				{ content: `it was ${text}` },
			];
			const body = { goal: "x", planner: { kind: "scripted", script } };
			const scripted = await call("POST", "/v1/runs", body, tenant.operator, { prefer: "wait=20" });
			expect(scripted.body.answer).toBe("it was 7");
			const twice = await replayed((await replayed(scripted.body.run_id, mode)).run_id, mode);
			expect(twice).toMatchObject({ status: "completed", answer: "it was 7" });
		},
	);
});

describe("whose replay it is", () => {
	it("another tenant's run, an unknown one, and one that its asker may not read are the same 404", async () => {
		const source = await recorded();
		const other = await seedTenant();
		const body = { mode: "live" };
		const unknown = await replay(`run_${"0".repeat(32)}`, body);
		expect([unknown.status, unknown.body.code]).toEqual([404, "not_found"]);
		const before = await seen();
		for (const key of [other.operator, other.agent, tenant.agent, tenant.limited]) {
			const answered = await replay(source.run_id, body, key);
			const { trace_id: _a, ...told } = answered.body;
			const { trace_id: _b, ...same } = unknown.body;
			expect(answered.status).toBe(404);
			expect(told).toEqual(same);
		}
		expect(await seen()).toEqual(before);
	});

	it("acts for the replayer: who may read but not call gets no call, recorded or live, and no result", async () => {
		const source = await recorded();
		const before = await seen();
		for (const mode of ["recorded", "live"] as const) {
			const again = await replayed(source.run_id, mode, tenant.reader);
			const writes = again.calls.filter((made: Run) => made.function_name !== "find");
			expect(writes).toHaveLength(2);
			for (const one of writes) {
				expect(one).toMatchObject({ state: "REFUSED", refusal: { reason: "unknown_tool" }, result: null });
			}
			const [, pay, note] = await seen();
			expect([pay, note]).toEqual(before.slice(1));
		}
	});

	it("is the caller's own run: the owner of the recorded one steers it no more than any other", async () => {
		const source = await managed(calls(["c1", "find", { q: "x" }]), answer("seen"));
		const again = await replayed(source.run_id, "recorded", tenant.reader);
		expect((await call("GET", `/v1/runs/${again.run_id}`, undefined, tenant.agent)).status).toBe(404);
		const decision = turn(["note", "x", { text: "mine" }]);
		const { status, body } = await call("POST", `/v1/runs/${again.run_id}/decisions`, decision, tenant.reader);
		expect([status, body.code]).toEqual([409, "not_external"]);
	});
});

describe("what can be replayed", () => {
	it("a finished run that decided something", async () => {
		const open = await externalRun(tenant);
		expect((await replay(open.run_id)).body).toMatchObject({ status: 409, code: "not_replayable" });
		await call("POST", `/v1/runs/${open.run_id}/cancel`, undefined, tenant.operator);
		expect((await replay(open.run_id)).body).toMatchObject({ status: 409, code: "not_replayable" });
		const failed = await externalRun(tenant);
		await decide(tenant, failed.run_id, turn(["find", "c1", { q: "z" }]));
		await call("POST", `/v1/runs/${failed.run_id}/cancel`, undefined, tenant.operator);
		// What was never answered has no answer in the replay either.
		const again = await replayed(failed.run_id);
		expect(again).toMatchObject({ status: "failed", answer: null, error: { code: "planner_error" } });
		expect(again.error.message).toBe("the recording ends here, without an answer");
	});

	it("one that fits another run: a larger one is told so", async () => {
		const run = await externalRun(tenant);
		// Each is kept twice, as argument and as result: some 480,000 characters.
		for (let n = 0; n < 14; n++)
			await decide(tenant, run.run_id, turn(["copy", `c${n}`, { text: `${n} ${"x".repeat(240_000)}` }]));
		await decide(tenant, run.run_id, { content: "done" });
		const { body } = await replay(run.run_id);
		expect(body).toMatchObject({ status: 409, code: "not_replayable" });
		expect(body.detail).toMatch(/^the recording is larger than/);
	});

	it("once per Idempotency-Key, and in one of two modes", async () => {
		const more = calls(["c2", "pay", { to: "A", amount: 1 }]);
		const source = await managed(calls(["c1", "find", { q: "x" }]), answer("seen"), more);
		const key = { "idempotency-key": crypto.randomUUID() };
		const first = await replay(source.run_id, undefined, tenant.operator, key);
		const second = await replay(source.run_id, { mode: "recorded" }, tenant.operator, key);
		expect([first.status, second.body.run_id]).toEqual([201, first.body.run_id]);
		expect(first.headers.get("location")).toBe(`/v1/runs/${first.body.run_id}`);
		const path = `/v1/runs/${source.run_id}/messages`;
		const asks = await call("POST", path, { content: "and?" }, tenant.operator, { prefer: "wait=20" });
		expect(asks.body.status).toBe("awaiting_approval");
		const third = await replay(source.run_id, undefined, tenant.operator, key);
		expect([third.status, third.body.run_id]).toEqual([201, first.body.run_id]);
		expect((await replay(source.run_id)).body.code).toBe("not_replayable");
		await call("POST", `/v1/runs/${source.run_id}/cancel`, undefined, tenant.operator);
		const other = await replay(source.run_id, { mode: "live" }, tenant.operator, key);
		expect([other.status, other.body.code]).toEqual([409, "idempotency_conflict"]);
		const refused: [unknown, string][] = [
			[{ mode: "LIVE" }, "/mode"],
			[{ mode: "recorded", script: [{ content: "mine" }] }, "/script"],
			[{ mode: "recorded", results: {} }, "/results"],
		];
		for (const [body, field] of refused) {
			const answered = await replay(source.run_id, body);
			expect([answered.status, answered.body.errors[0].field]).toEqual([422, field]);
		}
	});
});
