import { expect, it } from "vitest";
import { DERIVED, derivedTimers } from "./derived-timers.ts";
import { SampleRun, START } from "./sample-run.ts";

const stored = (run: SampleRun) =>
	[...run.due.values()]
		.filter(({ kind }) => DERIVED.has(kind as never))
		.map(({ kind, ref, at }) => ({ kind, ref, at }));

it("works out exactly what the steps asked for while a call is out", () => {
	const run = new SampleRun();
	run.create();
	run.now = START + 5_000;
	run.decide([["find", "c1", { to: "a" }]]);
	expect(derivedTimers(run.state).map(({ kind }) => kind)).toEqual(["clock", "watchdog"]);
	expect(derivedTimers(run.state)).toEqual(expect.arrayContaining(stored(run)));
	expect(stored(run)).toHaveLength(2);
});

it("says none where nothing moves: at rest, and without a run", () => {
	const run = new SampleRun();
	run.create();
	run.decide([["pay", "c1", { to: "a" }]]);
	expect(derivedTimers(run.state)).toEqual([]);
	expect(derivedTimers(null)).toEqual([]);
});

it("keeps what a turn has spent already", () => {
	const run = new SampleRun();
	run.create();
	run.decide([
		["find", "c1", { to: "a" }],
		["pay", "c2", { to: "b" }],
	]);
	const invoke = run.takeInvoke();
	if (invoke === undefined) throw new Error("nothing was invoked");
	run.now += 30_000;
	run.succeed(invoke);
	run.now += 1_000_000;
	run.approve([...run.approvals.keys()][0] ?? "");
	expect(derivedTimers(run.state)).toEqual(expect.arrayContaining(stored(run)));
});
