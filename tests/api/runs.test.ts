/** Runs over the API: how they are named, who sees them, and what a broken object looks like from outside. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { KeyCache } from "../../workers/api/middleware/key-cache.ts";
import { preferredWait } from "../../workers/api/middleware/prefer.ts";
import { askRun } from "../../workers/api/run-object.ts";
import { decide, externalRun, ledgerTool, turn as oneTurn, PAY } from "../acceptance/tools.ts";
import { call, pluck, seedTenant, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});

const external = (more: object = {}) => ({ goal: "look around", planner: { kind: "external" }, ...more });
const start = (key: string, body: object = external(), headers: Record<string, string> = {}) =>
	call("POST", "/v1/runs", body, key, headers);

describe("names", () => {
	it("a repeated Idempotency-Key is the same run, session included; another body is told", async () => {
		const again = { "idempotency-key": "order-1" };
		const [first, second, third] = await Promise.all([1, 2, 3].map(() => start(tenant.agent, external(), again)));
		expect([first?.status, second?.status, third?.status]).toEqual([201, 201, 201]);
		expect(second?.body.run_id).toBe(first?.body.run_id);
		expect(third?.body.session_id).toBe(first?.body.session_id);
		const other = await start(tenant.agent, external({ goal: "something else" }), again);
		expect([other.status, other.body.code]).toEqual([409, "idempotency_conflict"]);
	});

	it("the same key of another principal or tenant names another run", async () => {
		const again = { "idempotency-key": "order-2" };
		const elsewhere = await seedTenant();
		const made = await Promise.all([
			start(tenant.agent, external(), again),
			start(tenant.operator, external(), again),
			start(elsewhere.agent, external(), again),
		]);
		expect(new Set(made.map(({ body }) => body.run_id)).size).toBe(3);
	});

	it("a session belongs to its first principal, fresh ones too", async () => {
		const session_id = "sess_shared-1";
		expect((await start(tenant.agent, external({ session_id }))).status).toBe(201);
		expect((await start(tenant.agent, external({ session_id }))).body.session_id).toBe(session_id);
		const taken = await start(tenant.operator, external({ session_id }));
		expect([taken.status, taken.body.code]).toEqual([409, "session_taken"]);
		const fresh = (await start(tenant.agent)).body.session_id;
		expect((await start(tenant.operator, external({ session_id: fresh }))).body.code).toBe("session_taken");
		const elsewhere = await seedTenant();
		expect((await start(elsewhere.agent, external({ session_id }))).status).toBe(201);
		expect((await start(tenant.agent, external({ session_id: "sess_" }))).status).toBe(422);
		expect((await start(tenant.agent, external({ session_id: "mine" }))).status).toBe(422);
	});

	it("a run has a location and a trace", async () => {
		const made = await start(tenant.agent);
		expect(made.headers.get("location")).toBe(`/v1/runs/${made.body.run_id}`);
		expect(made.body.trace_id).toBe(made.headers.get("trace-id"));
		expect((await call("GET", made.headers.get("location") ?? "", undefined, tenant.agent)).body.run_id).toBe(
			made.body.run_id,
		);
	});

	it("unknown toolpacks are refused rather than ignored", async () => {
		const answer = await start(tenant.agent, external({ toolpacks: ["finance"] }));
		expect(answer.body.errors).toMatchObject([{ field: "/toolpacks", issue: "unknown_name" }]);
	});
});

describe("who sees what", () => {
	it("an agent with every permission lists and reads its own runs only; a reader sees all of the tenant's", async () => {
		const own = (await start(tenant.agent)).body.run_id;
		const others = (await start(tenant.limited)).body.run_id;
		const listed = async (key: string) =>
			pluck((await call("GET", "/v1/runs?limit=100", undefined, key)).body.data, "run_id");
		await vi.waitFor(async () => expect(await listed(tenant.reader)).toEqual(expect.arrayContaining([own, others])), {
			timeout: 5_000,
		});
		expect(await listed(tenant.agent)).toContain(own);
		expect(await listed(tenant.agent)).not.toContain(others);
		expect((await call("GET", `/v1/runs/${others}`, undefined, tenant.agent)).status).toBe(404);
		expect((await call("GET", `/v1/runs/${others}`, undefined, tenant.reader)).status).toBe(200);
		expect((await call("POST", `/v1/runs/${others}/cancel`, undefined, tenant.reader)).status).toBe(404);
	});

	it("lists page by cursor", async () => {
		const first = await call("GET", "/v1/runs?limit=2", undefined, tenant.operator);
		expect(first.body.data).toHaveLength(2);
		const next = await call("GET", `/v1/runs?limit=2&cursor=${first.body.next_cursor}`, undefined, tenant.operator);
		const ids = pluck([...first.body.data, ...next.body.data], "run_id");
		expect(new Set(ids).size).toBe(ids.length);
	});
});

describe("what a run shows", () => {
	const turn = {
		content: null,
		tool_calls: [{ id: "c", type: "function", function: { name: "clock_now", arguments: "{}" } }],
	};

	it("its tools in three dialects, and a tool's five facts within it", async () => {
		const { run_id } = (await start(tenant.limited, external({ tools: ["clock_now", "echo"] }))).body;
		expect((await call("POST", `/v1/runs/${run_id}/decisions`, turn, tenant.limited)).status).toBe(200);
		const shape = async (format: string) =>
			Object.keys(
				(await call("GET", `/v1/runs/${run_id}/exposure?format=${format}`, undefined, tenant.limited)).body.tools[0],
			);
		expect(await shape("openai")).toEqual(["type", "function"]);
		expect(await shape("anthropic")).toEqual(["name", "description", "input_schema"]);
		expect(await shape("mcp")).toEqual(["name", "description", "inputSchema"]);
		expect((await call("GET", `/v1/runs/${run_id}/exposure?format=xml`, undefined, tenant.limited)).status).toBe(422);

		const facts = async (tool: string, run: string) =>
			call("GET", `/v1/tools/${tool}/facts?run_id=${run}`, undefined, tenant.limited);
		const used = (await facts("clock_now", run_id)).body;
		for (const fact of ["registry", "surface", "availability", "exposure", "invocation"])
			expect(used[fact].holds, fact).toBe(true);
		const unused = (await facts("echo", run_id)).body;
		expect([unused.exposure.holds, unused.invocation.holds]).toEqual([true, false]);
		const unpinned = (await facts("text_stats", run_id)).body;
		expect([unpinned.availability.holds, unpinned.exposure.holds]).toEqual([true, false]);
		const foreign = (await start(tenant.operator)).body.run_id;
		expect((await facts("echo", foreign)).status).toBe(404);
	});

	it("evidence that verifies, messages by turn, and a decision repeated by key", async () => {
		const { run_id } = (await start(tenant.limited)).body;
		const decide = () =>
			call("POST", `/v1/runs/${run_id}/decisions`, turn, tenant.limited, { "idempotency-key": "turn-1" });
		const [first, second] = [await decide(), await decide()];
		expect(first.body.messages).toMatchObject([{ role: "tool", tool_call_id: "c", final: true }]);
		expect(second.body.messages).toEqual(first.body.messages);
		expect(second.body.run.calls).toHaveLength(1);
		const messages = (n: string) => call("GET", `/v1/runs/${run_id}/messages${n}`, undefined, tenant.limited);
		expect((await messages("")).body.messages).toEqual(first.body.messages);
		expect((await messages(`?turn=${(await messages("")).body.turn}`)).body.messages).toEqual(first.body.messages);
		expect((await messages("?turn=x")).status).toBe(422);
		const evidence = await call("GET", `/v1/runs/${run_id}/evidence`, undefined, tenant.limited);
		expect(evidence.body.data.length).toBeGreaterThan(0);
		expect((await call("GET", `/v1/runs/${run_id}/evidence/verify`, undefined, tenant.limited)).body).toMatchObject({
			valid: true,
			broken_at: null,
		});
		expect((await call("POST", `/v1/runs/${run_id}/cancel`, undefined, tenant.limited)).body.status).toBe("cancelled");
		expect((await call("POST", `/v1/runs/${run_id}/cancel`, { force: true }, tenant.limited)).status).toBe(422);
	});
});

describe("messages without `turn`", () => {
	const messages = async (run_id: string, query = "") =>
		(await call("GET", `/v1/runs/${run_id}/messages${query}`, undefined, tenant.operator)).body;

	it("are of the newest turn that has calls when the run was cancelled with its turn open", async () => {
		await ledgerTool(tenant, "waits", PAY);
		const { run_id } = await externalRun(tenant);
		await decide(tenant, run_id, oneTurn(["clock_now", "a", {}]));
		await decide(tenant, run_id, oneTurn(["waits", "b", { to: "A" }]));
		await call("POST", `/v1/runs/${run_id}/cancel`, undefined, tenant.operator);
		expect(await messages(run_id)).toMatchObject({ turn: 2, messages: [{ tool_call_id: "b", final: true }] });
	});

	it("are of the newest turn that has calls when the turns are used up", async () => {
		const { run_id } = await externalRun(tenant, { limits: { turns: 2 } });
		await decide(tenant, run_id, oneTurn(["clock_now", "a", {}]));
		const { run } = await decide(tenant, run_id, oneTurn(["clock_now", "b", {}]));
		expect([run.status, run.error.code]).toEqual(["failed", "turn_limit"]);
		expect(await messages(run_id)).toMatchObject({ turn: 2, messages: [{ tool_call_id: "b" }] });
	});

	it("bring what the user of an external planner has said since", async () => {
		const { run_id } = await externalRun(tenant, { messages: [{ role: "user", content: "before" }] });
		const say = (content: string) => call("POST", `/v1/runs/${run_id}/messages`, { content }, tenant.operator);
		expect(await messages(run_id)).toEqual({ turn: 0, messages: [], said: [] });
		await say("one");
		await decide(tenant, run_id, oneTurn(["clock_now", "a", {}]));
		await decide(tenant, run_id, { content: "done" });
		expect((await say("go on")).body.status).toBe("awaiting_decision");
		expect(await messages(run_id)).toMatchObject({
			turn: 1,
			messages: [{ tool_call_id: "a" }],
			said: ["one", "go on"],
		});
		await decide(tenant, run_id, oneTurn(["waits", "b", { to: "A" }]));
		await say("while it waits");
		expect(await messages(run_id)).toMatchObject({ turn: 3, messages: [{ final: false }], said: ["while it waits"] });
		expect(await messages(run_id, "?turn=2")).toEqual({ turn: 2, messages: [], said: ["go on"] });
	});
});

describe("an object that breaks (C05)", () => {
	it("is read and written again afterwards, and a repeated creation is the first one's", async () => {
		const keyed = { "idempotency-key": "survives" };
		const first = await start(tenant.agent, external(), keyed);
		await abortAllDurableObjects();
		expect((await call("GET", `/v1/runs/${first.body.run_id}`, undefined, tenant.agent)).status).toBe(200);
		await abortAllDurableObjects();
		const again = await start(tenant.agent, external(), keyed);
		expect(again.body.run_id).toBe(first.body.run_id);
	});

	const broken = (failures: number) => {
		let calls = 0;
		const namespace = {
			getByName: () => ({
				read: async () => {
					if (++calls <= failures)
						throw Object.assign(new Error("Durable Object reset because its code was updated."), {
							remote: true,
							retryable: true,
						});
					return { ok: true, value: "fine" };
				},
			}),
		};
		return { env: { ...env, AGENT_RUN: namespace } as unknown as Parameters<typeof askRun>[0], calls: () => calls };
	};
	const run_id = `run_${"a".repeat(32)}`;
	const read = (world: ReturnType<typeof broken>, kind: "read" | "write") =>
		askRun(world.env, run_id, kind, (run) => run.read({} as never));

	it("is asked once more for a read, on a fresh stub", async () => {
		const world = broken(1);
		expect(await read(world, "read")).toBe("fine");
		expect(world.calls()).toBe(2);
	});

	it("is not asked again for a write, and is never a 500", async () => {
		for (const [kind, calls] of [
			["write", 1],
			["read", 2],
		] as const) {
			const world = broken(9);
			await expect(read(world, kind)).rejects.toMatchObject({
				status: 503,
				code: "run_unavailable",
				more: { retry_after_s: 2 },
			});
			expect(world.calls()).toBe(calls);
		}
	});

	it("is not reached at all by what is no run id", async () => {
		const world = broken(0);
		await expect(askRun(world.env, "run_../x", "read", (run) => run.read({} as never))).rejects.toMatchObject({
			status: 404,
		});
		expect(world.calls()).toBe(0);
	});
});

describe("a store that is away", () => {
	it("lets nobody in and says so", async () => {
		const { app } = await import("../../workers/api/app.ts");
		const DB = {
			prepare: () => {
				throw new Error("D1_ERROR: no such table: api_keys: SELECT secret_column");
			},
		};
		const answer = await app.fetch(
			new Request("https://belay.test/v1/runs", { headers: { authorization: `Bearer belay_test_${"x".repeat(43)}` } }),
			{ ...env, DB } as never,
		);
		const text = await answer.text();
		expect([answer.status, JSON.parse(text).code]).toEqual([503, "store_unavailable"]);
		expect(answer.headers.get("retry-after")).toBe("2");
		expect(text).not.toContain("D1_ERROR");
	});

	it("an unforeseen failure is a bare 500 that tells nothing", async () => {
		const { app } = await import("../../workers/api/app.ts");
		const answer = await app.fetch(new Request("https://belay.test/healthz"), {
			...env,
			BELAY_MASTER_SECRET: "do-not-show",
		} as never);
		const text = await answer.text();
		expect([answer.status, JSON.parse(text).code]).toEqual([500, "internal"]);
		expect(text).not.toContain("master");
		expect(answer.headers.get("trace-id")).toBe(JSON.parse(text).trace_id);
	});
});

describe("Prefer: wait", () => {
	it.each([
		[undefined, null],
		["wait=5", 5_000],
		["wait=0", 0],
		["wait=600", 60_000],
		["respond-async, wait=10", 10_000],
		["Wait = 7 ; x=y", 7_000],
		["wait=10, wait=20", 10_000],
		['wait="3"', 3_000],
		["wait=-1", null],
		["wait=abc", null],
		["wait=1.5", null],
		["wait", null],
		["await=5", null],
		["wait=99999999999999999999", null],
	])("%s", (prefer, expected) => {
		expect(preferredWait(prefer)).toBe(expected);
	});
});

describe("the memory of keys", () => {
	const caller = { principal_id: "p" } as never;

	it("ends in time, and with the key itself", () => {
		const cache = new KeyCache();
		cache.put("a", caller, 0);
		cache.put("b", caller, 0, 1_000);
		expect([cache.get("a", 4_999), cache.get("a", 5_000)]).toEqual([caller, undefined]);
		expect([cache.get("b", 999), cache.get("b", 1_000)]).toEqual([caller, undefined]);
	});

	it("is not pushed out by guesses", () => {
		const cache = new KeyCache();
		cache.put("a", caller, 0);
		for (let n = 0; n < 20_000; n++) cache.put(`guess ${n}`, null, 0);
		expect(cache.get("a", 1)).toBe(caller);
		expect(cache.get("guess 0", 1)).toBeUndefined();
		expect(cache.get("guess 19999", 1)).toBeNull();
		expect(cache.get("guess 19999", 1_000)).toBeUndefined();
	});
});
