/** Replays in the machine: what tests over HTTP cannot time. */
import { describe, expect, it } from "vitest";
import type { Created, Planned } from "./event.ts";
import { decisionsOf, type RecordedCall, recordedTurn } from "./recording.ts";
import { SampleRun } from "./sample-run.ts";
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

	it("follows an edit to its end, and never in a circle", () => {
		const base = { tool_id: "pay", arguments: {}, arguments_text: "{}", notes: [], error: null, result: null };
		const call = (id: string, superseded_by: string | null, state: string) =>
			({ ...base, tool_call_id: id, superseded_by, state, input_hash: `hash of ${id}` }) as unknown as CallRecord;
		const tool_calls = [{ tool_call_id: "a", provider_call_id: "c1", function_name: "pay", arguments_text: "{}" }];
		const message = { n: 1, turn: 1, role: "assistant" as const, content: null, tool_calls };
		const edited = recordedTurn(
			message,
			[call("a", "b", "REFUSED"), call("b", "c", "REFUSED"), call("c", null, "COMPLETED")],
			[],
		);
		expect(edited.calls).toMatchObject([{ tool_call_id: "c", input_hash: "hash of a", state: "COMPLETED" }]);
		const circle = recordedTurn(message, [call("a", "b", "REFUSED"), call("b", "a", "REFUSED")], []);
		expect(circle.calls).toMatchObject([{ state: "REFUSED" }]);
		expect(recordedTurn(message, [], []).calls).toEqual([null]);
	});
});
