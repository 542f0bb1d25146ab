/** A tool with a check of its own (V2): only a verdict on exactly this input lets a call through. */
import { describe, expect, it } from "vitest";
import { compileTool } from "../registry/compile.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import type { ApprovalEdited, Planned } from "./event.ts";
import { CHECK_FAILED_FLAG } from "./judge-check.ts";
import { CALLER, cheapDigest, SampleRun, TOOLS } from "./sample-run.ts";
import type { SemanticVerdict } from "./semantic-check.ts";
import { readVerdict } from "./semantic-check.ts";
import type { CallRecord } from "./state.ts";
import { mayNeedChecks, uncheckedCalls } from "./unchecked.ts";

const http = { kind: "http", method: "POST", url: "https://ledger.test/x" };
const input_schema = { type: "object", properties: { to: { type: "string" }, n: { type: "integer", default: 1 } } };
const make = (tool_id: string, more: object) =>
	sampleTool({ tool_id, name: tool_id, effect: "read", implementation: http, input_schema, ...more }, cheapDigest);
const semantic_check = { language: "javascript", source: "return [];" };
const own = [
	make("judged", { approval: { mode: "never" }, semantic_check }),
	make("gated", { approval: { mode: "always" }, semantic_check }),
	make("judged_backed", { approval: { mode: "never" }, fallback: { tool_id: "judged", args: {} } }),
	make("judged_status", {
		approval: { mode: "never" },
		effect: "write",
		on_unknown: "reconcile:judged",
	}),
];

function start(tools: SampleRun["tools"] = [...TOOLS, ...own]): SampleRun {
	const run = new SampleRun();
	const kit = run.kit.bind(run);
	const compiled = new Map(own.map((version) => [version.definition_hash, compileTool(version)]));
	run.kit = () => {
		const made = kit();
		return { ...made, tool: (hash) => compiled.get(hash) ?? made.tool(hash) };
	};
	run.tools = tools;
	run.create();
	return run;
}

function event(
	run: SampleRun,
	calls: [name: string, id: string, args: unknown][],
	more: Partial<Planned> = {},
): Planned {
	return {
		kind: "planned",
		turn: run.state?.run.turn ?? 0,
		decision: {
			content: null,
			tool_calls: calls.map(([name, id, args]) => ({ id, name, arguments: JSON.stringify(args) })),
			finish_reason: "tool_calls",
			usage: { prompt_tokens: 0, completion_tokens: 0 },
		},
		call_as_text: false,
		results: null,
		world: run.world(),
		...more,
	};
}
const open = (run: SampleRun, asked: Planned | ApprovalEdited) => {
	if (run.state === null) return expect.fail("no run");
	return uncheckedCalls(run.state, asked, run.kit());
};
const HELD: SemanticVerdict = { kind: "held" };
const callOf = (run: SampleRun, id: string): CallRecord =>
	[...run.calls.values()].filter((call) => call.provider_call_id === id).at(-1) as CallRecord;
const flagsOf = (run: SampleRun): unknown[] =>
	run.log.flatMap((row) => {
		const { data } = row as unknown as { data: { envelope?: { security_flags?: string[] } } };
		return data.envelope?.security_flags ?? [];
	});

