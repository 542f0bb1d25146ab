/** A tool or a planner may say half a character; canonical JSON cannot. No step may fail on it: its run would stand still. */
import { expect, it } from "vitest";
import type { Evidence } from "../evidence/record.ts";
import { SampleRun } from "./sample-run.ts";

const HALF = "a\ud83d";
const managed = { planner: { kind: "openai", model: "m" } } as const;
const evidence = (run: SampleRun): Evidence[] =>
	run.log.filter((row) => row.event === "evidence.recorded").map((row) => row.data as unknown as Evidence);

it("a tool's result that holds one closes its turn", () => {
	const run = new SampleRun();
	run.create(managed);
	run.decide([["find", "c1", {}]]);
	run.succeed(run.takeInvoke() ?? expect.fail("nothing was started"), { [HALF]: [HALF] });
	expect(run.state?.run).toMatchObject({ status: "planning", turn: 2 });
});

it("a fault of a tool that holds one is recorded", () => {
	const run = new SampleRun();
	run.create();
	run.decide([["find", "c1", {}]]);
	const { call, attempt } = run.takeInvoke() ?? expect.fail("nothing was started");
	const outcome = { kind: "failed", code: "code_error", message: HALF, effect: "none", retryable: false } as const;
	const { tool_call_id } = call;
	run.step({ kind: "settled", tool_call_id, attempt, outcome, world: run.world() });
	expect(evidence(run)).toMatchObject([{ outcome: "failed", reason: "a\ufffd" }]);
});

it("a function that has one in its name is refused like any unknown one", () => {
	const run = new SampleRun();
	run.create(managed);
	run.decide([[HALF, "c1", {}]]);
	expect(evidence(run)).toMatchObject([{ outcome: "refused", tool_id: "a\ufffd" }]);
});
