/** Attacks on the run machine: each was a way to lose a word, act for nobody, or tell a planner what is not so. */
import { describe, expect, it } from "vitest";
import type { JsonObject } from "#core/json.ts";
import type { ToolVersion } from "#core/registry/descriptor.ts";
import { compileTool } from "#core/registry/register.ts";
import { sampleTool } from "#core/registry/sample-tool.ts";
import { CALLER, cheapDigest, SampleRun, TOOLS } from "#core/run/sample-run.ts";
import type { CallRecord } from "#core/run/state.ts";

const pendingOf = (run: SampleRun): string[] =>
	[...run.approvals.values()].filter((one) => one.status === "pending").map((one) => one.approval_id);
const callOf = (run: SampleRun, tool_id: string): CallRecord =>
	[...run.calls.values()].filter((call) => call.tool_id === tool_id).at(-1) as CallRecord;
const lost = { kind: "failed", code: "connection_lost", message: "gone", effect: "none", retryable: false } as const;
const settle = (run: SampleRun, tool_id: string, outcome: object): void => {
	const call = callOf(run, tool_id);
	run.step({
		kind: "settled",
		tool_call_id: call.tool_call_id,
		attempt: call.attempts.length,
		outcome: outcome as never,
		world: run.world(),
	});
};
const edit = (run: SampleRun, approval_id: string, args: JsonObject) =>
	run.step({
		kind: "approval_edited",
		approval_id,
		approval: run.approvals.get(approval_id) ?? null,
		arguments: args,
		by: CALLER,
		world: run.world(),
	});
const messages = (step: { rows: readonly { table: string }[] }): JsonObject[] =>
	step.rows.filter((row) => row.table === "message").map((row) => (row as unknown as { doc: JsonObject }).doc);

/** A run that knows more tools than the sample's. */
function runWith(...more: ToolVersion[]): SampleRun {
	const run = new SampleRun();
	run.tools = [...TOOLS, ...more];
	const kit = run.kit.bind(run);
	run.kit = () => {
		const base = kit();
		const own = new Map(more.map((version) => [version.definition_hash, version]));
		return {
			...base,
			tool: (hash) => {
				const found = own.get(hash);
				return found === undefined ? base.tool(hash) : compileTool(found);
			},
		};
	};
	return run;
}
const tool = (tool_id: string, rest: JsonObject): ToolVersion =>
	sampleTool(
		{
			tool_id,
			name: tool_id,
			input_schema: { type: "object", properties: { to: { type: "string" } } },
			implementation: { kind: "http", method: "POST", url: "https://ledger.test/x" },
			approval: { mode: "never" },
			...rest,
		},
		cheapDigest,
	);

describe("an edited approval", () => {
	it("answers the call that the planner made, so the planner is told what was executed", () => {
		const run = new SampleRun();
		run.create({ planner: { kind: "openai", model: "m" } });
		run.decide([["pay", "c1", { to: "A" }]]);
		const [asked] = [...run.calls.keys()];
		edit(run, pendingOf(run)[0] as string, { to: "B" });
		edit(run, pendingOf(run)[0] as string, { to: "C" });
		run.approve(pendingOf(run)[0] as string);
		const told = messages(run.succeed(run.takeInvoke() as never, { paid: "C" }));
		expect(told).toHaveLength(1);
		expect(told[0]).toMatchObject({ role: "tool", tool_call_id: asked });
		expect(told[0]?.content).toContain("paid");
	});

	it("leaves evidence of who put other arguments in the place of which call", () => {
		const run = new SampleRun();
		run.create();
		run.decide([["pay", "c1", { to: "A" }]]);
		const [asked] = [...run.calls.keys()];
		edit(run, pendingOf(run)[0] as string, { to: "B" });
		const records = run.log.filter((row) => row.event === "evidence.recorded").map((row) => row.data);
		expect(records.filter((one) => one.tool_call_id === asked).map((one) => one.outcome)).toEqual([
			"waiting",
			"refused",
		]);
		expect(run.calls.get(asked as string)?.evidence_id).toBe(
			records.filter((one) => one.tool_call_id === asked).at(-1)?.evidence_id,
		);
	});

	it("of a stand-in still stands in: its result is not lost", () => {
		const run = new SampleRun();
		run.create();
		run.decide([["backed_by_pay", "c1", { to: "A" }]]);
		settle(run, "backed_by_pay", { ...lost, code: "http_error", http_status: 404 });
		expect(callOf(run, "backed_by_pay")).toMatchObject({ state: "PENDING", child: { kind: "fallback" } });
		edit(run, pendingOf(run)[0] as string, { to: "B" });
		expect(callOf(run, "backed_by_pay").state).toBe("PENDING");
		run.effects = [];
		run.approve(pendingOf(run)[0] as string);
		run.succeed(run.takeInvoke() as never, { paid: "B" });
		expect(callOf(run, "backed_by_pay")).toMatchObject({
			state: "COMPLETED",
			source: "fallback",
			result: { paid: "B" },
		});
	});
});

