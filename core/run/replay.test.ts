/** Replays in the machine: what tests over HTTP cannot time. */
import { describe, expect, it } from "vitest";
import { compileTool } from "../registry/compile.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import type { Created, Planned } from "./event.ts";
import { decisionsOf, type RecordedCall, recordedTurn } from "./recording.ts";
import { CALLER, cheapDigest, SampleRun } from "./sample-run.ts";
import type { CallRecord } from "./state.ts";

const OF = `run_${"b".repeat(32)}`;
const DAY_MS = 86_400_000;
const begin = (mode: "recorded" | "live", more: Partial<Created> = {}): SampleRun => {
	const run = new SampleRun();
	run.create({ replay: { run_id: OF, mode, placeholders: false }, ...more });
	return run;
};
const only = (run: SampleRun): CallRecord => [...run.calls.values()][0] as CallRecord;

/** One call of `pay`, which asks, and what the recording says of it. */
function play(run: SampleRun, recorded: (call: CallRecord) => RecordedCall | null): CallRecord {
	const twin = new SampleRun();
	twin.create();
	twin.decide([["pay", "c1", { to: "A" }]]);
	const event: Planned = {
		kind: "planned",
		turn: 1,
		decision: {
			content: null,
			tool_calls: [{ id: "c1", name: "pay", arguments: '{"to":"A"}' }],
			finish_reason: "tool_calls",
			usage: { prompt_tokens: 0, completion_tokens: 0 },
		},
		call_as_text: false,
		results: null,
		recorded: [recorded(only(twin))],
		world: run.world(),
	};
	run.step(event);
	return only(run);
}
const end = (call: CallRecord, more: Partial<RecordedCall> = {}): RecordedCall => ({
	tool_call_id: call.tool_call_id,
	tool_id: call.tool_id,
	input_hash: call.input_hash,
	state: "COMPLETED",
	result: { paid: true },
	error: null,
	notes: [],
	...more,
});

describe("recorded", () => {
	it("ends the call in the step that judged it: no approval, no attempt, no effect but the next plan", () => {
		const run = begin("recorded");
		expect(play(run, (call) => end(call))).toMatchObject({ state: "COMPLETED", source: "recorded", attempts: [] });
		expect(run.approvals.size).toBe(0);
		expect(run.effects.filter(({ kind }) => kind !== "plan")).toEqual([]);
		expect(run.state?.run.status).toBe("awaiting_decision");
	});

	it.each([
		["nothing", () => null],
		["another tool", (call: CallRecord) => end(call, { tool_id: "note" })],
		["another input", (call: CallRecord) => end(call, { input_hash: "f".repeat(64) })],
		["no input that was frozen", (call: CallRecord) => end(call, { input_hash: null })],
		["a call that was refused", (call: CallRecord) => end(call, { state: "REFUSED" })],
		["a call that still waited", (call: CallRecord) => end(call, { state: "AWAITING_APPROVAL" })],
		["a call that was out", (call: CallRecord) => end(call, { state: "RUNNING" })],
	])("refuses a call of which the recording holds %s, and gives no result", (_what, recorded) => {
		const run = begin("recorded");
		expect(play(run, recorded)).toMatchObject({
			state: "REFUSED",
			refusal: { reason: "not_recorded" },
			result: null,
			source: "live",
		});
		expect(run.takeInvoke()).toBeUndefined();
	});

	it("gives the recording no word over today's permissions", () => {
		const authority = {
			policy_rev: 1,
			roles: [],
			permissions: ["tools:read:*"],
			tools: [],
			data_scope: "all" as const,
		};
		const run = new SampleRun();
		const caller = {
			...run.world(),
			tenant_id: "tenant_t",
			principal_id: "usr_r",
			kind: "user" as const,
			name: "r",
			authority,
		};
		run.create({
			replay: { run_id: OF, mode: "recorded", placeholders: false },
			caller,
			world: { ...run.world(), authority },
		});
		expect(play(run, (call) => end(call))).toMatchObject({
			state: "REFUSED",
			refusal: { reason: "unknown_tool" },
			result: null,
		});
	});

	it("ignores a recording in a run that is no replay", () => {
		const run = new SampleRun();
		run.create();
		expect(play(run, (call) => end(call))).toMatchObject({ state: "AWAITING_APPROVAL", result: null });
	});
});

