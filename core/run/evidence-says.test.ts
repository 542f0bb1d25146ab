/** Evidence proves what happened and nothing more: an invocation only where there was one, an answer only from who gave it. */
import { describe, expect, it } from "vitest";
import type { Evidence } from "../evidence/record.ts";
import type { GateAnswer } from "../invoke/gate-answer.ts";
import type { Json } from "../json.ts";
import { CALLER, SampleRun } from "./sample-run.ts";
import type { CallRecord } from "./state.ts";

const INVOKED = "the tool was invoked with exactly this frozen input";
const evidence = (run: SampleRun): Evidence[] =>
	run.log.filter((row) => row.event === "evidence.recorded").map((row) => row.data as unknown as Evidence);
const lastOf = (run: SampleRun, tool_id: string): Evidence =>
	evidence(run)
		.filter((one) => one.tool_id === tool_id)
		.at(-1) ?? expect.fail("no evidence");
const callOf = (run: SampleRun, tool_id: string): CallRecord =>
	[...run.calls.values()].filter((call) => call.tool_id === tool_id).at(-1) ?? expect.fail("no call");
function begun(tool_id: string, args: Json = {}): SampleRun {
	const run = new SampleRun();
	run.create();
	run.decide([[tool_id, "c1", args]]);
	return run;
}
const told = (run: SampleRun, tool_id: string, answer: GateAnswer) =>
	run.step({ kind: "gated", tool_call_id: callOf(run, tool_id).tool_call_id, answer, world: run.world() });
const settle = (run: SampleRun, tool_id: string, outcome: object) => {
	const { tool_call_id, attempts } = callOf(run, tool_id);
	const attempt = attempts.length;
	run.step({ kind: "settled", tool_call_id, attempt, outcome: outcome as never, world: run.world() });
};
const lost = { kind: "failed", code: "connection_lost", message: "gone", retryable: false };
const stored = (run: SampleRun) => ({ result: { a: 1 }, notes: [], at: run.now - 5_000, tool_call_id: "call_first" });

describe("an answer that was there already", () => {
	it.each(["cached", "replay"] as const)("of the gate's word `%s` is no invocation", (verdict) => {
		const run = begun("keyed");
		const kept = stored(run);
		told(run, "keyed", verdict === "cached" ? { verdict, stored: kept } : { verdict, first: kept });
		const said = lastOf(run, "keyed");
		expect(said.outcome).toBe("success");
		expect(said.proves).not.toContain(INVOKED);
		expect(said.proves).toContain("this answer came without an invocation of the tool");
		expect(said.does_not_prove).toContain("that the tool would answer the same now");
	});

	it("in place of an open breaker is none either", () => {
		const run = begun("keyed");
		told(run, "keyed", { verdict: "open", until: run.now + 30_000, snapshot: stored(run) });
		expect(lastOf(run, "keyed").proves).toContain("this answer came without an invocation of the tool");
	});
});

describe("a call that its gate did not let through", () => {
	it("was not invoked, and no fault of the tool's is proven", () => {
		const run = begun("keyed");
		told(run, "keyed", { verdict: "open", until: run.now + 30_000, snapshot: null });
		const said = lastOf(run, "keyed");
		expect([said.outcome, said.envelope.attempts]).toEqual(["failed", 0]);
		expect(said.proves).toEqual(["the call ended before any invocation, for the recorded reason"]);
	});

	it("because an equal one is unknown was not dispatched itself", () => {
		const run = begun("keyed");
		told(run, "keyed", { verdict: "replay_unknown", tool_call_id: "call_first" });
		const said = lastOf(run, "keyed");
		expect(said.outcome).toBe("unknown");
		expect(said.proves.join()).not.toContain("dispatched");
		expect(said.proves).toContain("the tool was not invoked for this call");
		expect(said.does_not_prove).toEqual(["that the effect happened", "that it did not happen"]);
	});
});

describe("another's word", () => {
	it("a stand-in's result is not the tool's own", () => {
		const run = begun("backed", { to: "a" });
		settle(run, "backed", { ...lost, code: "http_error", http_status: 404, effect: "none" });
		run.takeInvoke();
		run.succeed(run.takeInvoke() ?? expect.fail("no stand-in"));
		const said = lastOf(run, "backed");
		expect(said.outcome).toBe("success");
		expect(said.proves).toEqual(["another tool's recorded result stands in for this call's own"]);
		expect(lastOf(run, "find").proves).toContain(INVOKED);
	});

	it("a status tool's word proves that it was said", () => {
		const run = begun("checked", { to: "a" });
		settle(run, "checked", { ...lost, effect: "possible" });
		run.takeInvoke();
		run.succeed(run.takeInvoke() ?? expect.fail("no status tool"), { happened: true });
		const said = lastOf(run, "checked");
		expect(said.outcome).toBe("success");
		expect(said.proves).toEqual(["the recorded word on what became of this exact call was given"]);
		expect(said.does_not_prove).toContain("that this word is true");
	});

	it.each(["happened", "not_happened"] as const)("a person's `%s` as well", (outcome) => {
		const run = begun("note", { to: "a" });
		settle(run, "note", { ...lost, effect: "possible" });
		const call = callOf(run, "note");
		const by = CALLER;
		run.step({ kind: "outcome_stated", call, outcome, result: null, reason: "seen", by, world: run.world() });
		const said = lastOf(run, "note");
		expect(said.proves).toEqual(["the recorded word on what became of this exact call was given"]);
		expect(said.does_not_prove).toContain("that this word is true");
	});
});
