/** The Workers AI planner in workerd behind a fake binding; streams and rules it shares with the OpenAI-compatible one. */
import { beforeAll, describe, expect, test } from "vitest";
import { OpenAiPlanner } from "#adapters/openai/openai-planner.ts";
import {
	type AiBinding,
	WorkersAiPlanner,
	type WorkersAiPlannerConfig,
} from "#adapters/workers-ai/workers-ai-planner.ts";
import { readArguments } from "#core/planner/arguments.ts";
import { executes } from "#core/planner/decision.ts";
import type { Planner, PlannerRequest } from "#core/ports.ts";
import fixtures from "../fixtures/model-streams.json" with { type: "json" };

const event = (chunk: unknown) => `data: ${JSON.stringify(chunk)}\n\n`;
const delta = (part: unknown, finish_reason: string | null = null) =>
	event({ object: "chat.completion.chunk", choices: [{ index: 0, delta: part, finish_reason }] });
const DONE = "data: [DONE]\n\n";
const CALL = delta({
	tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "get_item", arguments: '{"sku":"A1"}' } }],
});

const request = (more: Partial<PlannerRequest> = {}): PlannerRequest => ({
	model: null,
	messages: [{ role: "user", content: "你好" }],
	functions: [{ name: "get_item", description: "Gets an item.", parameters: { type: "object" } }],
	user: "tenant_hash",
	timeout_ms: 5_000,
	...more,
});
const live = () => new AbortController().signal;
const streamOf = (text: string) => new Response(text).body as ReadableStream;
const endless = (first: string) =>
	new ReadableStream({
		start(controller) {
			controller.enqueue(new TextEncoder().encode(first));
		},
	});
type Asked = { model: string; inputs: Record<string, unknown>; signal: AbortSignal | undefined };

/** A binding that gives one answer and remembers what it was asked. */
function binding(answer: () => unknown): { ai: AiBinding; asked: Asked[] } {
	const asked: Asked[] = [];
	const ai: AiBinding = {
		async run(model, inputs, options) {
			asked.push({ model, inputs, signal: options?.signal });
			return answer();
		},
	};
	return { ai, asked };
}
const planner = (answer: () => unknown, more: Partial<WorkersAiPlannerConfig> = {}) =>
	new WorkersAiPlanner({ ai: binding(answer).ai, ...more });

async function decided(answer: () => unknown, more: Partial<WorkersAiPlannerConfig> = {}) {
	const planned = await planner(answer, more).plan(request(), live(), () => undefined);
	if (!planned.ok) throw new Error(planned.fault.message);
	return planned.decision;
}
async function faulted(
	answer: () => unknown,
	more: Partial<WorkersAiPlannerConfig> = {},
	asked = request(),
	signal = live(),
) {
	const planned = await planner(answer, more).plan(asked, signal, () => undefined);
	if (planned.ok) throw new Error("planned");
	return planned.fault;
}

describe("what is asked", () => {
	test("messages as they are, tools, a stream, a limit; the default model unless one is named", async () => {
		const { ai, asked } = binding(() => streamOf(delta({ content: "x" }, "stop") + DONE));
		const one = new WorkersAiPlanner({ ai, maxTokens: 4_096 });
		await one.plan(request(), live(), () => undefined);
		await one.plan(request({ model: "@cf/other", functions: [] }), live(), () => undefined);
		expect(asked.map((each) => each.model)).toEqual(["@cf/deepseek-ai/deepseek-v4-flash-0731", "@cf/other"]);
		expect(asked[0]?.inputs).toEqual({
			messages: request().messages,
			tools: [
				{
					type: "function",
					function: { name: "get_item", description: "Gets an item.", parameters: { type: "object" } },
				},
			],
			stream: true,
			stream_options: { include_usage: true },
			max_tokens: 4_096,
		});
		expect(asked[0]?.signal).toBeInstanceOf(AbortSignal);
		expect("tools" in (asked[1]?.inputs ?? {})).toBe(false);
	});
	test("the platform's binding fits", () => {
		const ai = { run: async () => null } as unknown as Ai;
		expect(new WorkersAiPlanner({ ai: ai as unknown as AiBinding })).toBeInstanceOf(WorkersAiPlanner);
	});
	test.each([null, undefined])("binding %s: unavailable", async (ai) => {
		expect(await new WorkersAiPlanner({ ai }).plan(request(), live(), () => undefined)).toEqual({
			ok: false,
			fault: { code: "planner_unavailable", message: "no Workers AI binding is configured", retryable: false },
		});
	});
});