describe("a call with a stand-in", () => {
	const waiting = (): SampleRun => {
		const run = new SampleRun();
		run.create();
		run.decide([["backed_by_pay", "c1", { to: "A" }]]);
		settle(run, "backed_by_pay", { ...lost, code: "http_error", http_status: 404 });
		run.effects = [];
		return run;
	};
	it("takes its stand-in along when it is cancelled: an approval cannot act for a call that is no more", () => {
		const run = waiting();
		const [approval_id] = pendingOf(run);
		const { tool_call_id } = callOf(run, "backed_by_pay");
		run.step({ kind: "call_cancelled", tool_call_id, by: "x", world: run.world() });
		expect(run.approve(approval_id as string).problem?.status).toBe(409);
		expect(run.takeInvoke()).toBeUndefined();
		expect(callOf(run, "pay").state).toBe("REFUSED");
	});
	it("cannot be taken back while its stand-in is out", () => {
		const run = waiting();
		run.approve(pendingOf(run)[0] as string);
		const { tool_call_id } = callOf(run, "backed_by_pay");
		const step = run.step({ kind: "call_cancelled", tool_call_id, by: "x", world: run.world() });
		expect(step.problem).toMatchObject({ status: 409, code: "call_started" });
		run.succeed(run.takeInvoke() as never, { paid: 1 });
		expect(callOf(run, "backed_by_pay")).toMatchObject({ state: "COMPLETED", result: { paid: 1 } });
	});
	it("waits with it when the session ends, and takes its word after a resume", () => {
		const run = new SampleRun();
		run.create({ limits: { turns: 20, turn_timeout_ms: 120_000, session_timeout_ms: 121_000, max_tokens: 0 } });
		run.decide([
			["backed_by_pay", "c1", { to: "A" }],
			["find", "c2", {}],
		]);
		settle(run, "backed_by_pay", { ...lost, code: "http_error", http_status: 404 });
		run.now += 121_000;
		run.step({ kind: "due", what: "clock", ref: "", world: run.world() });
		expect(run.state?.run.status).toBe("suspended");
		run.step({ kind: "resumed", world: run.world() });
		run.effects = [];
		run.approve(pendingOf(run)[0] as string);
		run.succeed(run.takeInvoke() as never, { paid: 1 });
		expect(callOf(run, "backed_by_pay")).toMatchObject({ state: "COMPLETED", result: { paid: 1 } });
	});
});

describe("an outcome that the turn's end made unknown", () => {
	const runOut = (tool_id: string, more = {}): SampleRun => {
		const run = new SampleRun();
		run.create(more);
		run.decide([[tool_id, "c1", { to: "A" }]]);
		run.now += 120_000;
		run.step({ kind: "due", what: "clock", ref: "", world: run.world() });
		expect(callOf(run, tool_id).state).toBe("OUTCOME_UNKNOWN");
		return run;
	};
	it("stops the run where the tool says to stop", () => {
		expect(runOut("stops").state?.run).toMatchObject({ status: "failed", error: { code: "outcome_unknown" } });
	});
	it("keeps the turn for a person where the tool says to ask", () => {
		const run = runOut("asks");
		expect(run.state?.run).toMatchObject({ status: "awaiting_approval", turn: 1 });
		expect(callOf(run, "asks").unsettled).toBe(true);
	});
	it("does so at the session's end too", () => {
		const limits = { turns: 20, turn_timeout_ms: 119_000, session_timeout_ms: 120_000, max_tokens: 0 };
		expect(runOut("stops", { limits }).state?.run.status).toBe("failed");
		const run = runOut("asks", { limits });
		expect(run.state?.run.status).toBe("suspended");
		run.step({ kind: "resumed", world: run.world() });
		expect(run.state?.run).toMatchObject({ status: "awaiting_approval", turn: 1 });
	});
});

