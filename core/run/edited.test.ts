/** A call that a person edits so that policy asks nobody any more: it starts at once, and has the time to. */
import { describe, expect, it } from "vitest";
import { compileTool } from "../registry/compile.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import { CALLER, cheapDigest, SampleRun, TOOLS } from "./sample-run.ts";
import type { CallRecord } from "./state.ts";

const TURN_MS = 120_000;
const SESSION_MS = 600_000;
const sometimes = sampleTool(
	{
		tool_id: "sometimes",
		name: "sometimes",
		effect: "write",
		implementation: { kind: "http", method: "POST", url: "https://ledger.test/x" },
		input_schema: { type: "object", properties: { to: { type: "string" } }, required: ["to"] },
		approval: { mode: "when", when: 'args.to == "A"' },
	},
	cheapDigest,
);

/** Waits for a person, `spent_ms` of its turn gone. */
function waiting(spent_ms: number, session_timeout_ms = SESSION_MS): SampleRun {
	const run = new SampleRun();
	const kit = run.kit.bind(run);
	const own = compileTool(sometimes);
	const find = kit().tool;
	run.kit = () => ({ ...kit(), tool: (hash) => (hash === sometimes.definition_hash ? own : find(hash)) });
	run.tools = [...TOOLS, sometimes];
	run.create({ limits: { turns: 20, turn_timeout_ms: TURN_MS, session_timeout_ms, max_tokens: 0 } });
	run.decide([
		["sometimes", "c1", { to: "A" }],
		["find", "c2", {}],
	]);
	run.now += spent_ms;
	run.succeed(run.takeInvoke() ?? expect.fail("nothing was started"));
	expect(run.state?.run.status).toBe("awaiting_approval");
	return run;
}
const edit = (run: SampleRun) => {
	const [approval] = run.approvals.values();
	const { approval_id = "" } = approval ?? {};
	return run.step({
		kind: "approval_edited",
		approval_id,
		approval: approval ?? null,
		arguments: { to: "B" },
		by: CALLER,
		world: run.world(),
	});
};
const last = (run: SampleRun): CallRecord => [...run.calls.values()].at(-1) as CallRecord;

describe("an edit that nobody has to approve", () => {
	it("begins the turn's clock anew, as an approval does: a write is not cut at once", () => {
		const run = waiting(TURN_MS - 1);
		expect(edit(run).problem).toBeNull();
		expect(run.takeInvoke()?.timeout_ms).toBeGreaterThan(1_000);
	});

	it("in a session without time suspends the run, and starts when it is resumed", () => {
		const run = waiting(TURN_MS - 1, TURN_MS);
		edit(run);
		expect(run.takeInvoke()).toBeUndefined();
		expect(run.state?.run).toMatchObject({ status: "suspended", error: { code: "session_timeout" } });
		expect(last(run)).toMatchObject({ state: "PENDING", arguments: { to: "B" } });
		run.step({ kind: "resumed", world: run.world() });
		expect(run.takeInvoke()?.call).toMatchObject({ tool_id: "sometimes", arguments: { to: "B" } });
	});
});
