/** Streams: exact framing, text as it comes, one consistent end; a client that leaves or does not read harms nobody. */
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { RunView } from "#core/run/view.ts";
import { completionStream } from "../../workers/api/chat/completion-stream.ts";
import { LiveText } from "../../workers/api/chat/live-text.ts";
import { BUFFER_MAX_BYTES, HEARTBEAT_MS } from "../../workers/api/event-stream.ts";
import { ledgerTool, PAY, READ, rested } from "../acceptance/tools.ts";
import { seedTenant, type TestTenant, worker } from "../support/client.ts";
import { calls, client, modelAsked, modelTurn, says, scriptModel } from "./chat.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	await ledgerTool(tenant, "pay", PAY);
	await ledgerTool(tenant, "find", READ);
	await ledgerTool(tenant, "wait", READ, "slow?ms=1500");
});

const user = (content: string) => ({ role: "user" as const, content });
const stream = (body: object, signal?: AbortSignal): Promise<Response> =>
	worker.fetch(
		new Request("https://belay.test/v1/chat/completions", {
			method: "POST",
			headers: { authorization: `Bearer ${tenant.operator}`, "content-type": "application/json" },
			body: JSON.stringify({ stream: true, messages: [user("go")], ...body }),
			...(signal === undefined ? {} : { signal }),
		}),
	);

