/** Section I through HTTP: retries, breaker, rate, idempotency, cache, fallback, unknown outcomes, result checks. */
import { abortAllDurableObjects } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import {
	approve,
	callOf,
	decide,
	externalRun,
	getRun,
	ledger,
	ledgerTool,
	messageOf,
	READ,
	type Run,
	rested,
	turn,
} from "./tools.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});

const KEYED = { idempotency: { mode: "key" } };
const url = (tool_id: string, action: string) => `https://ledger.test/${tenant.tenant_id}-${tool_id}/${action}`;
const at = (tool_id: string, action: string, method = "POST") => ({
	implementation: { kind: "http", method, url: url(tool_id, action) },
});
const session = () => `sess_${crypto.randomUUID().replaceAll("-", "")}`;
const once = async (
	tool_id: string,
	args: unknown = {},
	more: Record<string, unknown> = {},
	key = tenant.operator,
): Promise<Run> => {
	const run = await externalRun(tenant, more, key);
	return decide(tenant, run.run_id, turn([tool_id, "c1", args]), key);
};

describe("I2: retries", () => {
	it("a read is tried again with growing waits and time, and every attempt is on record", async () => {
		const key = await ledgerTool(tenant, "flaky_read", READ, "flaky/2");
		const found = callOf((await once("flaky_read")).run, "c1");
		expect(found.state).toBe("COMPLETED");
		expect(found.attempts.map((one: Run) => [one.n, one.outcome, one.http_status])).toEqual([
			[1, "failed", 503],
			[2, "failed", 503],
			[3, "success", 200],
		]);
		const [first, second, third] = found.attempts.map((one: Run) => one.waited_ms);
		expect(first).toBe(0);
		expect(second).toBeGreaterThanOrEqual(390);
		expect(second).toBeLessThanOrEqual(610);
		expect(third).toBeGreaterThanOrEqual(1190);
		expect(third).toBeLessThanOrEqual(1810);
		expect(await ledger(key)).toHaveLength(3);
	});
	it("waits are durable: the object dies in the back-off and the call still completes", async () => {
		const key = await ledgerTool(tenant, "flaky_killed", READ, "flaky/1");
		const run = await externalRun(tenant);
		await decide(tenant, run.run_id, turn(["flaky_killed", "c1", {}]), tenant.operator, { prefer: "wait=0" });
		await expect
			.poll(async () => callOf(await getRun(tenant, run.run_id), "c1").waiting?.reason, {
				timeout: 5_000,
				interval: 20,
			})
			.toBe("retry");
		await abortAllDurableObjects();
		await expect
			.poll(async () => (await getRun(tenant, run.run_id)).status, { timeout: 10_000 })
			.toBe("awaiting_decision");
		expect(callOf(await getRun(tenant, run.run_id), "c1").state).toBe("COMPLETED");
		expect(await ledger(key)).toHaveLength(2);
	});
	it("429 waits as long as it is told", async () => {
		await ledgerTool(tenant, "limited_read", READ, "limited/1");
		const found = callOf((await once("limited_read")).run, "c1");
		expect(found.state).toBe("COMPLETED");
		expect(found.attempts[1].waited_ms).toBeGreaterThanOrEqual(1_000);
	});
	it.each([
		["another 4xx", "status/404", "FAILED", 1],
		["an unkeyed write", "flaky/1", "OUTCOME_UNKNOWN", 1],
	])("%s is not tried again", async (_name, action, state, times) => {
		const tool_id = state === "FAILED" ? "missing_read" : "flaky_write";
		const key = await ledgerTool(tenant, tool_id, state === "FAILED" ? READ : {}, action);
		expect(callOf((await once(tool_id)).run, "c1").state).toBe(state);
		expect(await ledger(key)).toHaveLength(times as number);
	});
	it("a keyed write is tried again under the same key", async () => {
		const key = await ledgerTool(tenant, "flaky_keyed", KEYED, "flaky/1");
		const found = callOf((await once("flaky_keyed")).run, "c1");
		expect(found.state).toBe("COMPLETED");
		const keys = (await ledger(key)).map((entry) => entry.headers["idempotency-key"]);
		expect(keys).toEqual([found.tool_call_id, found.tool_call_id]);
	});
	it("an approved call is retried under the one grant it has, and asks nobody again", async () => {
		await ledgerTool(tenant, "gated_flaky", { ...KEYED, approval: { mode: "always" } }, "flaky/1");
		const turned = await once("gated_flaky", { text: "x" });
		expect((await approve(tenant, turned.pending_approvals[0])).status).toBe(200);
		const after = await rested(tenant, turned.run.run_id, turned.run.seq);
		expect(callOf(after, "c1")).toMatchObject({ state: "COMPLETED" });
		expect(callOf(after, "c1").attempts).toHaveLength(2);
	});
});

