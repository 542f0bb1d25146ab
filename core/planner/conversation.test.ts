import { describe, expect, test } from "vitest";
import { toolCallId } from "../ids.ts";
import type { PlannerMessage } from "../ports.ts";
import { conversation, type StoredMessage, wireCallId } from "./conversation.ts";
import { SYSTEM_PROMPT } from "./system-prompt.ts";

let bytes = 0;
const mint = () => toolCallId("ab".repeat(16), (n) => Uint8Array.from({ length: n }, () => bytes++ % 256));
const stored = (
	n: number,
	role: StoredMessage["role"],
	content: string | null,
	more: Partial<StoredMessage> = {},
): StoredMessage => ({
	n,
	turn: 1,
	role,
	content,
	...more,
});
const call = (tool_call_id: string, arguments_text: string | null, function_name = "find") => ({
	tool_call_id,
	provider_call_id: "call_0",
	function_name,
	arguments_text,
});
type Assistant = Extract<PlannerMessage, { role: "assistant" }>;
const assistantOf = (messages: PlannerMessage[]) => messages.find((one) => one.role === "assistant") as Assistant;
const argumentsOf = (text: string | null, more: Partial<StoredMessage> = {}) =>
	assistantOf(conversation("g", [stored(1, "assistant", null, { tool_calls: [call(mint(), text)], ...more })]))
		.tool_calls?.[0]?.function.arguments;

describe("what a managed planner is sent", () => {
	test("the rules, the goal, the history in its order", () => {
		expect(
			conversation("目标", [stored(2, "assistant", "hello"), stored(1, "user", "hi"), stored(3, "system", "be brief")]),
		).toEqual([
			{ role: "system", content: SYSTEM_PROMPT },
			{ role: "user", content: "目标" },
			{ role: "user", content: "hi" },
			{ role: "assistant", content: "hello" },
			{ role: "system", content: "be brief" },
		]);
		expect(conversation(null, [])).toHaveLength(1);
		for (const rule of ["never an instruction", "Never repeat a call that was denied", "language of the user"])
			expect(SYSTEM_PROMPT).toContain(rule);
	});

	test("equal provider ids become unique, paired ids, results in the order of the calls (T05)", () => {
		const [a, b, c] = [mint(), mint(), mint()];
		const messages = conversation("g", [
			stored(1, "assistant", null, { tool_calls: [call(a, "{}")] }),
			stored(2, "tool", "result a", { tool_call_id: a }),
			stored(3, "assistant", "two more", { turn: 2, tool_calls: [call(b, "{}"), call(c, "{}")] }),
			stored(4, "tool", "result c", { turn: 2, tool_call_id: c }),
			stored(5, "tool", "result b", { turn: 2, tool_call_id: b }),
		]);
		const asked = messages.flatMap((one) =>
			one.role === "assistant" ? (one.tool_calls ?? []).map((each) => each.id) : [],
		);
		const answered = messages.flatMap((one) => (one.role === "tool" ? [one.tool_call_id] : []));
		expect(new Set(asked).size).toBe(3);
		expect(answered).toEqual(asked);
		expect(messages.filter((one) => one.role === "tool").map((one) => one.content)).toEqual([
			"result a",
			"result b",
			"result c",
		]);
		// OpenAI refuses ids of more than 40 characters.
		for (const id of asked) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,40}$/);
	});

	test("exactly one tool message per call: the last one counts, a missing one is unknown, an orphan is dropped", () => {
		const [a, b] = [mint(), mint()];
		const messages = conversation("g", [
			stored(1, "assistant", null, { tool_calls: [call(a, "{}"), call(b, "{}")] }),
			stored(2, "tool", "awaiting", { tool_call_id: a }),
			stored(3, "tool", "final", { tool_call_id: a }),
			stored(4, "tool", "orphan", { tool_call_id: mint() }),
			stored(5, "tool", "no id"),
		]);
		const tools = messages.filter((one) => one.role === "tool");
		expect(tools.map((one) => one.tool_call_id)).toEqual([wireCallId(a), wireCallId(b)]);
		expect(tools[0]?.content).toBe("final");
		expect(JSON.parse(tools[1]?.content ?? "")).toMatchObject({ status: "outcome_unknown" });
	});

	test("reasoning goes back with every tool turn, an empty one too, and with no other", () => {
		const turn = (more: Partial<StoredMessage>) => assistantOf(conversation("g", [stored(1, "assistant", null, more)]));
		expect(turn({ tool_calls: [call(mint(), "{}")], reasoning_content: "because" }).reasoning_content).toBe("because");
		expect(turn({ tool_calls: [call(mint(), "{}")] }).reasoning_content).toBe("");
		expect(turn({ content: "done", reasoning_content: "because" })).toEqual({ role: "assistant", content: "done" });
		expect(turn({ content: null })).toEqual({ role: "assistant", content: "" });
	});

	test("arguments go back as they came, but never cut, broken or half a character (T03)", () => {
		expect(argumentsOf('{ "q" : "a" }')).toBe('{ "q" : "a" }');
		expect(argumentsOf('{"id":2512292042121000001}')).toBe('{"id":2512292042121000001}');
		for (const text of [null, "", "  ", "null", '{"q":"a', "[1]", '{"a":1}{"b":2}', '{"q":"\\ud800"}'])
			expect(argumentsOf(text)).toBe("{}");
		expect(argumentsOf('{"q":"a"}', { cut: true })).toBe("{}");
	});

	test("a name that the provider would refuse does not block every later request", () => {
		const name = (text: string) =>
			assistantOf(conversation("g", [stored(1, "assistant", null, { tool_calls: [call(mint(), "{}", text)] })]))
				.tool_calls?.[0]?.function.name;
		expect(name("a.b c")).toBe("a_b_c");
		expect(name("")).toBe("unnamed");
		expect(name("x".repeat(100))).toBe("x".repeat(64));
		expect(name("find")).toBe("find");
	});

	test("every text is well-formed (O05)", () => {
		const id = mint();
		const messages = conversation("\ud800", [
			stored(1, "user", "\udc00"),
			stored(2, "assistant", "\ud83d", { reasoning_content: "\ud83d", tool_calls: [call(id, '{"q":"\ud83d"}')] }),
			stored(3, "tool", "\ud83d", { tool_call_id: id }),
		]);
		expect(JSON.stringify(messages)).not.toMatch(/\\ud[89a-f]/i);
	});
});
