/** The event stream: complete, resumable, bounded, and over when either side leaves (C07). */
import { beforeAll, describe, expect, it, vi } from "vitest";
import { LISTENERS_OF_ONE_MAX } from "#core/limits.ts";
import { BUFFER_MAX_BYTES, eventStream, HEARTBEAT_MS, toEvent } from "../../workers/api/event-stream.ts";
import { call, seedTenant, type TestTenant, worker } from "../support/client.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});

type Event = { id: number | undefined; event: string; data: Record<string, unknown> };

/** Reads a stream until `enough` says so, then leaves. */
async function listen(
	runId: string,
	enough: (events: Event[]) => boolean,
	headers: Record<string, string> = {},
	query = "",
): Promise<{ response: Response; events: Event[] }> {
	const response = await worker.fetch(`https://belay.test/v1/runs/${runId}/events${query}`, {
		headers: { authorization: `Bearer ${tenant.agent}`, ...headers },
	});
	const reader = (response.body as ReadableStream<Uint8Array>).getReader();
	let text = "";
	for (;;) {
		const { done, value } = await reader.read();
		if (value !== undefined) text += new TextDecoder().decode(value);
		const events = parse(text);
		if (done || enough(events)) {
			await reader.cancel();
			return { response, events };
		}
	}
}

function parse(text: string): Event[] {
	return text
		.split("\n\n")
		.slice(0, -1)
		.filter((block) => !block.startsWith(":"))
		.map((block) => {
			const field = (name: string) =>
				block
					.split("\n")
					.find((line) => line.startsWith(`${name}: `))
					?.slice(name.length + 2);
			const id = field("id");
			return {
				id: id === undefined ? undefined : Number(id),
				event: field("event") ?? "",
				data: JSON.parse(field("data") ?? "null"),
			};
		});
}

const finished = (events: Event[]) => events.some(({ event }) => event === "run.finished");
const script = [
	{ content: null, tool_calls: [{ id: "c", type: "function", function: { name: "clock_now", arguments: "{}" } }] },
	{ content: "it is late" },
];

describe("a run's events", () => {
	it("arrive in order with their seq, and resume after any of them", async () => {
		const run = await call("POST", "/v1/runs", { goal: "time", planner: { kind: "scripted", script } }, tenant.agent, {
			prefer: "wait=10",
		});
		expect(run.body.status).toBe("completed");
		const all = await listen(run.body.run_id, finished);
		expect(all.response.headers.get("content-type")).toContain("text/event-stream");
		expect(all.response.headers.get("cache-control")).toContain("no-transform");
		expect(all.response.headers.get("x-accel-buffering")).toBe("no");
		const ids = all.events.flatMap(({ id }) => id ?? []);
		expect(ids).toEqual([...ids].sort((a, b) => a - b));
		for (const { id, data } of all.events)
			if (id !== undefined) expect(data).toMatchObject({ seq: id, run_id: run.body.run_id });
		expect(all.events.map(({ event }) => event)).toEqual(
			expect.arrayContaining(["run.status", "call.state", "evidence.recorded", "run.finished"]),
		);

		const middle = ids[Math.floor(ids.length / 2)] as number;
		for (const rest of [
			await listen(run.body.run_id, finished, { "last-event-id": String(middle) }),
			await listen(run.body.run_id, finished, {}, `?last_event_id=${middle}`),
		]) {
			expect(rest.events).toEqual(all.events.filter(({ id }) => (id ?? 0) > middle));
		}
		expect((await listen(run.body.run_id, finished, { "last-event-id": "garbage" })).events).toEqual(all.events);
	});

	it("come live to twenty listeners, whoever leaves in between", async () => {
		const run = await call("POST", "/v1/runs", { goal: "time", planner: { kind: "external" } }, tenant.agent);
		const leaving = Array.from({ length: 10 }, () => listen(run.body.run_id, (events) => events.length > 0));
		const staying = Array.from({ length: 10 }, () => listen(run.body.run_id, finished));
		await Promise.all(leaving);
		expect(
			(await call("POST", `/v1/runs/${run.body.run_id}/decisions`, { content: "done" }, tenant.agent)).status,
		).toBe(200);
		for (const { events } of await Promise.all(staying)) expect(events.at(-1)?.event).toBe("run.finished");
	});

	it("are no longer sent to a key that was revoked, soon after", async () => {
		const run = await call("POST", "/v1/runs", { goal: "time", planner: { kind: "external" } }, tenant.operator);
		const made = await call("POST", "/v1/keys", { principal_id: "usr_operator" }, tenant.operator);
		expect(made.status).toBe(201);
		const headers = { authorization: `Bearer ${made.body.key}` };
		const response = await worker.fetch(`https://belay.test/v1/runs/${run.body.run_id}/events`, { headers });
		expect(response.status).toBe(200);
		const ended = response.text();
		const since = Date.now();
		expect((await call("DELETE", `/v1/keys/${made.body.key_id}`, undefined, tenant.operator)).status).toBeLessThan(300);
		expect(await ended).toContain("run.status");
		expect(Date.now() - since).toBeLessThan(HEARTBEAT_MS + 5_000);
	});

	it("go to a bounded number of listeners, and one reader cannot lock the others out", async () => {
		const run = await call("POST", "/v1/runs", { goal: "time", planner: { kind: "external" } }, tenant.agent);
		const open = (key: string) =>
			worker.fetch(`https://belay.test/v1/runs/${run.body.run_id}/events`, {
				headers: { authorization: `Bearer ${key}` },
			});
		const mine = await Promise.all(Array.from({ length: LISTENERS_OF_ONE_MAX }, () => open(tenant.agent)));
		expect(mine.map(({ status }) => status)).toEqual(mine.map(() => 200));
		const more = await open(tenant.agent);
		expect([more.status, await more.json()]).toMatchObject([429, { code: "rate_limited" }]);
		expect(Number(more.headers.get("retry-after"))).toBeGreaterThan(0);
		const other = await open(tenant.operator);
		expect(other.status).toBe(200);
		await mine[0]?.body?.cancel();
		await vi.waitFor(async () => {
			const again = await open(tenant.agent);
			expect(again.status).toBe(200);
			mine.push(again);
		});
		await Promise.all([other, ...mine.slice(1)].map(async (one) => one.body?.cancel()));
	});

	it("of a run that is over are sent like any others: a run may go on", async () => {
		const run = await call("POST", "/v1/runs", { goal: "time", planner: { kind: "scripted", script } }, tenant.agent, {
			prefer: "wait=10",
		});
		const last = { "last-event-id": String(run.body.seq) };
		const response = await worker.fetch(`https://belay.test/v1/runs/${run.body.run_id}/events`, {
			headers: { authorization: `Bearer ${tenant.agent}`, ...last },
		});
		expect(response.status).toBe(200);
		await response.body?.cancel();
		const { paths } = (await call("GET", "/openapi.json")).body;
		expect(Object.keys(paths["/v1/runs/{run_id}/events"].get.responses)).not.toContain("204");
	});

	it("are headers only for HEAD", async () => {
		const run = await call("POST", "/v1/runs", { goal: "time", planner: { kind: "external" } }, tenant.agent);
		const answer = await call("HEAD", `/v1/runs/${run.body.run_id}/events`, undefined, tenant.agent);
		expect([answer.status, answer.text]).toEqual([200, ""]);
	});
});