describe("I3: the breaker", () => {
	it("opens after faults, answers at once without calling, and is not opened by 4xx", async () => {
		const key = await ledgerTool(tenant, "down", { ...READ, timeout_ms: 5_000 }, "status/500");
		const limits = { turn_timeout_ms: 2_000 };
		const run = await externalRun(tenant, { limits });
		for (let n = 0; n < 3; n++) await decide(tenant, run.run_id, turn(["down", `c${n}`, { q: String(n) }]));
		const before = (await ledger(key)).length;
		const failing = await decide(tenant, run.run_id, turn(["down", "last", { q: "x" }]));
		expect(callOf(failing.run, "last")).toMatchObject({ state: "FAILED", error: { code: "circuit_open" } });
		expect(await ledger(key)).toHaveLength(before);
		const health = await call("GET", "/v1/tools/down/health", undefined, tenant.operator);
		expect(health.body.breaker.state).toBe("open");
		const other = await ledgerTool(tenant, "wrong", READ, "status/422");
		for (let n = 0; n < 8; n++)
			await decide(tenant, (await externalRun(tenant)).run_id, turn(["wrong", "c", { q: String(n) }]));
		expect(await ledger(other)).toHaveLength(8);
	});
});

describe("I8: rate limits", () => {
	it("a call over the limit shows as waiting, can be taken back, and another runs when its time comes", async () => {
		const key = await ledgerTool(tenant, "slowly", { ...READ, rate_limit: { requests_per_minute: 30, burst: 1 } });
		const run = await externalRun(tenant);
		const turned = await decide(
			tenant,
			run.run_id,
			turn(["slowly", "c1", { q: "1" }], ["slowly", "c2", { q: "2" }], ["slowly", "c3", { q: "3" }]),
			tenant.operator,
			{ prefer: "wait=1" },
		);
		const waiting = turned.run.calls.filter((one: Run) => one.state === "PENDING");
		expect(waiting.length).toBeGreaterThanOrEqual(1);
		expect(waiting[0].waiting).toMatchObject({ reason: "rate_limit" });
		const taken = waiting.at(-1);
		const cancelled = await call(
			"POST",
			`/v1/runs/${run.run_id}/calls/${taken.tool_call_id}/cancel`,
			undefined,
			tenant.operator,
		);
		expect(cancelled.status).toBe(200);
		await expect
			.poll(async () => (await getRun(tenant, run.run_id)).status, { timeout: 15_000 })
			.toBe("awaiting_decision");
		const after = await getRun(tenant, run.run_id);
		expect(after.calls.filter((one: Run) => one.state === "COMPLETED")).toHaveLength(2);
		expect(callOf(after, taken.provider_call_id)).toMatchObject({
			state: "REFUSED",
			refusal: { reason: "run_cancelled" },
		});
		expect(await ledger(key)).toHaveLength(2);
	});
});