/** One contract: the same bytes give the same decision, whoever carries them. */
describe("recorded streams, as both planners read them", () => {
	type Fixture = {
		id: string;
		pre?: string;
		deltas?: unknown[];
		finish?: string;
		noFinish?: boolean;
		stall?: boolean;
		tail?: string;
		executes: number | null;
	};
	const offered = new Set(["get_item", "submit", "run", "list_all", "tag_item", "get_a", "get_b", "add", "weather"]);
	const streams = (fixtures as Fixture[]).filter((one) => one.deltas !== undefined && !one.stall);
	// The library is loaded by the first plan; the test runner transforms it then, which takes seconds.
	beforeAll(() => import("openai"), 60_000);
	const refusedLater = new Set(["dsml-in-args", "args-empty-params-in-content"]);

	test.each(streams.map((one) => [one.id, one] as const))("%s", async (_, fixture) => {
		const body =
			(fixture.pre ?? "") +
			(fixture.deltas ?? []).map((one) => delta(one)).join("") +
			(fixture.noFinish ? "" : delta({}, fixture.finish ?? "stop") + DONE) +
			(fixture.tail ?? "");
		const openai: Planner = new OpenAiPlanner({
			apiKey: "sk-test",
			baseUrl: "https://planner.test",
			fetch: async () => new Response(body, { headers: { "content-type": "text/event-stream" } }),
		});
		const said: string[][] = [[], []];
		const [here, there] = await Promise.all(
			[planner(() => streamOf(body)), openai].map((one, at) =>
				one.plan(request(), live(), ({ content }) => said[at]?.push(content)),
			),
		);
		expect(here).toEqual(there);
		expect(said[0]).toEqual(said[1]);
		if (!here?.ok) throw new Error("not planned");
		const run = executes(here.decision).ok
			? here.decision.tool_calls.filter((call) => offered.has(call.name) && readArguments(call.arguments).ok)
			: [];
		if (fixture.executes !== null) expect(run.length).toBe(refusedLater.has(fixture.id) ? 1 : fixture.executes);
	});
});

describe("older models", () => {
	const text = event({ response: "Hel" }) + event({ response: "lo" });
	const usage = (completion_tokens: number) => event({ response: "", usage: { prompt_tokens: 7, completion_tokens } });
	const calls = event({
		tool_calls: [
			{ name: "get_item", arguments: { sku: "A1" } },
			{ name: "get_item", arguments: { sku: "A2" } },
		],
	});

	test("text in `response`, streamed on", async () => {
		const texts: string[] = [];
		const planned = await planner(() => streamOf(text + usage(5) + DONE)).plan(request(), live(), (one) =>
			texts.push(one.content),
		);
		expect(texts.filter((one) => one !== "")).toEqual(["Hel", "lo"]);
		expect(planned).toMatchObject({
			ok: true,
			decision: { content: "Hello", finish_reason: "stop", usage: { prompt_tokens: 7, completion_tokens: 5 } },
		});
	});
	test("whole calls without ids stay apart", async () => {
		expect(await decided(() => streamOf(calls + usage(9) + DONE))).toMatchObject({
			finish_reason: "tool_calls",
			tool_calls: [
				{ id: "", name: "get_item", arguments: '{"sku":"A1"}' },
				{ id: "", name: "get_item", arguments: '{"sku":"A2"}' },
			],
		});
	});
	test("no finish reason: at its limit, or without a usage, a turn executes nothing (T03)", async () => {
		expect((await decided(() => streamOf(calls + usage(100) + DONE), { maxTokens: 100 })).finish_reason).toBe("length");
		expect((await decided(() => streamOf(calls + DONE))).finish_reason).toBe("cut_off");
		expect((await decided(() => streamOf(calls + usage(9)))).finish_reason).toBe("cut_off");
	});
	test("an object instead of a stream, old shape and new", async () => {
		const tool_calls = [{ name: "get_item", arguments: { sku: "A1" } }];
		const older = { response: null, tool_calls, usage: { prompt_tokens: 1, completion_tokens: 2 } };
		expect(await decided(() => older)).toMatchObject({
			finish_reason: "tool_calls",
			tool_calls: [{ name: "get_item", arguments: '{"sku":"A1"}' }],
		});
		const message = { role: "assistant", content: "hi", reasoning_content: "hm" };
		expect(await decided(() => ({ choices: [{ index: 0, message, finish_reason: "stop" }] }))).toMatchObject({
			content: "hi",
			reasoning_content: "hm",
			finish_reason: "stop",
		});
	});
	test.each([null, undefined, "text", 7, [], {}])("%j is no turn", async (answer) => {
		expect(await decided(() => answer)).toMatchObject({ content: null, tool_calls: [], finish_reason: "cut_off" });
	});
});

