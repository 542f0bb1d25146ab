/** A call that a person edits so that policy asks nobody any more: it starts at once, and has the time to. */
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../json.ts";
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
		input_schema: {
			type: "object",
			properties: { to: { type: "string" }, page: { type: "string", format: "uri" } },
			required: ["to"],
			additionalProperties: false,
		},
		semantic_rules: [{ expr: 'args.to != "nobody"', field: "to", message: "somebody has to get it" }],
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
const edit = (run: SampleRun, args: JsonObject = { to: "B" }) => {
	const [approval] = run.approvals.values();
	const { approval_id = "" } = approval ?? {};
	return run.step({
		kind: "approval_edited",
		approval_id,
		approval: approval ?? null,
		arguments: args,
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

describe("an edit to arguments that are no call of the tool", () => {
	it.each([
		["schema", { to: 7 }, "/arguments/to", "type_mismatch"],
		["a field that does not exist", { to: "B", too: "C" }, "/arguments/too", "unknown_field"],
		["a semantic rule", { to: "nobody" }, "/arguments/to", "semantic_violation"],
		["an address check", { to: "B", page: "http://10.0.0.1/" }, "/arguments/page", "security_violation"],
	] as const)(
		"%s: the editor is told the field, nothing changes, and the approval stays pending",
		(_what, args, field, issue) => {
			const run = waiting(0);
			const kit = run.kit.bind(run);
			run.kit = () => ({ ...kit(), judgeUrl: () => ({ ok: false, reason: "a private address" }) });
			const { state } = run;
			const { problem, rows, effects } = edit(run, args);
			expect(problem).toMatchObject({ status: 422, code: "invalid_request", errors: [{ field, issue }] });
			expect([rows, effects]).toEqual([[], []]);
			expect(run.state).toBe(state);
			expect([...run.approvals.values()].map(({ status }) => status)).toEqual(["pending"]);
			expect(edit(run).problem).toBeNull();
		},
	);

	it("is told of the fields as often as it happens, whatever the model has been told of its own tries", () => {
		const run = waiting(0);
		if (run.state !== null)
			run.state = { ...run.state, run: { ...run.state.run, planner: { kind: "openai", model: "m" } } };
		for (let i = 0; i < 5; i++)
			expect(edit(run, { to: 7 }).problem?.errors).toMatchObject([{ field: "/arguments/to", issue: "type_mismatch" }]);
	});
});

it("an edit that policy does not allow any more is refused with the arguments that were put forward", () => {
	const run = waiting(0);
	if (run.state !== null) {
		const authority = { ...run.state.run.authority, permissions: ["none:read:x"] };
		run.state = { ...run.state, run: { ...run.state.run, authority } };
	}
	edit(run);
	const successor = [...run.calls.values()].find((call) => call.refusal?.stage === "policy");
	expect(successor).toMatchObject({ state: "REFUSED", arguments: { to: "B" } });
	const { data } = run.log.find(
		({ event, data: { tool_call_id } }) => event === "evidence.recorded" && tool_call_id === successor?.tool_call_id,
	) ?? { data: {} };
	expect(data).toMatchObject({ outcome: "refused", input: { to: "B" }, input_hash: successor?.input_hash });
});