describe("I5: idempotency", () => {
	it("serves an equal call of the session from the first result, marked, and another session executes", async () => {
		const key = await ledgerTool(tenant, "pay_once", KEYED);
		const session_id = session();
		const first = callOf((await once("pay_once", { to: "A" }, { session_id })).run, "c1");
		const second = await once("pay_once", { to: "A" }, { session_id });
		expect(callOf(second.run, "c1")).toMatchObject({
			state: "COMPLETED",
			source: "idempotent_replay",
			result: first.result,
			attempts: [],
		});
		expect(messageOf(second.messages).notes.join(" ")).toContain(first.tool_call_id);
		expect(await ledger(key)).toHaveLength(1);
		await once("pay_once", { to: "B" }, { session_id });
		await once("pay_once", { to: "A" }, { session_id: session() });
		expect(await ledger(key)).toHaveLength(3);
	});
	it("concurrent duplicates execute once", async () => {
		const key = await ledgerTool(tenant, "pay_slow", { ...KEYED, ...at("pay_slow", "slow?ms=700") });
		const session_id = session();
		const answers = await Promise.all([
			once("pay_slow", { to: "A" }, { session_id }),
			once("pay_slow", { to: "A" }, { session_id }),
			once("pay_slow", { to: "A" }, { session_id }),
		]);
		expect(answers.map((answer) => callOf(answer.run, "c1").state)).toEqual(["COMPLETED", "COMPLETED", "COMPLETED"]);
		expect(answers.map((answer) => callOf(answer.run, "c1").source).sort()).toEqual([
			"idempotent_replay",
			"idempotent_replay",
			"live",
		]);
		expect(await ledger(key)).toHaveLength(1);
	});
	it("is judged first: an equal gated call asks again and only then is served", async () => {
		const key = await ledgerTool(tenant, "pay_gated", { ...KEYED, approval: { mode: "always" } });
		const session_id = session();
		const first = await once("pay_gated", { to: "A" }, { session_id });
		await approve(tenant, first.pending_approvals[0]);
		await rested(tenant, first.run.run_id, first.run.seq);
		const second = await once("pay_gated", { to: "A" }, { session_id });
		expect(second.run.status).toBe("awaiting_approval");
		await approve(tenant, second.pending_approvals[0]);
		const after = await rested(tenant, second.run.run_id, second.run.seq);
		expect(callOf(after, "c1")).toMatchObject({ state: "COMPLETED", source: "idempotent_replay" });
		expect(
			(await call("GET", `/v1/approvals/${second.pending_approvals[0].approval_id}`, undefined, tenant.approver)).body
				.status,
		).toBe("consumed");
		expect(await ledger(key)).toHaveLength(1);
	});
});

describe("I7: the result cache", () => {
	const CACHED = { ...READ, cache: { tier: "realtime" } };
	it("serves declared reads, keeps principals apart, and is emptied by a declared write", async () => {
		const key = await ledgerTool(tenant, "prices", CACHED);
		await ledgerTool(tenant, "set_price", { invalidates: ["prices"] });
		await once("prices", { q: "a" });
		const again = callOf((await once("prices", { q: "a" })).run, "c1");
		expect(again).toMatchObject({ state: "COMPLETED", source: "cache", attempts: [] });
		expect(await ledger(key)).toHaveLength(1);
		await once("prices", { q: "b" });
		await once("prices", { q: "a" }, {}, tenant.reader);
		expect(await ledger(key)).toHaveLength(3);
		await once("set_price", { q: "a" });
		await expect
			.poll(async () => callOf((await once("prices", { q: "a" })).run, "c1").source, { timeout: 5_000 })
			.toBe("live");
	});
	it("never keeps a failure, and never skips an approval", async () => {
		const key = await ledgerTool(tenant, "sometimes", CACHED, "flaky/4");
		expect(callOf((await once("sometimes", { q: "a" })).run, "c1").state).toBe("FAILED");
		expect(callOf((await once("sometimes", { q: "a" })).run, "c1")).toMatchObject({
			state: "COMPLETED",
			source: "live",
		});
		expect((await ledger(key)).length).toBeGreaterThanOrEqual(5);
		await ledgerTool(tenant, "gated_read", { ...CACHED, approval: { mode: "always" } });
		const first = await once("gated_read", { q: "a" });
		await approve(tenant, first.pending_approvals[0]);
		await rested(tenant, first.run.run_id, first.run.seq);
		expect((await once("gated_read", { q: "a" })).run.status).toBe("awaiting_approval");
	});
});

