/** Planner kind `openai` end to end: what the provider is sent, what runs, and what happens when it fails. */
import { abortAllDurableObjects } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import { call, seedTenant, type TestTenant, worker } from "../support/client.ts";
import { answer, asked, managedRun, sse, toolCall } from "./provider.ts";
import { approve, callOf, ledgerTool, PAY, READ, type Run, rested } from "./tools.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	await ledgerTool(tenant, "pay", PAY);
	await ledgerTool(tenant, "find", READ);
});

const start = (model: string, turns: string[]): Promise<Run> => managedRun(tenant, model, turns);

describe("planner kind openai", () => {
	it("offers the exposed tools, passes reasoning back, pairs every call with one result, and survives a restart while it waits", async () => {
		const model = `m-${crypto.randomUUID()}`;
		const waiting = await start(model, [
			sse(
				[
					{ role: "assistant", content: null, reasoning_content: "hm" },
					toolCall("call_0", "find", '{"q":"x"}'),
					toolCall("call_1", "pay", '{"to":"A","amount":1}', 1),
				],
				"tool_calls",
			),
			answer("paid"),
		]);
		expect(waiting.status).toBe("awaiting_approval");
		await abortAllDurableObjects();
		expect((await approve(tenant, waiting.pending_approvals[0], "deny", { reason: "too much" })).status).toBe(200);
		const done = await rested(tenant, waiting.run_id, waiting.seq);
		expect(done).toMatchObject({
			status: "completed",
			answer: "paid",
			usage: { prompt_tokens: 20, completion_tokens: 10 },
		});
		const requests = await asked(model);
		expect(requests).toHaveLength(2);
		const names = requests[0].body.tools.map((tool: any) => tool.function.name);
		expect(names).toContain("pay");
		expect([...names].sort()).toEqual(names);
		const { messages } = requests[1].body;
		const assistant = messages.find((message: any) => message.tool_calls);
		expect(assistant.reasoning_content).toBe("hm");
		const results = messages.filter((message: any) => message.role === "tool");
		expect(results.map((message: any) => message.tool_call_id)).toEqual(assistant.tool_calls.map((one: any) => one.id));
		expect(new Set(results.map((message: any) => message.tool_call_id)).size).toBe(2);
		expect(JSON.parse(results[1].content)).toMatchObject({ status: "denied", error: { message: "too much" } });
		expect(requests[0].headers.authorization).toBe("Bearer test-planner-key");
		expect(JSON.stringify(done)).not.toContain("test-planner-key");
	});

	it("T03: a call cut off by length runs nothing, is told, and is never replayed cut", async () => {
		const model = `m-${crypto.randomUUID()}`;
		const done = await start(model, [
			sse([{ role: "assistant", content: null }, toolCall("c", "pay", '{"to":"A","amou')], "length"),
			answer("ok"),
		]);
		expect(done).toMatchObject({ status: "completed", pending_approvals: [] });
		expect(callOf(done, "c")).toMatchObject({ state: "REFUSED", refusal: { reason: "truncated_output" } });
		const { messages } = (await asked(model))[1].body;
		for (const message of messages)
			for (const one of message.tool_calls ?? []) expect(() => JSON.parse(one.function.arguments)).not.toThrow();
	});

	it("T11: a call written as text is neither run nor an answer", async () => {
		const model = `m-${crypto.randomUUID()}`;
		const done = await start(model, [
			answer('<tool_call>\n{"name": "pay", "arguments": {"to": "A", "amount": 1}}\n</tool_call>'),
			answer("nothing was paid"),
		]);
		expect(done).toMatchObject({ status: "completed", answer: "nothing was paid", calls: [] });
		expect(await asked(model)).toHaveLength(2);
	});

	it("a provider's refusal ends the run with a plain reason, a passing fault is tried again", async () => {
		const refused = await start(`m-${crypto.randomUUID()}`, ["status:401"]);
		expect(refused).toMatchObject({ status: "failed", error: { code: "planner_rejected" } });
		const passing = await start(`m-${crypto.randomUUID()}`, ["status:503", answer("there")]);
		const done = passing.status === "completed" ? passing : await rested(tenant, passing.run_id);
		expect(done).toMatchObject({ status: "completed", answer: "there" });
	});

	it("continues with the user's next message", async () => {
		const model = `m-${crypto.randomUUID()}`;
		const first = await start(model, [answer("one"), answer("two")]);
		expect(first.answer).toBe("one");
		const { body } = await call(
			"POST",
			`/v1/runs/${first.run_id}/messages`,
			{ content: "and then?" },
			tenant.operator,
			{ prefer: "wait=20" },
		);
		expect(body).toMatchObject({ status: "completed", answer: "two" });
		const { messages } = (await asked(model))[1].body;
		expect(messages.slice(-2)).toMatchObject([
			{ role: "assistant", content: "one" },
			{ role: "user", content: "and then?" },
		]);
	});
});