describe("a call of a tool with a check", () => {
	it("is named with its normalized arguments, each input once, and nothing of the trial is kept", () => {
		const run = start();
		const before = run.state;
		const asked = event(run, [
			["judged", "a", { to: "x" }],
			["judged", "b", { to: "x", n: 1 }],
			["judged", "c", { to: "y", n: "2" }],
			["find", "d", { to: "x" }],
			["judged", "e", { to: 5 }],
		]);
		expect(open(run, asked).map((call) => call.arguments)).toEqual([
			{ to: "x", n: 1 },
			{ to: "y", n: 2 },
		]);
		expect(run.state).toBe(before);
	});

	it("goes on where the check holds", () => {
		const run = start();
		const asked = event(run, [["judged", "a", { to: "x" }]]);
		const checks = new Map(open(run, asked).map(({ input_hash }) => [input_hash, HELD]));
		expect(open(run, { ...asked, checks })).toEqual([]);
		run.step({ ...asked, checks });
		expect(callOf(run, "a").state).toBe("DISPATCHED");
		expect(run.takeInvoke()?.call.arguments).toEqual({ to: "x", n: 1 });
	});

	it.each<[string, Planned["checks"] | "other"]>([
		["without a verdict", undefined],
		["with none for it", new Map()],
		["with one for other arguments", "other"],
	])("is refused %s", (_name, given) => {
		const run = start();
		const other = open(run, event(run, [["judged", "o", { to: "harmless" }]]));
		const checks = given === "other" ? new Map(other.map(({ input_hash }) => [input_hash, HELD])) : given;
		run.step(event(run, [["judged", "a", { to: "x" }]], { checks }));
		expect(callOf(run, "a")).toMatchObject({
			state: "REFUSED",
			refusal: { stage: "normalize", reason: "unavailable" },
		});
		expect(flagsOf(run)).toContain(CHECK_FAILED_FLAG);
		expect(run.takeInvoke()).toBeUndefined();
	});

	it("is refused by a verdict on the same arguments of another definition", () => {
		const run = start();
		const [other] = open(run, event(run, [["gated", "o", { to: "x" }]]));
		const checks = new Map([[other?.input_hash ?? "", HELD]]);
		run.step(event(run, [["judged", "a", { to: "x" }]], { checks }));
		expect(callOf(run, "a").refusal?.reason).toBe("unavailable");
	});

	it("is refused where the check failed: flagged, told to nobody why, and not the planner's fault", () => {
		const run = start();
		run.state = null;
		run.create({ planner: { kind: "openai", model: null } });
		for (let n = 0; n < 5; n++) {
			const asked = event(run, [["judged", `a${n}`, { to: `x${n}` }]]);
			const failed: SemanticVerdict = { kind: "failed", code: "instruction_limit" };
			const checks = new Map(open(run, asked).map(({ input_hash }) => [input_hash, failed]));
			run.step({ ...asked, checks });
			const { refusal } = callOf(run, `a${n}`);
			expect(refusal).toMatchObject({ reason: "unavailable", blocked: false });
			expect(JSON.stringify(refusal)).not.toContain("instruction_limit");
		}
		expect(flagsOf(run).filter((flag) => flag === CHECK_FAILED_FLAG)).toHaveLength(5);
		expect(run.state).toMatchObject({ run: { repair_stop: null, repair_guard: { tools: [] } } });
	});

	it("is refused with what the check says, counted as a mistake of the planner's", () => {
		const run = start();
		run.state = null;
		run.create({ planner: { kind: "openai", model: null } });
		const asked = event(run, [["judged", "a", { to: "x" }]]);
		const verdict = readVerdict([{ field: "/to", message: "is no customer" }]);
		run.step({ ...asked, checks: new Map(open(run, asked).map(({ input_hash }) => [input_hash, verdict])) });
		expect(callOf(run, "a").refusal).toMatchObject({
			stage: "normalize",
			reason: "semantic_failed",
			errors: [{ field: "/to", issue: "semantic_violation", hint: "is no customer" }],
		});
		expect(run.state).toMatchObject({ run: { repair_guard: { tools: [{ tool: "judged", refusals: 1 }] } } });
		expect(flagsOf(run)).not.toContain(CHECK_FAILED_FLAG);
	});

	it("asks for no check where the step would not judge it: cut off, or not this run's turn", () => {
		const run = start();
		const asked = event(run, [["judged", "a", { to: "x" }]]);
		expect(open(run, { ...asked, decision: { ...asked.decision, finish_reason: "length" } })).toEqual([]);
		run.decide([["find", "f", {}]]);
		expect(open(run, asked)).toEqual([]);
	});

	it("sees placeholders filled", () => {
		const run = start();
		run.state = null;
		run.create({ planner: { kind: "scripted", model: null }, script_length: 2 });
		const results = new Map([["p", "from a result"]]);
		const asked = event(run, [["judged", "a", { to: "{{calls.p.result}}" }]], { results });
		expect(open(run, asked).map((call) => call.arguments)).toEqual([{ to: "from a result", n: 1 }]);
	});
});