describe("live", () => {
	/** `note` asks nobody by itself. Approved while control is away, it waits with its grant unspent. */
	const approvedAndHeld = (): SampleRun => {
		const limits = { turns: 20, turn_timeout_ms: 90 * DAY_MS, session_timeout_ms: 91 * DAY_MS, max_tokens: 0 };
		const run = begin("live", { limits });
		run.decide([["note", "c1", { to: "A" }]]);
		expect(only(run).state).toBe("AWAITING_APPROVAL");
		run.lease = null;
		run.approve([...run.approvals.keys()][0] ?? "");
		expect(only(run)).toMatchObject({ state: "PENDING", waiting: { reason: "control" } });
		run.lease = {};
		return run;
	};
	const rings = (run: SampleRun): void => {
		run.step({ kind: "due", what: "start", ref: only(run).tool_call_id, world: run.world() });
	};

	it("starts with the grant that a person gave", () => {
		const run = approvedAndHeld();
		run.now += 1_000;
		rings(run);
		expect(only(run).state).toBe("DISPATCHED");
		expect([...run.approvals.values()][0]?.status).toBe("consumed");
	});

	it("does not start with one that has run out meanwhile, although the tool itself asks for none", () => {
		const run = approvedAndHeld();
		run.now += 4 * DAY_MS;
		rings(run);
		expect(only(run)).toMatchObject({ state: "REFUSED", attempts: [] });
		expect(run.takeInvoke()).toBeUndefined();
	});

	it("asks before every kind of write, and not before a read", () => {
		const read = begin("live");
		read.decide([["find", "c1", {}]]);
		expect(only(read).state).toBe("DISPATCHED");
		for (const tool of ["note", "keyed", "asks", "checked", "stops", "pay"]) {
			const write = begin("live");
			write.decide([[tool, "c1", { to: "A" }]]);
			expect(only(write).state).toBe("AWAITING_APPROVAL");
		}
	});
});

/** A decision of the recording, as the script plays it. */
function playTurn(
	run: SampleRun,
	calls: readonly [name: string, args: string][],
	recorded: readonly (RecordedCall | null)[],
	more: Partial<Planned> & { content?: string; finish_reason?: string } = {},
): CallRecord[] {
	const before = new Set(run.calls.keys());
	const { content = null, finish_reason = calls.length > 0 ? "tool_calls" : "stop", ...rest } = more;
	run.step({
		kind: "planned",
		turn: run.state?.run.turn ?? 0,
		decision: {
			content,
			tool_calls: calls.map(([name, args], n) => ({ id: `c${n}`, name, arguments: args })),
			finish_reason,
			usage: { prompt_tokens: 0, completion_tokens: 0 },
		},
		call_as_text: false,
		results: null,
		recorded,
		world: run.world(),
		...rest,
	});
	return [...run.calls.values()].filter((call) => !before.has(call.tool_call_id));
}