describe("frames", () => {
	it("cannot forge a field, an event or an id", () => {
		const data = { text: "a\n\nevent: run.finished\ndata: {}", other: "\r\r\u2028" };
		const text = toEvent(JSON.stringify({ seq: 3, event: "message.delta", data })) ?? "";
		expect(text.startsWith("id: 3\nevent: message.delta\ndata: ")).toBe(true);
		expect(text.split("\n").filter((line) => line !== "")).toHaveLength(3);
		expect(text).not.toContain("\r");
		expect(toEvent(JSON.stringify({ seq: null, event: "message.delta", data }))).not.toContain("id:");
		expect(toEvent(JSON.stringify({ seq: "1\n", event: "run.status", data }))).not.toContain("id:");
		for (const none of ["", "null", "[]", "{", JSON.stringify({ seq: 1, event: "run.status\nid: 9", data })])
			expect(toEvent(none)).toBeUndefined();
	});
});

describe("a stream", () => {
	const always = async () => true;
	const frame = (size: number) => JSON.stringify({ seq: 1, event: "run.status", data: "x".repeat(size) });

	it("whose client never reads is ended when its buffer is full, and the object is told", async () => {
		const { 0: client, 1: server } = new WebSocketPair();
		server.accept();
		const closed = new Promise<void>((done) => server.addEventListener("close", () => done()));
		const body = eventStream(client, new AbortController().signal, always);
		for (let n = 0; n < 40; n++) server.send(frame(BUFFER_MAX_BYTES / 20));
		await closed;
		const text = await new Response(body).text();
		expect(text.length).toBeGreaterThan(BUFFER_MAX_BYTES / 2);
		expect(text.length).toBeLessThan(BUFFER_MAX_BYTES * 1.2);
	});

	it("ends when the client cancels, when its request is aborted, and when the object closes", async () => {
		for (const leave of ["cancel", "abort", "close"] as const) {
			const { 0: client, 1: server } = new WebSocketPair();
			server.accept();
			const closed = new Promise<void>((done) => server.addEventListener("close", () => done()));
			const abort = new AbortController();
			const body = eventStream(client, abort.signal, always);
			if (leave === "cancel") await body.cancel();
			if (leave === "abort") abort.abort();
			if (leave === "close") {
				server.close(1000, "over");
				expect(await new Response(body).text()).toBe(": open\n\n");
				continue;
			}
			await closed;
		}
	});

	it("beats, and ends after a minute in which nobody took anything", async () => {
		vi.useFakeTimers();
		try {
			const { 0: client, 1: server } = new WebSocketPair();
			server.accept();
			const body = eventStream(client, new AbortController().signal, always);
			await vi.advanceTimersByTimeAsync(20 * HEARTBEAT_MS);
			const text = await new Response(body).text();
			expect(text).toBe(`: open\n\n${": heartbeat\n\n".repeat(4)}`);
		} finally {
			vi.useRealTimers();
		}
	});

	it("ends at the heartbeat after its client may not listen any more, and the object is told", async () => {
		vi.useFakeTimers();
		try {
			const { 0: client, 1: server } = new WebSocketPair();
			server.accept();
			const closed = new Promise<void>((done) => server.addEventListener("close", () => done()));
			let asked = 0;
			const body = eventStream(client, new AbortController().signal, async () => ++asked < 2);
			await vi.advanceTimersByTimeAsync(3 * HEARTBEAT_MS);
			await closed;
			expect(await new Response(body).text()).toBe(`: open\n\n${": heartbeat\n\n".repeat(2)}`);
			expect(asked).toBe(2);
		} finally {
			vi.useRealTimers();
		}
	});
});