describe("an edited approval", () => {
	it("is checked anew; what was checked before does not speak for it", () => {
		const run = start();
		const asked = event(run, [["gated", "g", { to: "x" }]]);
		const checks = new Map(open(run, asked).map(({ input_hash }) => [input_hash, HELD]));
		run.step({ ...asked, checks });
		const [approval] = run.approvals.values();
		const { approval_id = "" } = approval ?? {};
		const edit: ApprovalEdited = {
			kind: "approval_edited",
			approval_id,
			approval: approval ?? null,
			arguments: { to: "edited" },
			by: CALLER,
			world: run.world(),
		};
		expect(open(run, { ...edit, by: { ...CALLER, kind: "agent" } })).toEqual([]);
		expect(open(run, edit).map((call) => call.arguments)).toEqual([{ to: "edited", n: 1 }]);
		const errors = [{ field: "/arguments", issue: "semantic_violation" }];
		expect(run.step({ ...edit, checks })).toMatchObject({ rows: [], problem: { status: 422, errors } });
		expect(callOf(run, "g")).toMatchObject({ state: "AWAITING_APPROVAL", arguments: { to: "x" } });
	});

	it("approved as it stands, starts without another check", () => {
		const run = start();
		const asked = event(run, [["gated", "g", { to: "x" }]]);
		run.step({ ...asked, checks: new Map(open(run, asked).map(({ input_hash }) => [input_hash, HELD])) });
		const [approval] = run.approvals.values();
		expect(run.approve(approval?.approval_id ?? "").problem).toBeNull();
		expect(callOf(run, "g").state).toBe("DISPATCHED");
	});
});

describe("the machine's own calls", () => {
	it.each([
		["a fallback", "judged_backed", "failed"],
		["a status tool", "judged_status", "timeout"],
	] as const)("%s with a check is not asked, and the call says so", (_name, tool, kind) => {
		const run = start();
		run.decide([[tool, "b", { to: "x" }]]);
		const invoke = run.takeInvoke() ?? expect.fail("not started");
		const outcome =
			kind === "failed"
				? ({ kind, code: "invalid_response", message: "no", effect: "none", retryable: false } as const)
				: ({ kind, phase: "wall", effect: "possible" } as const);
		run.step({
			kind: "settled",
			tool_call_id: invoke.call.tool_call_id,
			attempt: invoke.attempt,
			outcome,
			world: run.world(),
		});
		expect(callOf(run, "b").notes.join()).toContain("has a semantic check");
		expect(callOf(run, "b").child).toBeNull();
		expect(run.takeInvoke()).toBeUndefined();
	});
});

describe("whether to look at all", () => {
	it("is no for runs without such tools and for decisions that call none", () => {
		const plain = start(TOOLS);
		const need = (run: SampleRun, asked: Planned) => mayNeedChecks(run.state ?? expect.fail("no run"), asked);
		expect(need(plain, event(plain, [["find", "a", {}]]))).toBe(false);
		expect(JSON.stringify(plain.state?.exposure)).not.toContain('checked":true');
		const run = start();
		expect(need(run, event(run, [["find", "a", {}]]))).toBe(false);
		expect(need(run, event(run, [["judged", "a", {}]]))).toBe(true);
	});

	it("is yes while the registry has moved to where such a tool is", () => {
		const run = start(TOOLS);
		run.tools = [...TOOLS, ...own];
		run.registry_rev = 2;
		const asked = event(run, [["judged", "a", { to: "x" }]]);
		expect(mayNeedChecks(run.state ?? expect.fail("no run"), asked)).toBe(true);
		expect(open(run, asked)).toHaveLength(1);
	});
});
