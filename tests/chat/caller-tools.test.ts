/** The caller's own tools through a stock OpenAI client: handed back, answered by their ids alone, beside governed tools. */
import { abortAllDurableObjects } from "cloudflare:test";
import type OpenAI from "openai";
import { beforeAll, describe, expect, it } from "vitest";
import { approve, ledger, ledgerTool, PAY, READ, rested } from "../acceptance/tools.ts";
import { call, seedTenant, sha256, type TestTenant } from "../support/client.ts";
import { calls, callsAll, client, modelAsked, says, scriptModel } from "./chat.ts";

let tenant: TestTenant;
let paid: string;
let found: string;
let openai: OpenAI;
beforeAll(async () => {
	tenant = await seedTenant();
	paid = await ledgerTool(tenant, "pay", PAY);
	found = await ledgerTool(tenant, "find", READ);
	openai = client(tenant.operator);
});

type Message = OpenAI.ChatCompletionMessageParam;
const weather: OpenAI.ChatCompletionTool = {
	type: "function",
	function: {
		name: "weather",
		description: "the weather of a city",
		strict: true,
		parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
	},
};
const tools = [weather, { type: "function" as const, function: { name: "clock" } }];
const user = (content: string): Message => ({ role: "user", content });
const tool = (tool_call_id: string, content: string): Message => ({ role: "tool", tool_call_id, content });
const runOf = async (run_id: string) => (await call("GET", `/v1/runs/${run_id}`, undefined, tenant.operator)).body;
const runIdOf = (id: string) => `run_${id.slice(5, 37)}`;
const idsOf = (message: OpenAI.ChatCompletionMessage | undefined): string[] =>
	(message?.tool_calls ?? []).map(({ id }) => id);

