/** Events that come late, twice or in another order than they were sent: each of these was found by the simulation. */
import { describe, expect, it } from "vitest";
import { CLAIM_WINDOW_MS } from "../limits.ts";
import type { InvokeOutcome } from "../outcome.ts";
import type { Effect } from "./effect.ts";
import { SampleRun } from "./sample-run.ts";
import type { CallRecord } from "./state.ts";

type Leave = Extract<Effect, { kind: "leave" }>;
const FAULT = { kind: "failed", code: "http_error", message: "503", retryable: true, http_status: 503 } as const;
const LOST: InvokeOutcome = { ...FAULT, effect: "possible" };
const REFUSED: InvokeOutcome = { ...FAULT, code: "rate_limited", http_status: 429, effect: "none" };

const began = (tool: string, more: [string, string, object][] = []): SampleRun => {
	const run = new SampleRun();
	run.create();
	run.decide([[tool, "c1", { to: "A" }], ...more] as never);
	return run;
};
const only = (run: SampleRun): CallRecord => [...run.calls.values()][0] as CallRecord;
const timer = (run: SampleRun, kind: string): { ref: string; at: number } | undefined =>
	[...run.due.values()].find((due) => due.kind === kind);
const rings = (run: SampleRun, what: "start" | "watchdog" | "leave", ref: string): void => {
	run.step({ kind: "due", what, ref, call: run.calls.get(ref) ?? null, world: run.world() } as never);
};
const goes = (run: SampleRun): void => {
	const { tool_call_id } = only(run);
	run.step({
		kind: "gated",
		tool_call_id,
		answer: { verdict: "go", probe: false, hold_until: Number.MAX_SAFE_INTEGER },
		world: run.world(),
	});
};
const ends = (run: SampleRun, outcome: InvokeOutcome): void => {
	const invoke = run.takeInvoke();
	const { tool_call_id = "" } = invoke?.call ?? {};
	run.step({ kind: "settled", tool_call_id, attempt: invoke?.attempt ?? 0, outcome, world: run.world() });
};
const leaves = (run: SampleRun): Leave[] => run.effects.filter((effect): effect is Leave => effect.kind === "leave");

describe("a pass in hand", () => {
	const waited = (hold_ms: number, wait_ms: number): SampleRun => {
		const run = began("keyed");
		run.takeInvoke();
		run.lease = { halts: [{ scope: "tenant", since: 0 }] };
		const { tool_call_id } = only(run);
		const answer = { verdict: "go", probe: false, hold_until: run.now + hold_ms } as const;
		run.step({ kind: "gated", tool_call_id, answer, world: run.world() });
		expect([only(run).gate, only(run).waiting?.reason]).toEqual(["passed", "halt"]);
		run.effects = [];
		run.now += wait_ms;
		run.lease = {};
		rings(run, "start", tool_call_id);
		return run;
	};

	it("opens the attempt while the gate holds it for as long as the attempt may take", () => {
		const run = waited(3_600_000, 60_000);
		expect(run.effects.map(({ kind }) => kind)).toContain("invoke");
		expect(only(run).state).toBe("DISPATCHED");
	});

	it("that ran out in a halt is asked for again: its claim may be another call's", () => {
		const run = waited(30_000, 60_000);
		expect(run.effects.map(({ kind }) => kind)).toEqual(["enter"]);
		expect([only(run).state, only(run).gate, only(run).pass_out]).toEqual(["PENDING", "asked", true]);
	});
});

describe("a timer that was read before its call went on", () => {
	it("does not eat the one that stands for the back-off", () => {
		const run = began("find");
		ends(run, REFUSED);
		const { retry_at, tool_call_id } = only(run);
		rings(run, "start", tool_call_id);
		expect(only(run).state).toBe("PENDING");
		expect(timer(run, "start")?.at).toBe(retry_at);
	});
	it("does not end the next attempt as lost", () => {
		const run = began("find");
		ends(run, REFUSED);
		run.now = only(run).retry_at as number;
		rings(run, "start", only(run).tool_call_id);
		expect(only(run).state).toBe("DISPATCHED");
		rings(run, "watchdog", only(run).tool_call_id);
		expect(only(run).state).toBe("DISPATCHED");
		expect(timer(run, "watchdog")?.at).toBeGreaterThan(run.now);
		run.now = timer(run, "watchdog")?.at as number;
		rings(run, "watchdog", only(run).tool_call_id);
		expect(only(run).state).not.toBe("DISPATCHED");
	});
});