describe("a status tool", () => {
	it("is asked anew, never answered from a cache or a snapshot: an old `not happened` would repeat the write", () => {
		const status = tool("cached_status", {
			effect: "read",
			cache: { tier: "realtime", scope: "principal" },
			fallback: "snapshot",
		});
		const run = runWith(status, tool("sends", { effect: "write", on_unknown: "reconcile:cached_status" }));
		run.create();
		run.decide([["sends", "c1", { to: "A" }]]);
		settle(run, "sends", { kind: "timeout", phase: "headers", effect: "possible" });
		const asked = run.effects.flatMap((effect) => (effect.kind === "enter" ? [effect.needs] : []));
		for (const needs of asked) expect(needs).toMatchObject({ cache: null, snapshot: null });
		expect(callOf(run, "cached_status").state).toMatch(/PENDING|DISPATCHED/);
	});
});

describe("a decision that is refused", () => {
	it("leaves nothing behind", () => {
		const run = new SampleRun();
		run.create();
		const step = run.decide([], { content: "  " });
		expect(step.problem).toMatchObject({ status: 422, code: "empty_decision" });
		expect(step.rows).toEqual([]);
	});
});

describe("a new life", () => {
	it("asks a managed planner once, also when recovery has just closed a turn", () => {
		const run = new SampleRun();
		run.create({ planner: { kind: "openai", model: null } });
		run.decide([["note", "c1", {}]]);
		expect(callOf(run, "note").state).toBe("DISPATCHED");
		run.restart();
		expect(callOf(run, "note").state).toBe("OUTCOME_UNKNOWN");
		expect(run.effects.filter((effect) => effect.kind === "plan")).toHaveLength(1);
	});
});

describe("a pass that is given back late", () => {
	it("says when the tool answered, so that a kept result does not look younger than it is", () => {
		const run = runWith(tool("kept", { effect: "read", cache: { tier: "realtime", scope: "principal" } }));
		run.create();
		run.decide([["kept", "c1", { to: "A" }]]);
		const { tool_call_id } = callOf(run, "kept");
		run.step({
			kind: "gated",
			tool_call_id,
			answer: { verdict: "go", probe: false, hold_until: Number.MAX_SAFE_INTEGER },
			world: run.world(),
		});
		run.now += 1_000;
		run.succeed(run.takeInvoke() as never, { a: 1 });
		const said = run.now;
		run.now += 600_000;
		run.effects = [];
		const call = run.calls.get(tool_call_id) ?? null;
		run.step({ kind: "due", what: "leave", ref: tool_call_id, call, world: run.world() });
		expect(run.effects).toMatchObject([{ kind: "leave", settle: "done", stored: { at: said } }]);
	});
});

describe("an approval given when the turn's time is spent", () => {
	it("is not answered with a success when nothing of it runs", () => {
		const run = new SampleRun();
		run.create();
		run.decide([
			["pay", "c1", { to: "A" }],
			["find", "c2", {}],
		]);
		run.now += 120_000;
		run.step({ kind: "due", what: "clock", ref: "", world: run.world() });
		expect(run.state?.run.status).toBe("awaiting_approval");
		run.effects = [];
		const step = run.approve(pendingOf(run)[0] as string);
		const executed = run.takeInvoke() !== undefined;
		expect(executed ? 200 : step.problem?.status).toBe(executed ? 200 : 409);
	});
});