describe("a call of the caller's tool", () => {
	it("comes back to a stock client, which goes on with nothing but the messages", async () => {
		const model = await scriptModel(
			callsAll(["find", { q: "x" }], ["weather", { city: "Bern" }], ["clock", {}]),
			says("It rains at noon."),
			calls("weather", { city: "Rome" }),
			says("Sun."),
		);
		const messages: Message[] = [user("how is it outside?")];
		const first = await openai.chat.completions.create({ model, messages, tools, tool_choice: "auto" });
		const [choice] = first.choices;
		expect(choice?.finish_reason).toBe("tool_calls");
		expect(choice?.message.content).toBeNull();
		// the governed call has run and is not the client's
		expect(await ledger(found)).toHaveLength(1);
		expect(choice?.message.tool_calls).toMatchObject([
			{ type: "function", function: { name: "weather", arguments: '{"city":"Bern"}' } },
			{ type: "function", function: { name: "clock", arguments: "{}" } },
		]);
		const [a = "", b = ""] = idsOf(choice?.message);
		const run_id = runIdOf(a);
		const waiting = await runOf(run_id);
		expect(waiting.status).toBe("awaiting_caller");
		expect(waiting.caller_calls).toMatchObject([
			{ tool_call_id: a, function_name: "weather", arguments: { city: "Bern" } },
			{ tool_call_id: b, function_name: "clock", arguments: {} },
		]);
		expect(Date.parse(waiting.caller_calls[0].expires_at)).toBeGreaterThan(Date.now());
		const offered = (await modelAsked(model))[0].body.tools.map((one: any) => one.function.name);
		expect(offered).toEqual(expect.arrayContaining(["find", "pay"]));
		expect(offered.slice(-2)).toEqual(["weather", "clock"]);

		messages.push(choice?.message as Message, tool(a, "rain"), tool(b, "12:00"));
		const second = await openai.chat.completions.create({ model, messages, tools });
		expect(second.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "It rains at noon." } });
		expect(second.usage?.prompt_tokens).toBe(10);
		expect(second.id).not.toBe(first.id);
		// the planner has one message for each of its calls, in its order, the governed one's among them
		const { messages: sent } = (await modelAsked(model))[1].body;
		const results = sent.filter((one: any) => one.role === "tool").map((one: any) => JSON.parse(one.content));
		expect(results.map((one: any) => one.status)).toEqual(["success", "success", "success"]);
		expect(results.map((one: any) => one.data)).toMatchObject([{ status: 200 }, "rain", "12:00"]);
		expect(sent.at(-4).tool_calls.map((one: any) => one.id)).toEqual(
			sent.slice(-3).map((one: any) => one.tool_call_id),
		);

		// the next words find the run by the ids in the history
		messages.push(second.choices[0]?.message as Message, user("and in Rome?"));
		const third = await openai.chat.completions.create({ model, messages, tools });
		const [c = ""] = idsOf(third.choices[0]?.message);
		expect(runIdOf(c)).toBe(run_id);
		messages.push(third.choices[0]?.message as Message, {
			role: "tool",
			tool_call_id: c,
			content: [
				{ type: "text", text: "sun" },
				{ type: "text", text: "26 degrees" },
			],
		});
		const fourth = await openai.chat.completions.create({ model, messages, tools });
		expect(fourth.choices[0]?.message.content).toBe("Sun.");
		const run = await runOf(run_id);
		expect(run).toMatchObject({ status: "completed", turn: 4, caller_calls: [] });
		expect(run.calls.map((one: any) => [one.tool_id, one.state, one.source])).toEqual([
			["find", "COMPLETED", "live"],
			["caller:weather", "COMPLETED", "caller"],
			["caller:clock", "COMPLETED", "caller"],
			["caller:weather", "COMPLETED", "caller"],
		]);
		expect(run.calls.at(-1).result).toBe("sun\n26 degrees");
	});

	it("is on record as the caller's: handed out, answered, nothing invoked; the chain holds", async () => {
		const model = await scriptModel(calls("clock", {}), says("noon"));
		const messages = [user("time?")];
		const first = await openai.chat.completions.create({ model, messages, tools });
		const [id = ""] = idsOf(first.choices[0]?.message);
		await openai.chat.completions.create({ model, messages: [...messages, tool(id, "12:00")], tools });
		const path = `/v1/runs/${runIdOf(id)}/evidence`;
		const { data } = (await call("GET", path, undefined, tenant.operator)).body;
		expect(data.map((one: any) => [one.tool_id, one.outcome, one.envelope.attempts])).toEqual([
			["caller:clock", "waiting", 0],
			["caller:clock", "answered", 0],
		]);
		for (const one of data) expect(one.proves).toContain("nothing was invoked here");
		expect(data[1].does_not_prove).toContain("that the answer is true");
		// nor can a reader of the evidence find it out by trying
		expect(JSON.stringify(data)).not.toContain("12:00");
		expect(data[1].facts).toHaveLength(1);
		expect(data[1].facts[0]).not.toContain(sha256("12:00"));
		expect((await call("GET", `${path}/verify`, undefined, tenant.operator)).body.valid).toBe(true);
	});

	it("streams as chunks that the library puts together, and the text of both turns", async () => {
		const model = await scriptModel(
			calls("weather", { city: "Bern" }, "let me ask"),
			says("It ", "rains."),
			callsAll(["clock", {}], ["weather", { city: "Rome" }]),
		);
		const messages: Message[] = [user("outside?")];
		const runner = openai.chat.completions.stream({ model, messages, tools, stream_options: { include_usage: true } });
		const seen: (string | null | undefined)[] = [];
		for await (const one of runner) seen.push(one.choices[0]?.finish_reason);
		expect(seen.filter((one) => typeof one === "string")).toEqual(["tool_calls"]);
		const final = await runner.finalChatCompletion();
		expect(final.usage?.total_tokens).toBe(15);
		const message = final.choices[0]?.message;
		expect(message?.content).toBe("let me ask");
		expect(message?.tool_calls).toMatchObject([{ function: { name: "weather", arguments: '{"city":"Bern"}' } }]);
		const [id = ""] = idsOf(message);
		messages.push(message as Message, tool(id, "rain"));
		const text: string[] = [];
		const next = openai.chat.completions.stream({ model, messages, tools });
		next.on("content", (delta) => text.push(delta));
		expect(await next.finalContent()).toBe("It rains.");
		expect(text).toEqual(["It ", "rains."]);

		messages.push({ role: "assistant", content: "It rains." }, user("and now?"));
		const both = await openai.chat.completions.stream({ model, messages, tools }).finalChatCompletion();
		expect(both.choices[0]?.message.tool_calls?.map((one: any) => one.function.name)).toEqual(["clock", "weather"]);
	});

	it("runs with the library's own tool runner", async () => {
		const model = await scriptModel(callsAll(["find", { q: "x" }], ["weather", { city: "Bern" }]), says("rainy"));
		const asked: unknown[] = [];
		const runner = openai.chat.completions.runTools({
			model,
			messages: [{ role: "user", content: "outside?" }],
			tools: [
				{
					type: "function",
					function: {
						name: "weather",
						description: "",
						parameters: { type: "object", properties: { city: { type: "string" } } },
						parse: JSON.parse,
						function: (args: unknown) => {
							asked.push(args);
							return "rain";
						},
					},
				},
			],
		});
		expect(await runner.finalContent()).toBe("rainy");
		expect(asked).toEqual([{ city: "Bern" }]);
	});

	it("that does not fit its schema, or that nobody offered, is the planner's to mend", async () => {
		const model = await scriptModel(
			callsAll(["weather", { town: "Bern" }], ["forecast", {}]),
			calls("weather", { city: "Bern" }),
		);
		const first = await openai.chat.completions.create({ model, messages: [user("x")], tools });
		expect(first.choices[0]?.message.tool_calls).toHaveLength(1);
		const { messages } = (await modelAsked(model))[1].body;
		const told = messages.slice(-2).map((one: any) => JSON.parse(one.content));
		expect(told.map((one: any) => one.error.reason)).toEqual(["validation_failed", "unknown_tool"]);
	});
});