describe("a call that was tried and may not be tried again", () => {
	it("is unknown and never REFUSED, and its key is not freed", () => {
		const run = began("keyed");
		goes(run);
		ends(run, LOST);
		run.effects.length = 0;
		Object.assign(run, { registry_rev: 2, tools: [] });
		run.now = only(run).retry_at as number;
		rings(run, "start", only(run).tool_call_id);
		expect(only(run)).toMatchObject({ state: "OUTCOME_UNKNOWN", refusal: null });
		expect(run.effects.some((effect) => effect.kind === "invoke")).toBe(false);
		rings(run, "leave", timer(run, "leave")?.ref as string);
		expect(leaves(run).map(({ settle }) => settle)).toEqual(["unknown"]);
	});
	it("stays unknown when its last attempt certainly did nothing", () => {
		const run = began("keyed");
		for (let n = 0; n < 4; n++) {
			goes(run);
			ends(run, n === 0 ? LOST : REFUSED);
			if (only(run).retry_at === null) break;
			run.now = only(run).retry_at as number;
			rings(run, "start", only(run).tool_call_id);
		}
		expect(only(run).state).toBe("OUTCOME_UNKNOWN");
		expect(leaves(run).map(({ settle }) => settle)).toEqual(["keep", "keep", "keep", "unknown"]);
	});
});

describe("a call at the gate", () => {
	it("that is cancelled before the answer gives back what the gate may have given it", () => {
		const run = began("keyed");
		const { tool_call_id } = only(run);
		run.step({ kind: "call_cancelled", tool_call_id, by: "someone", world: run.world() });
		expect(leaves(run)).toEqual([]);
		run.now = timer(run, "leave")?.at as number;
		rings(run, "leave", tool_call_id);
		expect(leaves(run)).toMatchObject([{ tool_call_id, settle: "free" }]);
	});
	it("keeps its claim when a second go comes in the back-off", () => {
		const run = began("keyed");
		goes(run);
		ends(run, LOST);
		const before = leaves(run).length;
		goes(run);
		expect(leaves(run)).toHaveLength(before);
	});
	it("tells a gate that never answers less and less often, and stops when the gate holds nothing of it any more", () => {
		const run = began("keyed");
		const hold_ms = run.effects.flatMap((effect) => (effect.kind === "enter" ? [effect.hold_ms] : []))[0] ?? 0;
		goes(run);
		ends(run, { kind: "success", result: { n: 1 }, facts: [], notes: [] });
		const { tool_call_id } = only(run);
		const logged = run.log.length;
		const began_at = run.now;
		const pauses: number[] = [];
		for (let due = timer(run, "leave"); due !== undefined && pauses.length < 100; due = timer(run, "leave")) {
			pauses.push(due.at - run.now);
			run.now = due.at;
			// The alarm clears what it serves; the run may have died since it last knew of this call.
			if (pauses.length === 3) run.restart();
			run.effects = [];
			rings(run, "leave", tool_call_id);
			expect(leaves(run)).toMatchObject([{ tool_call_id, settle: "done", stored: { result: { n: 1 } } }]);
		}
		expect(pauses.slice(0, 8)).toEqual([5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
		expect(pauses.length).toBeLessThan(30);
		expect(run.now - began_at).toBeGreaterThan(hold_ms + CLAIM_WINDOW_MS);
		// Nothing is said of it: the call has ended as it has.
		expect(run.log).toHaveLength(logged);
		expect(only(run)).toMatchObject({ state: "COMPLETED", result: { n: 1 } });
	});
	it("owes the gate its end until that is taken, whatever was taken before", () => {
		const run = began("keyed");
		goes(run);
		ends(run, { kind: "success", result: {}, facts: [], notes: [] });
		const { tool_call_id } = only(run);
		run.step({ kind: "left", tool_call_id, settle: "keep" });
		expect(timer(run, "leave")).toBeDefined();
		run.step({ kind: "left", tool_call_id, settle: "done" });
		expect(timer(run, "leave")).toBeUndefined();
	});
});

describe("a turn", () => {
	it("that was cut short is answered before the user's next word is taken up", () => {
		const run = began("stops", [["note", "c2", { to: "B" }]]);
		ends(run, LOST);
		expect(run.state?.run).toMatchObject({ status: "failed", turn: 1 });
		run.step({ kind: "said", content: "go on", world: run.world() });
		expect(run.toolMessages).toEqual([]);
		ends(run, { kind: "failed", code: "interrupted", message: "cancelled", effect: "possible", retryable: false });
		expect(run.toolMessages).toHaveLength(2);
		expect(run.state?.run).toMatchObject({ status: "awaiting_decision", turn: 2, queued: [] });
	});
	it("whose time is spent starts nothing before its clock has rung", () => {
		const run = new SampleRun();
		run.create();
		run.lease = null;
		run.decide([["note", "c1", { to: "A" }]]);
		run.lease = {};
		run.now += 120_000;
		rings(run, "start", only(run).tool_call_id);
		expect(run.effects.filter((effect) => effect.kind === "invoke")).toEqual([]);
		run.step({ kind: "due", what: "clock", ref: "", world: run.world() });
		expect(only(run)).toMatchObject({ state: "REFUSED", refusal: { reason: "budget_exhausted" } });
	});
});