describe("calls of the recorded run's caller", () => {
	const look = { name: "find", description: "", parameters: { type: "object" } };
	/** What a run recorded whose caller had a function named as a governed tool is named now. */
	function handedOut(state: "COMPLETED" | "OUTCOME_UNKNOWN" | "REFUSED" = "COMPLETED"): RecordedCall {
		const twin = new SampleRun();
		twin.tools = twin.tools.filter((tool) => tool.descriptor.tool_id !== "find");
		twin.create({ planner: { kind: "openai", model: null }, caller_functions: [look] });
		twin.decide([["find", "c0", { to: "secret" }]]);
		const call = only(twin);
		expect(call).toMatchObject({ state: "AWAITING_CALLER", tool_id: "caller:find" });
		return end(call, { state, result: state === "COMPLETED" ? "rain" : null, taint_label: "caller:find" });
	}

	it.each(["recorded", "live"] as const)(
		"get the caller's recorded answer (%s), and never reach a governed tool of that name",
		(mode) => {
			const run = begin(mode);
			const [call] = playTurn(run, [["find", '{"to":"secret"}']], [handedOut()]);
			expect(call).toMatchObject({
				state: "COMPLETED",
				tool_id: "caller:find",
				source: "recorded",
				result: "rain",
				definition_hash: null,
				attempts: [],
			});
			expect(run.takeInvoke()).toBeUndefined();
			const [said] = run.log.filter(({ event }) => event === "evidence.recorded");
			expect(said?.data).toMatchObject({
				outcome: "answered",
				tool_id: "caller:find",
				envelope: { source: "recorded" },
			});
			expect(run.state?.run.turn).toBe(2);
		},
	);

	it.each(["recorded", "live"] as const)("have no end (%s) but that of exactly this call", (mode) => {
		for (const [args, recorded, reason] of [
			['{"to":"other"}', handedOut(), "not_recorded"],
			['{"to":"secret"}', handedOut("REFUSED"), "not_recorded"],
			["{", handedOut(), "arguments_not_json"],
		] as const) {
			const run = begin(mode);
			expect(playTurn(run, [["find", args]], [recorded])[0]).toMatchObject({ state: "REFUSED", refusal: { reason } });
			expect(run.takeInvoke()).toBeUndefined();
		}
		const cut = begin(mode);
		const more = { finish_reason: "length" };
		const [call] = playTurn(cut, [["find", '{"to":"secret"}']], [handedOut()], more);
		expect(call?.refusal?.reason).toBe("truncated_output");
		const unanswered = begin(mode);
		const [open] = playTurn(unanswered, [["find", '{"to":"secret"}']], [handedOut("OUTCOME_UNKNOWN")]);
		expect(open).toMatchObject({ state: "OUTCOME_UNKNOWN", source: "recorded" });
	});

	it("take nobody's word for what became of them", () => {
		const run = begin("recorded");
		const [call] = playTurn(run, [["find", '{"to":"secret"}']], [handedOut("OUTCOME_UNKNOWN")]);
		const stated = run.step({
			kind: "outcome_stated",
			call: call as CallRecord,
			outcome: "happened",
			result: "sun",
			reason: "I saw it",
			by: CALLER,
			world: run.world(),
		});
		expect(stated).toMatchObject({ problem: { status: 403, code: "forbidden" }, rows: [] });
	});
});

describe("a live replay", () => {
	it("hands nothing to a tool that has another tool's function name today", () => {
		const run = begin("live");
		const other = end({ tool_id: "fi.nd", input_hash: "f" } as CallRecord);
		expect(playTurn(run, [["find", "{}"]], [other])[0]).toMatchObject({
			state: "REFUSED",
			refusal: { reason: "not_recorded" },
		});
		expect(run.takeInvoke()).toBeUndefined();
	});
});

describe("twins of a denied call", () => {
	it("that stood beside it keep their own end; one that came later is refused", () => {
		const run = begin("recorded");
		const twin = new SampleRun();
		twin.create();
		twin.decide([["pay", "c0", { to: "A" }]]);
		const call = only(twin);
		const denied = end(call, {
			state: "DENIED",
			result: null,
			error: { code: "denied", message: "no", retryable: false },
		});
		const pay: [string, string] = ["pay", '{"to":"A"}'];
		const both = playTurn(run, [pay, pay], [denied, end(call)]);
		expect(both.map(({ state }) => state)).toEqual(["DENIED", "COMPLETED"]);
		const [later] = playTurn(run, [pay], [end(call)]);
		expect(later?.refusal?.reason).toBe("duplicate_of_denied");
	});
});