describe("events", () => {
	it("stream what happened, in order, and resume by id", async () => {
		const run = await start(`m-${crypto.randomUUID()}`, [
			sse([{ role: "assistant", content: null }, toolCall("c", "find", '{"q":"x"}')], "tool_calls"),
			answer("done"),
		]);
		const { text } = await streamOf(run.run_id, {});
		const names = [...text.matchAll(/^event: (.+)$/gm)].map((found) => found[1]);
		for (const name of [
			"run.status",
			"turn.started",
			"exposure.selected",
			"call.state",
			"evidence.recorded",
			"run.finished",
		])
			expect(names).toContain(name);
		const ids = [...text.matchAll(/^id: (\d+)$/gm)].map((found) => Number(found[1]));
		expect(ids).toEqual([...ids].sort((a, b) => a - b));
		expect(ids.at(-1)).toBe(run.seq);
		const rest = await streamOf(run.run_id, { "last-event-id": String(run.seq - 2) });
		expect([...rest.text.matchAll(/^id: (\d+)$/gm)].map((found) => Number(found[1]))).toEqual([run.seq - 1, run.seq]);
	});
});

/** Reads a finished run's stream until its last event has come. */
async function streamOf(run_id: string, headers: Record<string, string>): Promise<{ text: string }> {
	const response = await worker.fetch(
		new Request(`https://belay.test/v1/runs/${run_id}/events`, {
			headers: { authorization: `Bearer ${tenant.operator}`, ...headers },
		}),
	);
	const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
	let text = "";
	while (!text.includes("event: run.finished")) {
		const { value, done } = await reader.read();
		if (done) break;
		text += value;
	}
	await reader.cancel();
	return { text };
}

describe("loops", () => {
	it("O01: the same call with the same result is stopped well before the turns are used up", async () => {
		const schema = { type: "object", properties: { q: { type: "string" } } };
		await ledgerTool(tenant, "same", {
			...READ,
			input_schema: schema,
			implementation: { kind: "builtin", name: "echo" },
		});
		const model = `m-${crypto.randomUUID()}`;
		const turns = Array.from({ length: 12 }, (_, n) =>
			sse(
				[{ role: "assistant", content: null }, toolCall(`c${n}`, "same", n % 2 === 0 ? '{"q":"x"}' : ' {"q" : "x"}')],
				"tool_calls",
			),
		);
		const done = await start(model, turns);
		expect(done).toMatchObject({ status: "failed", answer: null, error: { code: "repeated_call" } });
		expect(done.turn).toBeLessThanOrEqual(4);
	});
	it("T13: a call that is always wrong ends in failure with a reason, never in completion", async () => {
		const model = `m-${crypto.randomUUID()}`;
		const schema = { type: "object", properties: { to: { type: "string" } }, required: ["to"] };
		await ledgerTool(tenant, "strict_pay", { ...PAY, input_schema: schema });
		const done = await start(
			model,
			Array.from({ length: 12 }, (_, n) =>
				sse([{ role: "assistant", content: null }, toolCall(`c${n}`, "strict_pay", "{}")], "tool_calls"),
			),
		);
		expect(done).toMatchObject({
			status: "failed",
			answer: null,
			error: { code: "repair_limit" },
			pending_approvals: [],
		});
		expect(done.calls.length).toBeLessThanOrEqual(4);
		expect(done.calls[0].refusal.errors[0]).toMatchObject({ field: "/to", issue: "required_field_missing" });
	});
});
