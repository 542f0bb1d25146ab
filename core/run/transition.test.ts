import { describe, expect, it } from "vitest";
import { verifyEvidence } from "../evidence/chain.ts";
import type { Evidence } from "../evidence/record.ts";
import { CALLER, cheapDigest, SampleRun } from "./sample-run.ts";

const pendingOf = (run: SampleRun): string[] =>
	[...run.approvals.values()].filter((one) => one.status === "pending").map((one) => one.approval_id);
const statesOf = (run: SampleRun): string[] =>
	[...run.calls.values()].sort((a, b) => a.ordinal - b.ordinal).map((call) => call.state);

describe("a governed call", () => {
	it("is dispatched once, answered once, and closes its turn", () => {
		const run = new SampleRun();
		run.create();
		run.decide([["note", "c1", { to: "A" }]]);
		expect(statesOf(run)).toEqual(["DISPATCHED"]);
		const invoke = run.takeInvoke();
		expect(invoke?.call.frozen).toEqual({ to: "A" });
		run.succeed(invoke as never);
		expect(statesOf(run)).toEqual(["COMPLETED"]);
		expect(run.state?.run).toMatchObject({ status: "awaiting_decision", turn: 2, turn_open: false });
		expect(run.toolMessages).toHaveLength(1);
	});

	it("ignores a second report of the same attempt", () => {
		const run = new SampleRun();
		run.create();
		run.decide([["note", "c1", {}]]);
		const invoke = run.takeInvoke() as never;
		run.succeed(invoke);
		const rows = run.succeed(invoke).rows;
		expect(rows).toEqual([]);
	});

	it("writes nothing when nothing happens", () => {
		const run = new SampleRun();
		run.create();
		expect(run.step({ kind: "running", tool_call_id: "call_x", attempt: 1 }).rows).toEqual([]);
	});

	it("says every state of a call in order", () => {
		const run = new SampleRun();
		run.create();
		run.decide([["find", "c1", {}]]);
		run.succeed(run.takeInvoke() as never);
		const states = run.log.filter((row) => row.event === "call.state").map((row) => row.data.state);
		expect(states).toEqual(["PENDING", "DISPATCHED", "RUNNING", "COMPLETED"]);
		expect(run.log.map((row) => row.seq)).toEqual(run.log.map((_, index) => index + 1));
	});

	it("keeps at most four in flight, the rest in order", () => {
		const run = new SampleRun();
		run.create();
		run.decide(Array.from({ length: 6 }, (_, n) => ["find", `c${n}`, { to: String(n) }]));
		expect(statesOf(run)).toEqual(["DISPATCHED", "DISPATCHED", "DISPATCHED", "DISPATCHED", "PENDING", "PENDING"]);
		run.succeed(run.takeInvoke() as never);
		expect(statesOf(run)[4]).toBe("DISPATCHED");
		expect(run.state?.run.status).toBe("executing");
	});
});

