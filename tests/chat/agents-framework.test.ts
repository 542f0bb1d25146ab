/**
 * An agent framework pointed at Belay, unchanged: the OpenAI Agents SDK with its chat completions model. Its loop runs a tool
 * of its own; the governed tools run in Belay, and the framework never hears of their calls. Only key and address are ours.
 */
import { Agent, type RunItem, run, setTracingDisabled, tool } from "@openai/agents-core";
import { OpenAIChatCompletionsModel } from "@openai/agents-openai";
import { beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { approve, ledger, ledgerTool, PAY, READ, rested } from "../acceptance/tools.ts";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import { calls, callsAll, client, modelAsked, says, scriptModel } from "./chat.ts";

let tenant: TestTenant;
let found: string;
let paid: string;
beforeAll(async () => {
	setTracingDisabled(true);
	tenant = await seedTenant();
	found = await ledgerTool(tenant, "find", READ);
	paid = await ledgerTool(tenant, "pay", PAY);
});

/** An agent with one tool of its own, and what that was asked. */
function agentOf(model: string): { agent: Agent; asked: unknown[] } {
	const asked: unknown[] = [];
	const weather = tool({
		name: "weather",
		description: "the weather of a city",
		parameters: z.object({ city: z.string() }),
		execute: async (args) => {
			asked.push(args);
			return { city: args.city, sky: "rain" };
		},
	});
	const agent = new Agent({
		name: "planner of days",
		instructions: "be brief",
		model: new OpenAIChatCompletionsModel(client(tenant.operator), model),
		tools: [weather],
	});
	return { agent, asked };
}
/** The calls that the framework saw, and the run that each is of. */
const callsSeen = (items: readonly RunItem[]): { name: string; run_id: string }[] =>
	items.flatMap(({ rawItem }) =>
		rawItem?.type === "function_call" ? [{ name: rawItem.name, run_id: `run_${rawItem.callId.slice(5, 37)}` }] : [],
	);
const runOf = async (run_id = "") => (await call("GET", `/v1/runs/${run_id}`, undefined, tenant.operator)).body;

describe("the OpenAI Agents SDK", () => {
	it("runs its own tool beside a governed one, and goes on with its history alone", async () => {
		const model = await scriptModel(
			callsAll(["find", { q: "plans" }], ["weather", { city: "Bern" }]),
			says("Stay in: it rains."),
			calls("weather", { city: "Rome" }),
			calls("find", { q: "trains" }),
			says("Go to Rome."),
		);
		const { agent, asked } = agentOf(model);
		const first = await run(agent, "what shall I do today?");
		expect(first.finalOutput).toBe("Stay in: it rains.");
		expect(asked).toEqual([{ city: "Bern" }]);
		expect(await ledger(found)).toHaveLength(1);
		const [seen, ...others] = callsSeen(first.newItems);
		expect([seen?.name, others]).toEqual(["weather", []]);
		const { messages } = (await modelAsked(model))[1].body;
		expect(messages[1]).toEqual({ role: "system", content: "be brief" });
		const results = messages.slice(-2).map((one: { content: string }) => JSON.parse(one.content));
		expect(results[0]).toMatchObject({ status: "success", data: { status: 200 } });
		expect(JSON.parse(results[1].data)).toEqual({ city: "Bern", sky: "rain" });

		const second = await run(agent, [...first.history, { role: "user", content: "and elsewhere?" }]);
		expect(second.finalOutput).toBe("Go to Rome.");
		expect(asked).toEqual([{ city: "Bern" }, { city: "Rome" }]);
		expect(await ledger(found)).toHaveLength(2);
		// all of it is one run, with what the framework never saw
		expect(callsSeen(second.newItems)).toEqual([seen]);
		const { calls: all } = await runOf(seen?.run_id);
		expect(all.map((one: { tool_id: string }) => one.tool_id)).toEqual([
			"find",
			"caller:weather",
			"caller:weather",
			"find",
		]);
	});

	it("hands over to another agent, whose instructions and tools hold from then on", async () => {
		const model = await scriptModel(
			callsAll(["find", { q: "who" }], ["transfer_to_weather_man", {}]),
			calls("weather", { city: "Bern" }),
			says("It rains."),
		);
		const { agent, asked } = agentOf(model);
		const other = agent.clone({ name: "weather man", instructions: "speak of the weather only" });
		const desk = new Agent({ name: "desk", instructions: "hand over", model: agent.model, handoffs: [other] });
		const result = await run(desk, "how is it in Bern?");
		expect([result.finalOutput, result.lastAgent?.name]).toEqual(["It rains.", "weather man"]);
		expect(asked).toEqual([{ city: "Bern" }]);
		const [first, second] = (await modelAsked(model)).map(({ body }) => body);
		const own = (body: any) =>
			body.tools.map((one: any) => one.function.name).filter((name: string) => /^(tr|we)/.test(name));
		expect([own(first), own(second)]).toEqual([["transfer_to_weather_man"], ["weather"]]);
		expect(second.messages.at(-1)).toEqual({ role: "system", content: "speak of the weather only" });
	});

	it("streams", async () => {
		const model = await scriptModel(
			callsAll(["weather", { city: "Bern" }], ["find", { q: "x" }]),
			says("It ", "rains."),
		);
		const { agent, asked } = agentOf(model);
		const stream = await run(agent, "outside?", { stream: true });
		const text: string[] = [];
		for await (const piece of stream.toTextStream()) text.push(piece);
		await stream.completed;
		expect(stream.finalOutput).toBe("It rains.");
		expect(text.join("")).toBe("It rains.");
		expect(asked).toEqual([{ city: "Bern" }]);
	});

	it("ends with the notice of an approval, which no tool of its own can give", async () => {
		const model = await scriptModel(callsAll(["pay", { to: "A" }], ["weather", { city: "Bern" }]), says("paid"));
		const { agent } = agentOf(model);
		const result = await run(agent, "pay A if it rains");
		expect(result.finalOutput).toContain("An approval is pending");
		expect(await ledger(paid)).toHaveLength(0);
		const waiting = await runOf(callsSeen(result.newItems)[0]?.run_id);
		await approve(tenant, waiting.pending_approvals[0]);
		expect((await rested(tenant, waiting.run_id, waiting.seq)).answer).toBe("paid");
		expect(await ledger(paid)).toHaveLength(1);
	});
});