describe("a streamed completion", () => {
	it("is framed exactly: one line of JSON per event, usage last where asked for, then the end mark", async () => {
		const model = await scriptModel(says("a\n\ndata: [DONE]\n\n", "\u2028b"));
		const response = await stream({ model, stream_options: { include_usage: true } });
		expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
		expect(response.headers.get("cache-control")).toContain("no-transform");
		expect(response.headers.get("belay-run-id")).toMatch(/^run_[0-9a-f]{32}$/);
		const text = await response.text();
		const events = text.split("\n\n").filter((one) => !one.startsWith(":"));
		expect(events.pop()).toBe("");
		expect(events.pop()).toBe("data: [DONE]");
		const chunks = events.map((one) => {
			expect(one).toMatch(/^data: \{[^\n\r]*\}$/);
			return JSON.parse(one.slice(6));
		});
		expect(new Set(chunks.map((one) => `${one.id} ${one.object} ${one.created} ${one.model}`)).size).toBe(1);
		expect(chunks[0].choices[0].delta).toEqual({ role: "assistant", content: "" });
		expect(chunks.map((one) => one.choices[0]?.delta.content ?? "").join("")).toBe("a\n\ndata: [DONE]\n\n\u2028b");
		expect(chunks.map((one) => one.choices[0]?.finish_reason ?? null)).toEqual([null, null, null, "stop", null]);
		expect(chunks.map((one) => one.usage)).toEqual([
			null,
			null,
			null,
			null,
			{ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
		]);
		expect(chunks.at(-1).choices).toEqual([]);
	});

	it("passes the first turn's text on piece by piece, and later ones set apart from it", async () => {
		const model = await scriptModel(
			calls("find", { q: "x" }, "let me look"),
			says("Hel", "lo ", "you"),
			says("mo", "re"),
		);
		const openai = client(tenant.operator);
		const { data, response } = await openai.chat.completions
			.create({ model, messages: [user("go")], stream: true })
			.withResponse();
		const pieces: string[] = [];
		for await (const one of data) {
			expect(one).not.toHaveProperty("usage");
			pieces.push(one.choices[0]?.delta.content ?? "");
		}
		expect(pieces).toEqual(["", "let me look", "\n\nHel", "lo ", "you", ""]);

		const messages = [user("go"), { role: "assistant" as const, content: "Hello you" }, user("and?")];
		const more = openai.chat.completions.stream(
			{ model, messages },
			{ headers: { "belay-run-id": response.headers.get("belay-run-id") ?? "" } },
		);
		const next: string[] = [];
		more.on("content", (delta) => next.push(delta));
		expect(await more.finalContent()).toBe("more");
		expect(next.filter((one) => one !== "")).toEqual(["mo", "re"]);
		expect(await modelAsked(model)).toHaveLength(3);
	});

	it("ends a turn that waits for an approval with the same words as an answer does", async () => {
		const model = await scriptModel(calls("pay", { to: "C" }));
		const final = await client(tenant.operator)
			.chat.completions.stream({ model, messages: [user("pay C")] })
			.finalChatCompletion();
		expect(final.choices[0]?.finish_reason).toBe("stop");
		expect(final.choices[0]?.message.content).toContain("An approval is pending");
		expect(final.choices[0]?.message.content).not.toMatch(/https?:|\/a\//);
	});

	it("that fails ends with an error that its client throws, and without the end mark", async () => {
		const model = await scriptModel(modelTurn([{ role: "assistant", content: "half a" }], "length"));
		const text = await (await stream({ model })).text();
		expect(text).toContain('"content":"half a"');
		expect(text).not.toContain("[DONE]");
		const last = text.trimEnd().split("\n\n").at(-1) ?? "";
		expect(JSON.parse(last.slice(6)).error).toMatchObject({ type: "server_error", code: "truncated_output" });

		const refused = await scriptModel("status:401");
		const reading = async () => {
			const data = await client(tenant.operator).chat.completions.create({
				model: refused,
				messages: [user("x")],
				stream: true,
			});
			for await (const one of data) expect(one.choices[0]?.finish_reason).toBeNull();
		};
		await expect(reading()).rejects.toMatchObject({ code: "planner_rejected" });
		expect(await modelAsked(refused)).toHaveLength(1);
	});

	it("whose client leaves does not take the run along: it ends in its own time and is there to be read", async () => {
		const model = await scriptModel(calls("wait", { q: "x" }), says("done without you"));
		const leaving = new AbortController();
		const response = await stream({ model }, leaving.signal);
		const run_id = response.headers.get("belay-run-id") ?? "";
		const reader = (response.body as ReadableStream<Uint8Array>).getReader();
		await reader.read();
		await reader.cancel();
		leaving.abort();
		expect(await rested(tenant, run_id, 0)).toMatchObject({ status: "completed", answer: "done without you" });
		const again = await client(tenant.operator).chat.completions.create(
			{ model, messages: [user("go")] },
			{ headers: { "belay-run-id": run_id } },
		);
		expect(again.choices[0]?.message.content).toBe("done without you");
		expect(await modelAsked(model)).toHaveLength(2);
	});
});

describe("what a stream sends of the planner's text", () => {
	it("always ends with the final text, whole", () => {
		const whole = new LiveText(0);
		expect([whole.piece(1, "a"), whole.piece(1, "b"), whole.rest("abc")]).toEqual(["a", "b", "c"]);
		const other = new LiveText(0);
		expect([other.piece(1, "<tool_call>"), other.rest("answer")]).toEqual(["<tool_call>", "\n\nanswer"]);
		const none = new LiveText(0);
		expect([none.piece(1, ""), none.rest("answer")]).toEqual(["", "answer"]);
		const complete = new LiveText(0);
		expect([complete.piece(1, "x"), complete.piece(2, "answer"), complete.rest("answer")]).toEqual([
			"x",
			"\n\nanswer",
			"",
		]);
	});

	it("leaves out a turn that began before anybody listened, and what comes late", () => {
		const text = new LiveText(3);
		expect([text.piece(3, "middle"), text.piece(4, "new"), text.piece(3, "late"), text.rest("new!")]).toEqual([
			"",
			"new",
			"",
			"!",
		]);
	});
});

describe("the stream itself", () => {
	const head = { id: "chatcmpl-x", created: 1, model: "m" };
	const run = (answer: string) => ({ status: "completed", answer }) as RunView;
	const frame = (turn: number, content: string) =>
		JSON.stringify({ seq: null, event: "message.delta", data: { run_id: "r", turn, content } });
	const content = (text: string) =>
		text
			.split("\n\n")
			.filter((one) => one.startsWith("data: {"))
			.map((one) => JSON.parse(one.slice(6)).choices[0]?.delta.content ?? "")
			.join("");
	const made = (rested: Promise<RunView>, socket: WebSocket | null, signal = new AbortController().signal) =>
		completionStream({ head, socket, base_turn: 0, rested, usageOf: undefined, signal });

	it("gives a client that does not read no live text beyond its bound, and the whole answer in the end", async () => {
		const { 0: client_, 1: server } = new WebSocketPair();
		server.accept();
		const piece = "x".repeat(BUFFER_MAX_BYTES / 4);
		const { promise, resolve } = Promise.withResolvers<RunView>();
		const body = made(promise, client_);
		for (let n = 0; n < 12; n++) server.send(frame(1, piece));
		await new Promise((done) => setTimeout(done, 100));
		resolve(run(piece.repeat(12)));
		const text = await new Response(body).text();
		const pieces = text.split("\n\n").filter((one) => one.startsWith("data: {"));
		// the role, at most five pieces, the rest of the answer at once, the end
		expect(pieces.length).toBeLessThanOrEqual(8);
		expect(content(text).length).toBe(12 * piece.length);
		expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
	});

	it("keeps the connection alive with comments, and lets the object go when either side leaves", async () => {
		vi.useFakeTimers();
		try {
			const { promise, resolve } = Promise.withResolvers<RunView>();
			const body = made(promise, null);
			await vi.advanceTimersByTimeAsync(2 * HEARTBEAT_MS + 1);
			resolve(run("ok"));
			const text = await new Response(body).text();
			expect(text.match(/^: keep-alive\n\n/gm)).toHaveLength(2);
			expect(content(text)).toBe("ok");
		} finally {
			vi.useRealTimers();
		}
		for (const leave of ["cancel", "abort"] as const) {
			const { 0: client_, 1: server } = new WebSocketPair();
			server.accept();
			const closed = new Promise<void>((done) => server.addEventListener("close", () => done()));
			const abort = new AbortController();
			const body = made(new Promise(() => {}), client_, abort.signal);
			if (leave === "cancel") await body.cancel();
			else abort.abort();
			await closed;
		}
	});

	it("takes nothing but the planner's text from the run's log, and survives what is no frame", async () => {
		const { 0: client_, 1: server } = new WebSocketPair();
		server.accept();
		const { promise, resolve } = Promise.withResolvers<RunView>();
		const body = made(promise, client_);
		for (const none of ["", "null", "[]", "{", '{"event":"call.state","data":{"turn":1,"content":"secret"}}'])
			server.send(none);
		server.send(new Uint8Array([1]));
		server.send(frame(1, "o"));
		await new Promise((done) => setTimeout(done, 50));
		resolve(run("ok"));
		expect(content(await new Response(body).text())).toBe("ok");
	});
});