describe("consume-and-start", () => {
	const waiting = (): { run: SampleRun; approval_id: string } => {
		const run = new SampleRun();
		run.create();
		run.decide([["pay", "c1", { to: "A" }]]);
		return { run, approval_id: pendingOf(run)[0] as string };
	};
	it("spends the grant in the step that dispatches", () => {
		const { run, approval_id } = waiting();
		run.approve(approval_id);
		expect(run.approvals.get(approval_id)?.status).toBe("consumed");
		expect(statesOf(run)).toEqual(["DISPATCHED"]);
		expect(run.approve(approval_id).problem).toMatchObject({ status: 409, code: "already_decided" });
		expect(run.effects.filter((effect) => effect.kind === "invoke")).toHaveLength(1);
	});
	it("does not start a write without word from control, and starts it when there is", () => {
		const { run, approval_id } = waiting();
		run.lease = null;
		run.approve(approval_id);
		expect(run.approvals.get(approval_id)?.status).toBe("approved");
		expect(statesOf(run)).toEqual(["PENDING"]);
		const timer = [...run.due.values()].find((due) => due.kind === "start");
		run.lease = {};
		run.now += 1_000;
		run.step({ kind: "due", what: "start", ref: timer?.ref as string, world: run.world() });
		expect(statesOf(run)).toEqual(["DISPATCHED"]);
		expect(run.approvals.get(approval_id)?.status).toBe("consumed");
	});
	it("does not act on a stale lease", () => {
		const { run, approval_id } = waiting();
		const world = run.world();
		run.now += 6_000;
		run.approve(approval_id, "approve", { world });
		expect(statesOf(run)).toEqual(["PENDING"]);
	});
	it.each([
		["the principal was revoked", { lease: { revoked_principals: ["usr_o"] } }, "policy_denied"],
		["the tool is gone", { registry_rev: 2, tools: [] }, "definition_changed"],
	])("is judged again: %s", (_name, change, reason) => {
		const { run, approval_id } = waiting();
		Object.assign(run, change);
		expect(run.approve(approval_id).problem).toMatchObject({ status: 409, code: "approval_superseded" });
		expect(run.approvals.get(approval_id)?.status).toBe("superseded");
		expect([...run.calls.values()][0]).toMatchObject({ state: "REFUSED", refusal: { reason } });
		expect(run.effects.filter((effect) => effect.kind === "invoke")).toEqual([]);
	});
	it("waits while the tenant is halted", () => {
		const { run, approval_id } = waiting();
		run.lease = { halts: [{ scope: "tenant", since: 0 }] };
		expect(run.approve(approval_id).problem).toBeNull();
		expect(statesOf(run)).toEqual(["PENDING"]);
	});
	it("expires, is told, and cannot be decided afterwards", () => {
		const { run, approval_id } = waiting();
		run.now += 73 * 3_600_000;
		expect(run.approve(approval_id).problem).toMatchObject({ status: 410 });
		expect(statesOf(run)).toEqual(["EXPIRED"]);
		expect(run.state?.run.status).toBe("awaiting_decision");
	});
	it("does not lose the time that a halt took", () => {
		const { run, approval_id } = waiting();
		const hours = 3_600_000;
		run.now += 80 * hours;
		run.lease = { halted: [{ scope: "tenant", since: run.now - 60 * hours, until: run.now - 50 * hours }] };
		run.step({ kind: "due", what: "approval_expiry", ref: approval_id, world: run.world() });
		expect(run.approvals.get(approval_id)?.status).toBe("pending");
		expect(run.due.get(`approval_expiry:${approval_id}`)?.at).toBe(run.now + 2 * hours);
		expect(run.approve(approval_id).problem).toBeNull();
		expect(statesOf(run)).toEqual(["DISPATCHED"]);
	});
	it("takes no word from an agent", () => {
		const { run, approval_id } = waiting();
		const step = run.approve(approval_id, "approve", { by: { ...CALLER, kind: "agent" } });
		expect(step.problem?.status).toBe(403);
		expect(step.rows).toEqual([]);
	});
	it("an edit is a new call with a new hash; the old approval opens nothing", () => {
		const { run, approval_id } = waiting();
		const before = [...run.calls.values()][0];
		run.step({
			kind: "approval_edited",
			approval_id,
			approval: null,
			arguments: { to: "B" },
			by: CALLER,
			world: run.world(),
		});
		const [second] = pendingOf(run);
		expect(second).not.toBe(approval_id);
		expect(run.approve(approval_id).problem?.code).toBe("approval_superseded");
		run.approve(second as string);
		const invoke = run.takeInvoke();
		expect(invoke?.call.frozen).toEqual({ to: "B" });
		expect(invoke?.call.input_hash).not.toBe(before?.input_hash);
		run.succeed(invoke as never);
		expect(run.toolMessages).toHaveLength(1);
		expect(run.state?.run.turn).toBe(2);
	});
});

describe("clocks", () => {
	it("stand still while the run rests", () => {
		const run = new SampleRun();
		run.create();
		run.now += 50 * 86_400_000;
		run.decide([["note", "c1", {}]]);
		const invoke = run.takeInvoke();
		expect(invoke?.timeout_ms).toBe(60_000);
	});
	it("the session's end suspends the run, and an approval given then starts nothing until it is resumed", () => {
		const run = new SampleRun();
		run.create({ limits: { turns: 20, turn_timeout_ms: 120_000, session_timeout_ms: 130_000, max_tokens: 0 } });
		run.decide([["note", "c1", {}]]);
		run.now += 100_000;
		run.succeed(run.takeInvoke() as never);
		run.decide([
			["note", "c2", {}],
			["pay", "c3", {}],
		]);
		run.takeInvoke();
		run.now += 31_000;
		run.step({ kind: "due", what: "clock", ref: "", world: run.world() });
		expect(run.state?.run).toMatchObject({ status: "suspended", error: { code: "session_timeout" } });
		run.approve(pendingOf(run)[0] as string);
		expect(run.takeInvoke()).toBeUndefined();
		run.step({ kind: "resumed", world: run.world() });
		expect(run.takeInvoke()?.call.tool_id).toBe("pay");
	});
});

describe("evidence", () => {
	it("is one chain over refused, waiting, denied and done, and shows what was changed or cut", () => {
		const run = new SampleRun();
		run.create();
		run.decide([
			["find", "c1", {}],
			["pay", "c2", {}],
			["nope", "c3", {}],
		]);
		run.succeed(run.takeInvoke() as never);
		run.approve(pendingOf(run)[0] as string, "deny");
		const chain = run.log
			.filter((row) => row.event === "evidence.recorded")
			.map((row) => row.data as unknown as Evidence);
		expect(chain.map((one) => one.outcome)).toEqual(["waiting", "refused", "success", "denied"]);
		const { head_hash, evidence_count: count } = run.state?.run ?? { head_hash: "", evidence_count: 0 };
		const check = (list: Evidence[]) =>
			verifyEvidence(
				list,
				{ head_hash, count },
				cheapDigest,
				(text, signature) => signature === `signed ${text.slice(0, 8)}`,
			);
		expect(check(chain)).toEqual({ valid: true, checked: 4, broken_at: null });
		const changed = chain.map((one, n) => (n === 1 ? { ...one, outcome: "success" as const } : one));
		expect(check(changed)).toMatchObject({ valid: false, broken_at: chain[1]?.seq });
		expect(check(chain.filter((_, n) => n !== 2))).toMatchObject({ valid: false, broken_at: chain[3]?.seq });
		expect(check(chain.slice(0, 2))).toMatchObject({ valid: false, checked: 2 });
	});
});