describe("I6: fallback", () => {
	it("is another call with its own judgement; the result names where it came from", async () => {
		await ledgerTool(tenant, "history", { ...READ, visibility: "internal" }, "echo");
		await ledgerTool(
			tenant,
			"current",
			{
				...READ,
				input_schema: { type: "object", properties: { q: { type: "string" } }, required: ["q"] },
				fallback: { tool_id: "history", args: { text: "args.q" } },
			},
			"status/404",
		);
		const turned = await once("current", { q: "sales" });
		const parent = callOf(turned.run, "c1", 0);
		const child = turned.run.calls.find((one: Run) => one.parent_call_id === parent.tool_call_id);
		expect(parent).toMatchObject({
			state: "COMPLETED",
			source: "fallback",
			data_source: "history",
			data_freshness: "may_be_outdated",
		});
		expect(child).toMatchObject({
			tool_id: "history",
			source: "fallback",
			arguments: { text: "sales" },
			state: "COMPLETED",
		});
		expect(child.input_hash).not.toBe(parent.input_hash);
		expect(turned.messages).toHaveLength(1);
		expect(messageOf(turned.messages).notes.join(" ")).toContain("history");
	});
	it("O15: nothing follows a possible side effect, and a gated fallback asks for itself", async () => {
		const pay2 = await ledgerTool(tenant, "pay2");
		await ledgerTool(tenant, "pay1", { ...at("pay1", "status/503"), fallback: { tool_id: "pay2" } });
		expect(callOf((await once("pay1", { to: "A" })).run, "c1").state).toBe("OUTCOME_UNKNOWN");
		expect(await ledger(pay2)).toHaveLength(0);
		const gated = await ledgerTool(tenant, "gated_history", { ...READ, approval: { mode: "always" } });
		await ledgerTool(tenant, "lookup", { ...READ, fallback: { tool_id: "gated_history" } }, "status/404");
		const turned = await once("lookup", { q: "x" });
		expect(turned.run.status).toBe("awaiting_approval");
		expect(turned.pending_approvals[0].tool_id).toBe("gated_history");
		expect(await ledger(gated)).toHaveLength(0);
		await approve(tenant, turned.pending_approvals[0]);
		const after = await rested(tenant, turned.run.run_id, turned.run.seq);
		expect(callOf(after, "c1")).toMatchObject({ state: "COMPLETED", source: "fallback", data_source: "gated_history" });
	});
	it("R3: a major that it pins stands in although a newer one is online; of a major that is not, the result says so", async () => {
		const fields = { type: "object", properties: { q: { type: "string" } } };
		const key = await ledgerTool(tenant, "archive", { ...READ, input_schema: fields, visibility: "internal" }, "echo");
		const newer = { ...READ, version: "2.0.0", input_schema: { ...fields, required: ["q"] }, visibility: "internal" };
		await ledgerTool(tenant, "archive", newer, "status/404");
		await ledgerTool(tenant, "pins_one", { ...READ, fallback: { tool_id: "archive@1" } }, "status/404");
		await ledgerTool(tenant, "pins_none", { ...READ, fallback: { tool_id: "archive@3" } }, "status/404");
		const served = await once("pins_one", { q: "sales" });
		expect(callOf(served.run, "c1")).toMatchObject({ state: "COMPLETED", source: "fallback", data_source: "archive" });
		const child = served.run.calls.find((one: Run) => one.tool_id === "archive");
		expect(child).toMatchObject({ tool_version: "1.0.0", state: "COMPLETED" });
		expect((await ledger(key)).map((one) => new URL(one.url).pathname)).toEqual([`/${key}/echo`]);
		const failed = callOf((await once("pins_none", { q: "sales" })).run, "c1");
		expect(failed).toMatchObject({ state: "FAILED" });
		expect(failed.notes.join()).toContain("`archive@3` cannot be used here");
	});
	it("a caller without permission for the target gets none", async () => {
		await ledgerTool(tenant, "secret_history", { ...READ, required_permissions: ["vault:open:history"] });
		await ledgerTool(tenant, "open_lookup", { ...READ, fallback: { tool_id: "secret_history" } }, "status/404");
		const turned = await once("open_lookup", { q: "x" }, {}, tenant.reader);
		expect(callOf(turned.run, "c1")).toMatchObject({ state: "FAILED" });
		expect(await ledger(`${tenant.tenant_id}-secret_history`)).toHaveLength(0);
	});
});

