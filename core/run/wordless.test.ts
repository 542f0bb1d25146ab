import { describe, expect, it } from "vitest";
import { decisionsOf, recordedTurn } from "./recording.ts";
import { CALLER, SampleRun } from "./sample-run.ts";

function begun(): SampleRun {
	const run = new SampleRun();
	run.create();
	return run;
}

/** One whole turn of reading. */
function find(run: SampleRun, id: string, more: Parameters<SampleRun["decide"]>[1] = {}): void {
	run.decide([["find", id, { q: id }]], more);
	for (let invoke = run.takeInvoke(); invoke !== undefined; invoke = run.takeInvoke()) run.succeed(invoke);
}

/** What a recording of the run says, decision by decision: words, the planner's ids and arguments, what was said behind it. */
const recorded = (run: SampleRun) =>
	decisionsOf(run.heard()).map(({ message, said }) => {
		const calls = [...run.calls.values()].filter(({ turn }) => turn === message.turn);
		const { decision } = recordedTurn(message, calls, [], () => null);
		const asked = decision.tool_calls?.map((call) => [call.id, call.function.arguments]) ?? [];
		return [decision.content, asked, said];
	});

describe("a decision without words of a planner outside", () => {
	it("keeps a number and no message, and is recorded in its place from its calls", () => {
		const run = begun();
		find(run, "a");
		find(run, "b", { content: "a word" });
		run.decide([
			["find", "c", { q: "c" }],
			["nope", "d", {}],
		]);
		run.step({ kind: "said", content: "and then?", world: run.world() });
		const invoke = run.takeInvoke();
		if (invoke !== undefined) run.succeed(invoke);
		find(run, "e");
		expect(run.messages.map(({ n, role, content }) => [n, role, content])).toEqual([
			[1, "user", "goal"],
			[3, "assistant", "a word"],
			[5, "user", "and then?"],
		]);
		expect(recorded(run)).toEqual([
			[null, [["a", '{"q":"a"}']], []],
			["a word", [["b", '{"q":"b"}']], []],
			[
				null,
				[
					["c", '{"q":"c"}'],
					["d", "{"],
				],
				["and then?"],
			],
			[null, [["e", '{"q":"e"}']], []],
		]);
	});

	it("is recorded as the planner made it where a person edited a call of it", () => {
		const run = begun();
		run.decide([["pay", "c1", { to: "A" }]]);
		const [approval] = [...run.approvals.values()];
		const { approval_id = "" } = approval ?? {};
		const edited = run.step({
			kind: "approval_edited",
			approval_id,
			approval: approval ?? null,
			arguments: { to: "B" },
			by: CALLER,
			world: run.world(),
		});
		expect(edited.problem).toBeNull();
		expect(run.calls.size).toBe(2);
		expect(recorded(run)).toEqual([[null, [["c1", '{"to":"A"}']], []]]);
	});

	it("keeps its message where its calls do not say all of it", () => {
		for (const more of [{ content: "" }, { reasoning_content: "hm" }, { finish_reason: "length" as const }]) {
			const run = begun();
			find(run, "a", more);
			expect(run.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
			expect(recorded(run)).toHaveLength(1);
		}
		const managed = new SampleRun();
		managed.create({ planner: { kind: "openai", model: null } });
		find(managed, "a");
		expect(managed.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
	});

	it("is not made up for a turn that has its message, or for an answer", () => {
		const run = begun();
		find(run, "a", { content: "a word" });
		run.decide([]);
		expect(run.heard()).toEqual(run.messages);
		expect(recorded(run)).toEqual([
			["a word", [["a", '{"q":"a"}']], []],
			["answer", [], []],
		]);
	});
});