const recordedOf = (run: SampleRun): RecordedCall[] =>
	decisionsOf(run.heard()).flatMap(({ message }) => {
		const calls = [...run.calls.values()].filter(({ turn }) => turn === message.turn);
		return recordedTurn(message, calls, [], () => null).calls as RecordedCall[];
	});

describe("a call that was edited and then denied", () => {
	/** What the planner asked for was put forward otherwise, and that was denied; asked for once more, it was paid. */
	function twice(): RecordedCall[] {
		const source = new SampleRun();
		source.create();
		const pay = (): string => {
			source.decide([["pay", "c0", { to: "A" }]]);
			return [...source.approvals.values()].find(({ status }) => status === "pending")?.approval_id ?? "";
		};
		const approval_id = pay();
		const approval = source.approvals.get(approval_id) ?? null;
		const edit = { kind: "approval_edited", approval_id, approval, arguments: { to: "B" }, by: CALLER } as const;
		source.step({ ...edit, world: source.world() });
		const edited = [...source.approvals.values()].find(({ status }) => status === "pending")?.approval_id ?? "";
		expect(source.approve(edited, "deny").problem).toBeNull();
		expect(source.approve(pay()).problem).toBeNull();
		source.succeed(source.takeInvoke() ?? expect.fail("not started"), { paid: true });
		return recordedOf(source);
	}

	it("denies the edit: what was asked for keeps its later end, in a replay of the replay as well", () => {
		let recorded = twice();
		expect(recorded.map(({ state }) => state)).toEqual(["DENIED", "COMPLETED"]);
		for (let again = 0; again < 2; again++) {
			const run = begin("recorded");
			const played = recorded.flatMap((call) => playTurn(run, [["pay", '{"to":"A"}']], [call]));
			expect(played.map(({ state }) => state)).toEqual(["DENIED", "COMPLETED"]);
			recorded = recordedOf(run);
		}
	});
});

describe("an answer of the recording", () => {
	it("that was cut off is recorded as cut, and ends the replay as it ended the run: never as completed", () => {
		const source = new SampleRun();
		source.create();
		source.decide([], { content: "half an ans", finish_reason: "length" });
		expect(source.state?.run).toMatchObject({ status: "failed", error: { code: "truncated_output" } });
		const [found] = decisionsOf(source.heard());
		const turn = recordedTurn(found?.message as never, [], [], () => null);
		expect(turn.decision.finish_reason).toBe("cut_off");
		const run = begin("recorded");
		playTurn(run, [], [], { content: "half an ans", finish_reason: "cut_off" });
		expect(run.state?.run).toMatchObject({ status: "failed", answer: null, error: { code: "truncated_output" } });
	});

	it.each([
		["cut off", "half", "cut_off"],
		["empty", "", "stop"],
	])("that was %s does not end the replay where the user went on", (_what, content, finish_reason) => {
		const run = begin("recorded", { planner: { kind: "scripted", model: null } });
		playTurn(run, [], [], { content, finish_reason, said: ["go on"] });
		expect(run.state?.run).toMatchObject({ status: "planning", turn: 2, error: null });
		expect(run.messages.at(-1)).toMatchObject({ role: "user", content: "go on" });
	});

	it("is not filled a second time: what looks like a placeholder in it came out of a result", () => {
		const run = begin("recorded", { replay: { run_id: OF, mode: "recorded", placeholders: true } });
		const content = "the page says {{calls.c1.result.key}}";
		playTurn(run, [], [], { content, results: new Map([["c1", { key: "secret" }]]) });
		expect(run.state?.run).toMatchObject({ status: "completed", answer: content });
	});
});