describe("unknown outcomes", () => {
	it("reconcile asks the status tool", async () => {
		for (const [word, state] of [
			["yes", "COMPLETED"],
			["no", "FAILED"],
		] as const) {
			const status = {
				...READ,
				visibility: "internal",
				input_schema: { type: "object", properties: { tool_call_id: { type: "string" } } },
			};
			const key = await ledgerTool(tenant, `status_${word}`, status, `happened/${word}`);
			await ledgerTool(tenant, `write_${word}`, { on_unknown: `reconcile:status_${word}` }, "status/502");
			const found = callOf((await once(`write_${word}`, { to: "A" })).run, "c1");
			expect(found).toMatchObject(
				word === "yes" ? { state, result: { seen: true } } : { state, error: { code: "not_happened" } },
			);
			expect(JSON.parse((await ledger(key))[0]?.body ?? "{}")).toEqual({ tool_call_id: found.tool_call_id });
		}
	});
	it("ask keeps the turn open until a person says; fail stops the run", async () => {
		await ledgerTool(tenant, "write_ask", { on_unknown: "ask" }, "status/502");
		const turned = await once("write_ask", { to: "A" });
		expect(turned.run.status).toBe("awaiting_approval");
		const path = `/v1/runs/${turned.run.run_id}/calls/${callOf(turned.run, "c1").tool_call_id}/outcome`;
		expect(
			(await call("POST", path, { outcome: "not_happened", reason: "checked the books" }, tenant.operator)).status,
		).toBe(200);
		const after = await rested(tenant, turned.run.run_id, turned.run.seq);
		expect(after.status).toBe("awaiting_decision");
		expect(callOf(after, "c1")).toMatchObject({ state: "FAILED", error: { code: "not_happened" } });
		await ledgerTool(tenant, "write_fail", { on_unknown: "fail" }, "status/502");
		expect((await once("write_fail", { to: "A" })).run).toMatchObject({
			status: "failed",
			error: { code: "outcome_unknown" },
		});
	});
});

describe("I10: results", () => {
	it("a read that breaks its output schema fails by field; a write keeps its result with a note", async () => {
		const output_schema = { type: "object", properties: { ok: { type: "string" } }, required: ["ok"] };
		await ledgerTool(tenant, "bad_read", { ...READ, output_schema });
		await ledgerTool(tenant, "bad_write", { output_schema });
		expect(callOf((await once("bad_read")).run, "c1")).toMatchObject({
			state: "FAILED",
			error: { code: "invalid_response" },
		});
		const written = callOf((await once("bad_write")).run, "c1");
		expect(written.state).toBe("COMPLETED");
		expect(written.notes.join(" ")).toContain("output_schema");
	});
});

describe("the kill switch", () => {
	// A halted run looks again every 30 s (decision 17).
	it("freezes what waits: nothing starts while halted, the approval stands, and it runs when the halt ends", {
		timeout: 90_000,
	}, async () => {
		const key = await ledgerTool(tenant, "haltable", { approval: { mode: "always" } });
		const turned = await once("haltable", { text: "x" });
		const halt = await call(
			"POST",
			"/v1/halts",
			{ scope: "tool:haltable", reason: "looking into it" },
			tenant.operator,
		);
		expect(halt.status).toBe(201);
		expect((await call("POST", "/v1/halts", { scope: "tenant", reason: "x" }, tenant.agent)).status).toBe(403);
		expect((await approve(tenant, turned.pending_approvals[0])).body.status).toBe("approved");
		const halted = callOf(await getRun(tenant, turned.run.run_id), "c1");
		expect(halted).toMatchObject({ state: "PENDING", waiting: { reason: "halt" } });
		expect(await ledger(key)).toHaveLength(0);
		expect((await call("DELETE", `/v1/halts/${halt.body.halt_id}`, undefined, tenant.operator)).status).toBe(200);
		await abortAllDurableObjects();
		await expect
			.poll(async () => (await getRun(tenant, turned.run.run_id)).status, { timeout: 45_000, interval: 500 })
			.toBe("awaiting_decision");
		expect(await ledger(key)).toHaveLength(1);
	});
});