describe("instructions", () => {
	it("that are new reach the planner behind the results, once; those it has are not said again", async () => {
		const model = await scriptModel(calls("clock", {}), calls("clock", {}), calls("clock", {}), says("noon"));
		const system = (content: string): Message => ({ role: "system", content });
		const talk: Message[] = [user("time?")];
		const say = async (...instructions: string[]) => {
			const messages = [...instructions.map(system), ...talk];
			const { choices } = await openai.chat.completions.create({ model, messages, tools });
			const [id = ""] = idsOf(choices[0]?.message);
			talk.push(choices[0]?.message as Message, tool(id, `12:0${talk.length}`));
		};
		for (const one of ["first", "first", "second", "first"]) await say("always", one);
		const asked = await modelAsked(model);
		const rolesOf = (n: number): string[] =>
			asked[n].body.messages.slice(1).map(({ role, content }: any) => (role === "system" ? content : role));
		expect(rolesOf(1)).toEqual(["always", "first", "user", "assistant", "tool"]);
		expect(rolesOf(2).slice(5)).toEqual(["assistant", "tool", "always", "second"]);
		expect(rolesOf(3).slice(9)).toEqual(["assistant", "tool", "always", "first"]);
	});
});

describe("a turn with an approval and a call of the caller's", () => {
	it("asks the caller first, then says that an approval is pending, then goes on by itself", async () => {
		const model = await scriptModel(callsAll(["pay", { to: "A" }], ["clock", {}]), says("paid at noon"));
		const messages: Message[] = [user("pay A and tell me when")];
		const first = await openai.chat.completions.create({ model, messages, tools });
		expect(first.choices[0]?.finish_reason).toBe("tool_calls");
		const [id = ""] = idsOf(first.choices[0]?.message);
		expect(first.choices[0]?.message.tool_calls).toHaveLength(1);
		messages.push(first.choices[0]?.message as Message, tool(id, "12:00"));
		const second = await openai.chat.completions.create({ model, messages, tools });
		expect(second.choices[0]?.finish_reason).toBe("stop");
		expect(second.choices[0]?.message.content).toContain("An approval is pending");
		expect(await ledger(paid)).toHaveLength(0);
		const waiting = await runOf(runIdOf(id));
		await approve(tenant, waiting.pending_approvals[0]);
		expect((await rested(tenant, waiting.run_id, waiting.seq)).answer).toBe("paid at noon");
		expect(await ledger(paid)).toHaveLength(1);
	});
});