describe("a replay of a run with a budget of money", () => {
	it.each(["recorded", "live"] as const)("begins (%s) although a tool of today has no price in dollars", (mode) => {
		const dear = sampleTool({ tool_id: "dear", name: "dear", cost: { amount: 1, currency: "EUR" } }, cheapDigest);
		const limits = {
			turns: 5,
			turn_timeout_ms: 9_000,
			session_timeout_ms: 90_000,
			max_tokens: 0,
			max_cost_micro_usd: 1,
		};
		const replay = { run_id: OF, mode, placeholders: false };
		for (const [more, status] of [
			[{}, 422],
			[{ replay }, undefined],
		] as const) {
			const run = new SampleRun();
			const kit = run.kit.bind(run);
			const { tool } = kit();
			const own = compileTool(dear);
			run.kit = () => ({ ...kit(), tool: (hash) => (hash === dear.definition_hash ? own : tool(hash)) });
			run.tools = [...run.tools, dear];
			expect(run.create({ limits, ...more }).problem?.status).toBe(status);
			if (status !== undefined) continue;
			run.decide([["dear", "c1", {}]]);
			expect(only(run).state).toBe("REFUSED");
		}
	});
});

describe("what is recorded", () => {
	const stored = (n: number, turn: number, role: "assistant" | "user" | "tool", content: string) => ({
		n,
		turn,
		role,
		content,
	});

	it("is each decision with the words behind it, and nothing that the run was created with", () => {
		const found = decisionsOf([
			stored(1, 0, "assistant", "an earlier conversation"),
			stored(2, 0, "user", "goal"),
			stored(3, 1, "user", "before any decision"),
			stored(4, 1, "assistant", "one"),
			stored(5, 1, "tool", "{}"),
			stored(6, 1, "user", "and then?"),
			stored(7, 2, "assistant", "two"),
		]);
		expect(found.map(({ message, said }) => [message.content, said])).toEqual([
			["one", ["before any decision", "and then?"]],
			["two", []],
		]);
	});

	it("is not asked on by what was said before its only answer", () => {
		const source = new SampleRun();
		source.create();
		source.step({ kind: "said", content: "and in short", world: source.world() });
		source.decide([]);
		expect(source.state?.run.status).toBe("completed");
		const [found] = decisionsOf(source.heard());
		const run = begin("recorded", { planner: { kind: "scripted", model: null }, script_length: 1 });
		playTurn(run, [], [], { content: "answer", said: found?.said ?? [] });
		expect(run.state?.run).toMatchObject({ status: "completed", answer: "answer" });
	});

	it("is not asked on by an outcome that was found out behind its last answer", () => {
		const found = decisionsOf([
			stored(1, 0, "user", "goal"),
			stored(2, 1, "assistant", "one"),
			stored(3, 1, "user", "and then?"),
			stored(4, 2, "assistant", "two"),
			stored(5, 2, "user", "the outcome of pay is known now"),
		]);
		expect(found.map(({ said }) => said)).toEqual([["and then?"], []]);
	});

	it("follows an edit to its end, and never in a circle", () => {
		const base = { tool_id: "pay", arguments: {}, arguments_text: "{}", notes: [], error: null, result: null };
		const call = (id: string, superseded_by: string | null, state: string) =>
			({ ...base, tool_call_id: id, superseded_by, state, input_hash: `hash of ${id}` }) as unknown as CallRecord;
		const tool_calls = [{ tool_call_id: "a", provider_call_id: "c1", function_name: "pay", arguments_text: "{}" }];
		const message = { n: 1, turn: 1, role: "assistant" as const, content: null, tool_calls };
		const label = () => "http:pay";
		const edited = recordedTurn(
			message,
			[call("a", "b", "REFUSED"), call("b", "c", "REFUSED"), call("c", null, "COMPLETED")],
			[],
			label,
		);
		expect(edited.calls).toMatchObject([
			{ tool_call_id: "c", input_hash: "hash of a", state: "COMPLETED", taint_label: "http:pay" },
		]);
		const circle = recordedTurn(message, [call("a", "b", "REFUSED"), call("b", "a", "REFUSED")], [], label);
		expect(circle.calls).toMatchObject([{ state: "REFUSED" }]);
		expect(recordedTurn(message, [], [], label).calls).toEqual([null]);
	});
});