describe("faults", () => {
	const thrown = (message: string) => () => {
		throw new Error(message);
	};
	test.each([
		["5007: No such model @cf/x or task", "planner_rejected", false],
		["AiError: 5004: Invalid data", "planner_rejected", false],
		["InferenceUpstreamError: 3006: Request is too large", "planner_rejected", false],
		["3036: You have used up your daily free allocation", "planner_rejected", false],
		["3040: No more data centers to forward the request to", "planner_error", true],
		["3007: Request timeout", "planner_timeout", true],
		["Network connection lost.", "planner_error", true],
		["the year 5007: nothing", "planner_error", true],
		["", "planner_error", true],
	])("%s", async (message, code, retryable) => {
		expect(await faulted(thrown(message))).toMatchObject({ code, retryable });
	});
	test("an error inside a stream that began well", async () => {
		expect(await faulted(() => streamOf(CALL + event({ error: { code: 3040, message: "busy" } })))).toMatchObject({
			message: "Workers AI has no capacity at present (3040)",
			retryable: true,
		});
	});
	test("messages are one short masked line", async () => {
		const { message } = await faulted(thrown(`broken\npassword=hunter2 13812345678 ${"x".repeat(5_000)}`));
		expect(message).not.toMatch(/hunter2|13812345678|\n/);
		expect(message.length).toBeLessThan(300);
	});
	test("silence, the turn's clock and a cancel end it, also when the binding ignores its signal", async () => {
		const never = () => new Promise(() => undefined);
		const stalled = { message: "the planner's stream went silent", retryable: true };
		expect(await faulted(never, { idleMs: 30 })).toMatchObject(stalled);
		expect(await faulted(() => endless(CALL), { idleMs: 30 })).toMatchObject(stalled);
		expect(await faulted(never, {}, request({ timeout_ms: 30 }))).toMatchObject({
			code: "planner_timeout",
			retryable: false,
		});
		const during = new AbortController();
		setTimeout(() => during.abort(), 20);
		const cancelled = { message: "the plan was cancelled", retryable: false };
		expect(await faulted(() => endless(CALL), {}, request(), during.signal)).toMatchObject(cancelled);
	});
	test("cancelled before: nothing is asked", async () => {
		const { ai, asked } = binding(() => streamOf(DONE));
		const before = new AbortController();
		before.abort();
		const planned = await new WorkersAiPlanner({ ai }).plan(request(), before.signal, () => undefined);
		expect(planned).toMatchObject({ ok: false, fault: { message: "the plan was cancelled" } });
		expect(asked).toEqual([]);
	});
	test("a listener that throws is no fault", async () => {
		const planned = await planner(() => streamOf(delta({ content: "x" }, "stop") + DONE)).plan(
			request(),
			live(),
			() => {
				throw new Error("gone");
			},
		);
		expect(planned).toMatchObject({ ok: true, decision: { content: "x" } });
	});
});
