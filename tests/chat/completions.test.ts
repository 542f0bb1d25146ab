/** A stock OpenAI client gets governed tools: answers, streams, approvals and the conversation that goes on. */
import { beforeAll, describe, expect, it } from "vitest";
import { approve, ledger, ledgerTool, PAY, READ, rested } from "../acceptance/tools.ts";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import { calls, client, modelAsked, says, scriptModel, withCacheHits } from "./chat.ts";

let tenant: TestTenant;
let paid: string;
let found: string;
beforeAll(async () => {
	tenant = await seedTenant();
	paid = await ledgerTool(tenant, "pay", PAY);
	found = await ledgerTool(tenant, "find", READ);
});

const user = (content: string) => ({ role: "user" as const, content });
const idOf = (response: Response): string => response.headers.get("belay-run-id") ?? "";
const runOf = async (run_id: string) => (await call("GET", `/v1/runs/${run_id}`, undefined, tenant.operator)).body;

describe("a completion", () => {
	it("runs the governed tools on the way and comes back as the assistant's message", async () => {
		const model = await scriptModel(calls("find", { q: "x" }), says("found ", "it"));
		const { data, response } = await client(tenant.operator)
			.chat.completions.create({
				model,
				messages: [
					{ role: "developer", content: "be brief" },
					user("hello"),
					{ role: "assistant", content: "hi" },
					{
						role: "user",
						content: [
							{ type: "text", text: "find" },
							{ type: "text", text: "x" },
						],
					},
				],
			})
			.withResponse();
		expect(data).toMatchObject({
			object: "chat.completion",
			model,
			choices: [
				{ index: 0, message: { role: "assistant", content: "found it", refusal: null }, finish_reason: "stop" },
			],
			usage: { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 },
		});
		expect(Math.abs(data.created - Date.now() / 1000)).toBeLessThan(30);
		const run = await runOf(idOf(response));
		expect(run).toMatchObject({ status: "completed", goal: "find\nx", planner: { kind: "openai", model } });
		expect(run.calls).toMatchObject([{ tool_id: "find", state: "COMPLETED" }]);
		expect(data.id).toContain(run.run_id.slice(4));
		expect(await ledger(found)).toHaveLength(1);
		const [first] = await modelAsked(model);
		expect(first.body.messages.slice(1)).toEqual([
			{ role: "system", content: "be brief" },
			{ role: "user", content: "hello" },
			{ role: "assistant", content: "hi" },
			{ role: "user", content: "find\nx" },
		]);
	});

	it("says what the provider's cache had, of this request alone", async () => {
		const turns = [withCacheHits(calls("find", { q: "x" }), 4), withCacheHits(says("found"), 9)];
		const model = await scriptModel(...turns, withCacheHits(says("again"), 10));
		const first = await client(tenant.operator)
			.chat.completions.create({ model, messages: [user("find x")] })
			.withResponse();
		expect(first.data.usage).toMatchObject({ prompt_tokens: 20, prompt_tokens_details: { cached_tokens: 13 } });
		const run_id = idOf(first.response);
		expect((await runOf(run_id)).usage.prompt_cache_hit_tokens).toBe(13);
		const path = `/v1/runs/${run_id}/messages`;
		const body = { content: "and?" };
		const more = await call("POST", path, body, tenant.operator, { prefer: "wait=20" });
		expect(more.body.usage).toMatchObject({ prompt_tokens: 30, prompt_cache_hit_tokens: 23 });
	});

	it("of an agent is governed by the agent's rights", async () => {
		const model = await scriptModel(calls("pay", { to: "A" }), says("could not"));
		const { data, response } = await client(tenant.limited)
			.chat.completions.create({ model, messages: [user("pay A")] })
			.withResponse();
		expect(data.choices[0]?.message.content).toBe("could not");
		const run = await runOf(idOf(response));
		expect(run.calls).toMatchObject([{ state: "REFUSED", refusal: { reason: "unknown_tool" } }]);
	});

	it("begins one run per Idempotency-Key, streamed or not, and refuses the key for another request", async () => {
		const model = await scriptModel(says("one"), says("two"));
		const ask = { model, messages: [user("once")] };
		const headers = { "idempotency-key": crypto.randomUUID() };
		const openai = client(tenant.operator);
		const first = await openai.chat.completions.create(ask, { headers }).withResponse();
		const second = await openai.chat.completions.create(ask, { headers }).withResponse();
		expect(idOf(second.response)).toBe(idOf(first.response));
		expect(second.data.choices[0]?.message.content).toBe("one");
		const streamed = await openai.chat.completions.create({ ...ask, stream: true }, { headers });
		let text = "";
		for await (const one of streamed) text += one.choices[0]?.delta.content ?? "";
		expect(text).toBe("one");
		expect(await modelAsked(model)).toHaveLength(1);
		await expect(
			openai.chat.completions.create({ model, messages: [user("another")] }, { headers }),
		).rejects.toMatchObject({ status: 409, code: "idempotency_conflict" });
	});

	it("leaves the deployment's own model to `belay`, and names what it does not use", async () => {
		const { status, headers, body } = await call(
			"POST",
			"/v1/chat/completions",
			{ model: "belay", messages: [user("x")], temperature: 0, max_tokens: 5, top_p: null, stop: null, n: 1 },
			tenant.operator,
		);
		// the test model has no script under its default name and refuses
		expect([status, body.error.code]).toEqual([502, "planner_rejected"]);
		expect((await runOf(headers.get("belay-run-id") ?? "")).planner.model).toBeNull();
		const model = await scriptModel(says("y"));
		const fine = await call(
			"POST",
			"/v1/chat/completions",
			{ model, messages: [user("x")], temperature: 0, max_tokens: 5, top_p: null },
			tenant.operator,
		);
		expect(fine.headers.get("belay-ignored-parameters")).toBe("max_tokens, temperature");
	});
});