describe("a request that is repeated", () => {
	it("with the same answers says nothing new; what it missed is its answer", async () => {
		const model = await scriptModel(calls("clock", {}), says("noon"), says("never"));
		const messages: Message[] = [user("time?")];
		const first = await openai.chat.completions.create({ model, messages, tools });
		const [id = ""] = idsOf(first.choices[0]?.message);
		messages.push(first.choices[0]?.message as Message, tool(id, "12:00"), user("in words"));
		const [one, two] = await Promise.all([
			openai.chat.completions.create({ model, messages, tools }),
			openai.chat.completions.create({ model, messages, tools }),
		]);
		expect([one, two].map((each) => each.choices[0]?.message.content)).toEqual(["noon", "noon"]);
		const again = await openai.chat.completions.create({ model, messages, tools });
		expect(again.choices[0]?.message.content).toBe("noon");
		expect(await modelAsked(model)).toHaveLength(2);
		expect((await modelAsked(model))[1].body.messages.slice(-2)).toMatchObject([
			{ role: "tool" },
			{ role: "user", content: "in words" },
		]);
	});

	it("before it answers gets the same calls, by the run's name; one key makes one run", async () => {
		const model = await scriptModel(calls("clock", {}));
		const body = { model, messages: [user("time?")], tools };
		const headers = { "idempotency-key": crypto.randomUUID() };
		const first = await openai.chat.completions.create(body, { headers });
		const repeated = await openai.chat.completions.create(body, { headers });
		const [id = ""] = idsOf(first.choices[0]?.message);
		expect(idsOf(repeated.choices[0]?.message)).toEqual([id]);
		await expect(openai.chat.completions.create({ ...body, tools: [weather] }, { headers })).rejects.toMatchObject({
			status: 409,
			code: "idempotency_conflict",
		});
		const words = { ...body, messages: [user("well?")] };
		const named = await openai.chat.completions.create(words, { headers: { "belay-run-id": runIdOf(id) } });
		expect(idsOf(named.choices[0]?.message)).toEqual([id]);
		expect(await modelAsked(model)).toHaveLength(1);
	});
});

describe("a caller that does not answer", () => {
	it("is awaited by the object's next life as well", async () => {
		const model = await scriptModel(calls("clock", {}), says("noon"));
		const messages: Message[] = [user("time?")];
		const first = await openai.chat.completions.create({ model, messages, tools });
		const [id = ""] = idsOf(first.choices[0]?.message);
		await abortAllDurableObjects();
		expect((await runOf(runIdOf(id))).caller_calls).toMatchObject([{ tool_call_id: id }]);
		const second = await openai.chat.completions.create({ model, messages: [...messages, tool(id, "12:00")], tools });
		expect(second.choices[0]?.message.content).toBe("noon");
	});

	it("finds its run suspended, and goes on with a late answer", async () => {
		const model = await scriptModel(says("ready"), calls("clock", {}), says("noon"));
		const limits = { turn_timeout_ms: 1_000, session_timeout_ms: 1_200 };
		const made = await call(
			"POST",
			"/v1/runs",
			{ goal: "x", planner: { kind: "openai", model }, limits },
			tenant.operator,
		);
		const { run_id } = await rested(tenant, made.body.run_id, made.body.seq);
		const headers = { "belay-run-id": run_id };
		const first = await openai.chat.completions.create({ model, messages: [user("time?")], tools }, { headers });
		const [id = ""] = idsOf(first.choices[0]?.message);
		const { seq } = await runOf(run_id);
		const late = await rested(tenant, run_id, seq);
		expect(late).toMatchObject({ status: "suspended", error: { code: "caller_timeout" } });
		expect(late.caller_calls).toMatchObject([{ tool_call_id: id }]);
		const messages = [user("time?"), first.choices[0]?.message as Message, tool(id, "12:00")];
		const second = await openai.chat.completions.create({ model, messages, tools });
		expect(second.choices[0]?.message.content).toBe("noon");
	});
});

describe("answers whose own answer was lost", () => {
	it("sent again with other words say these, once", async () => {
		const model = await scriptModel(calls("weather", { city: "Bern" }), says("rain"), says("stopped"), says("again"));
		const messages: Message[] = [user("how is it outside?")];
		const first = await openai.chat.completions.create({ model, messages, tools });
		const [id = ""] = idsOf(first.choices[0]?.message);
		messages.push(first.choices[0]?.message as Message, tool(id, "rain"));
		const text = async (...more: Message[]) =>
			(await openai.chat.completions.create({ model, messages: [...messages, ...more], tools })).choices[0]?.message
				.content;
		expect(await text()).toBe("rain");
		expect(await text()).toBe("rain");
		expect(await text(user("stop!"))).toBe("stopped");
		await abortAllDurableObjects();
		expect(await text(user("stop!"))).toBe("stopped");
		expect(await text()).toBe("stopped");
		const asked = await modelAsked(model);
		expect(asked).toHaveLength(3);
		expect(asked[2].body.messages.at(-1)).toMatchObject({ role: "user", content: "stop!" });
	});

	it("sent again with the words that came with them say nothing new", async () => {
		const model = await scriptModel(calls("weather", { city: "Bern" }), says("rain"), says("again"));
		const messages: Message[] = [user("how is it outside?")];
		const first = await openai.chat.completions.create({ model, messages, tools });
		const [id = ""] = idsOf(first.choices[0]?.message);
		messages.push(first.choices[0]?.message as Message, tool(id, "rain"), user("and now?"));
		for (let n = 0; n < 2; n++) {
			const { choices } = await openai.chat.completions.create({ model, messages, tools });
			expect(choices[0]?.message.content).toBe("rain");
		}
		expect(await modelAsked(model)).toHaveLength(2);
	});
});

describe("a replay of a run with the caller's tools", () => {
	it("plays the caller's recorded answer, and hands its arguments to no governed tool that takes the name later", async () => {
		const model = await scriptModel(callsAll(["rates", { of: "my secret" }], ["find", { q: "x" }]), says("1.1"));
		const rates = { type: "function" as const, function: { name: "rates" } };
		const messages: Message[] = [user("what does it cost?")];
		const first = await openai.chat.completions.create({ model, messages, tools: [rates] });
		const [id = ""] = idsOf(first.choices[0]?.message);
		messages.push(first.choices[0]?.message as Message, tool(id, "1.1 EUR"));
		const last = await openai.chat.completions.create({ model, messages, tools: [rates] });
		expect(last.choices[0]?.message.content).toBe("1.1");
		const source = await runOf(runIdOf(id));
		const later = await ledgerTool(tenant, "rates", READ);
		for (const mode of ["recorded", "live"]) {
			const wait = { prefer: "wait=20" };
			const path = `/v1/runs/${source.run_id}/replay`;
			const { body: again } = await call("POST", path, { mode }, tenant.operator, wait);
			expect(again).toMatchObject({ status: "completed", answer: "1.1", caller_calls: [] });
			expect(again.calls[0]).toMatchObject({
				tool_id: "caller:rates",
				state: "COMPLETED",
				source: "recorded",
				result: "1.1 EUR",
				input_hash: source.calls[0].input_hash,
			});
			expect(again.calls[1].state).toBe("COMPLETED");
			const base = `/v1/runs/${again.run_id}/evidence`;
			const { data } = (await call("GET", base, undefined, tenant.operator)).body;
			expect(data[0]).toMatchObject({ outcome: "answered", tool_id: "caller:rates", envelope: { source: "recorded" } });
			const verified = await call("GET", `${base}/verify`, undefined, tenant.operator);
			expect(verified.body.valid).toBe(true);
			await abortAllDurableObjects();
			// and the replay of a replay
			const twice = await call("POST", `/v1/runs/${again.run_id}/replay`, { mode }, tenant.operator, wait);
			expect(twice.body.calls[0]).toMatchObject({ tool_id: "caller:rates", source: "recorded", result: "1.1 EUR" });
		}
		expect(await ledger(later)).toEqual([]);
	});
});