describe("an approval", () => {
	it("is announced in the run's language", async () => {
		const model = await scriptModel(calls("pay", { to: "A" }), calls("pay", { to: "B" }));
		const openai = client(tenant.operator);
		const asked = await openai.chat.completions.create({ model, messages: [user("给 A 付款")] }).withResponse();
		const notice = asked.data.choices[0]?.message.content ?? "";
		expect(notice).toBe("有审批待处理：需要有人对 `pay` 作出决定后才会执行。请用指明此任务的请求再次询问。");
		// the run's own word counts before its goal's script
		const body = { goal: "pay A", locale: "zh", planner: { kind: "openai", model } };
		const { run_id } = (await call("POST", "/v1/runs", body, tenant.operator, { prefer: "wait=10" })).body;
		const named = { model, messages: [user("pay A")], metadata: { belay_run_id: run_id } };
		expect((await openai.chat.completions.create(named)).choices[0]?.message.content).toBe(notice);
		expect(await runOf(run_id)).toMatchObject({ locale: "zh" });
	});

	it("ends the turn with words and no link; naming the run goes on with it, its hidden calls intact", async () => {
		const model = await scriptModel(calls("pay", { to: "A", amount: 1 }), says("paid"), says("it is done"));
		const openai = client(tenant.operator);
		const first = await openai.chat.completions.create({ model, messages: [user("pay A")] }).withResponse();
		const run_id = idOf(first.response);
		const [choice] = first.data.choices;
		expect(choice?.finish_reason).toBe("stop");
		expect(choice?.message.tool_calls).toBeUndefined();
		const notice = choice?.message.content ?? "";
		expect(notice).toContain("An approval is pending");
		expect(notice).toContain("`pay`");
		expect(notice).not.toMatch(/https?:|\/a\/|apr_/);
		expect(await ledger(paid)).toHaveLength(0);

		// the first request again, the run named: nothing is said twice, and nothing has changed
		const again = await openai.chat.completions.create({
			model,
			messages: [user("pay A")],
			metadata: { belay_run_id: run_id },
		});
		expect(again.choices[0]?.message.content).toBe(notice);
		expect(again.usage?.total_tokens).toBe(0);

		const waiting = await runOf(run_id);
		expect((await approve(tenant, waiting.pending_approvals[0])).status).toBe(200);
		expect((await rested(tenant, run_id, waiting.seq)).answer).toBe("paid");
		expect(await ledger(paid)).toHaveLength(1);

		const history = [user("pay A"), { role: "assistant" as const, content: notice }];
		const answer = await openai.chat.completions.create(
			{ model, messages: history },
			{ headers: { "belay-run-id": run_id } },
		);
		expect(answer.choices[0]?.message.content).toBe("paid");
		const ask = { model, messages: [...history, user("is it done?")] };
		const then = await openai.chat.completions.create(ask, { headers: { "belay-run-id": run_id } }).withResponse();
		expect(idOf(then.response)).toBe(run_id);
		expect(then.data.choices[0]?.message.content).toBe("it is done");
		expect(then.data.usage).toEqual({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 });
		// a library that lost the answer sends the same conversation again: it is not said twice
		const repeated = await openai.chat.completions.create(ask, { headers: { "belay-run-id": run_id } });
		expect(repeated.choices[0]?.message.content).toBe("it is done");

		const requests = await modelAsked(model);
		expect(requests).toHaveLength(3);
		const { messages } = requests[2].body;
		expect(messages.map((one: { role: string }) => one.role)).toEqual([
			"system",
			"user",
			"assistant",
			"tool",
			"assistant",
			"user",
		]);
		expect(JSON.parse(messages[3].content).status).toBe("success");
		expect(JSON.stringify(messages)).not.toContain("An approval is pending");
		expect(await ledger(paid)).toHaveLength(1);
	});

	it("still pending takes the user's next words along", async () => {
		const model = await scriptModel(calls("pay", { to: "B" }), says("denied, as you see"));
		const openai = client(tenant.operator);
		const first = await openai.chat.completions.create({ model, messages: [user("pay B")] }).withResponse();
		const run_id = idOf(first.response);
		const second = await openai.chat.completions.create({
			model,
			messages: [user("tell me more")],
			metadata: { belay_run_id: run_id },
		});
		expect(second.choices[0]?.message.content).toContain("An approval is pending");
		const waiting = await runOf(run_id);
		await approve(tenant, waiting.pending_approvals[0], "deny");
		expect((await rested(tenant, run_id, waiting.seq)).answer).toBe("denied, as you see");
		const { messages } = (await modelAsked(model))[1].body;
		expect(messages.slice(-2)).toMatchObject([{ role: "tool" }, { role: "user", content: "tell me more" }]);
	});
});

describe("a run whose time was used up", () => {
	it("goes on with the user's next words", async () => {
		await ledgerTool(tenant, "dawdle", READ, "slow?ms=3000");
		const model = await scriptModel(calls("dawdle", {}), calls("dawdle", {}), says("here I am"));
		const limits = { turn_timeout_ms: 1_000, session_timeout_ms: 1_200 };
		const body = { goal: "x", planner: { kind: "openai", model }, limits };
		const { run_id, seq } = (await call("POST", "/v1/runs", body, tenant.operator)).body;
		expect((await rested(tenant, run_id, seq)).status).toBe("suspended");
		const openai = client(tenant.operator);
		const headers = { "belay-run-id": run_id };
		const idle = await openai.chat.completions.create({ model, messages: [user("x")] }, { headers });
		expect(idle.choices[0]?.message.content).toContain("has used its time");
		const moved = await openai.chat.completions.create({ model, messages: [user("and now?")] }, { headers });
		expect(moved.choices[0]?.message.content).toBe("here I am");
		const { messages } = (await modelAsked(model))[2].body;
		expect(messages.at(-1)).toEqual({ role: "user", content: "and now?" });
	});
});
