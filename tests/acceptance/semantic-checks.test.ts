/** V2: a tool's own check, run in the real sandbox before the step. What does not say that the arguments are fine refuses. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { executeCode } from "#adapters/wasm/execute.ts";
import { Executor } from "#adapters/wasm/executor.ts";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import { answering, askedOf, calling, script } from "../support/planner-script.ts";
import {
	approve,
	callOf,
	decide,
	externalRun,
	ledger,
	ledgerTool,
	PAY,
	READ,
	type Run,
	rested,
	turn,
} from "./tools.ts";

const FREE = { approval: { mode: "never" } };
const js = (source: string) => ({ semantic_check: { language: "javascript", source } });
/** No more than there is in stock, which no expression could say. */
const STOCK = `
const stock = { apples: 3, "con/c": 1 };
const errors = [];
if (!Object.hasOwn(stock, args.to)) errors.push({ field: "/to", message: "is not in stock: " + args.to });
else if (args.amount > stock[args.to]) errors.push({ field: "/amount", message: "only " + stock[args.to] + " left" });
return errors;`;

let tenant: TestTenant;
const keys: Record<string, string> = {};
beforeAll(async () => {
	tenant = await seedTenant();
	const tool = async (tool_id: string, source: string, more: object = FREE): Promise<void> => {
		keys[tool_id] = await ledgerTool(tenant, tool_id, { ...more, ...js(source) });
	};
	await tool("order", STOCK);
	await tool("order_asked", STOCK, PAY);
	await tool("order_read", STOCK, READ);
	await tool("endless", "for (;;) {}");
	await tool("builtin_endless", "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1); return [];");
	await tool("throws", "if (args.text !== undefined) throw new Error('internal: ' + args.text); return [];");
	await tool("silent", "const errors = [];");
	await tool("yes", "return true;");
	await tool("waits", "return new Promise(() => {});");
	await tool("hungry", "const all = []; for (;;) all.push(new Uint8Array(1 << 20));");
	await tool(
		"spy",
		`const seen = ["fetch", "XMLHttpRequest", "WebSocket", "require", "process", "setTimeout", "caches", "crypto", "env"]
			.filter((name) => typeof globalThis[name] !== "undefined");
		if (globalThis.left !== undefined || [].evil !== undefined) seen.push("an earlier run");
		globalThis.left = 1;
		Array.prototype.evil = 1;
		Object.prototype.field = "/to";
		Object.prototype.toJSON = undefined;
		return seen.map((name) => ({ field: "", message: "found " + name }));`,
	);
	await tool(
		"loud",
		"return Array.from({ length: 100 }, () => ({ field: '/to', message: '\\u001b[2J\\u0000' + 'x'.repeat(3000) }));",
	);
	await tool("huge", "return [{ field: '', message: 'x'.repeat(3 << 20) }];");
	await tool(
		"proto",
		`const errors = [];
		if (Object.getPrototypeOf(args) !== Object.prototype) errors.push({ field: "", message: "prototype" });
		if ({}.polluted !== undefined || args.polluted !== undefined) errors.push({ field: "", message: "polluted" });
		return errors;`,
	);
	keys.plain = await ledgerTool(tenant, "plain", FREE);
});

const one = async (tool: string, args: unknown, run?: Run): Promise<{ call: Run; run: Run; message: Run }> => {
	const { run_id } = run ?? (await externalRun(tenant));
	const id = `c${crypto.randomUUID().slice(0, 8)}`;
	const answer = await decide(tenant, run_id, turn([tool, id, args]));
	return { call: callOf(answer.run, id), run: answer.run, message: JSON.parse(answer.messages[0].content) };
};
const written = async (tool: string): Promise<number> => (await ledger(keys[tool] as string)).length;
const flags = async (run: Run): Promise<string[]> => {
	const { data } = (await call("GET", `/v1/runs/${run.run_id}/evidence`, undefined, tenant.operator)).body;
	return data.flatMap((record: Run) => record.envelope.security_flags ?? []);
};

describe("a tool's own check", () => {
	it("lets a good call through, and sends a bad one back with what to repair and where", async () => {
		const run = await externalRun(tenant);
		const bad = await one("order", { to: "apples", amount: 4 }, run);
		expect(bad.call.state).toBe("REFUSED");
		expect(bad.message.error).toMatchObject({
			stage: "normalize",
			reason: "semantic_failed",
			blocked: false,
			errors: [{ field: "/amount", issue: "semantic_violation", error: "only 3 left", hint: "only 3 left" }],
		});
		expect(bad.message.error.errors[0].expected).toBeTypeOf("string");
		const before = await written("order");
		const good = await one("order", { to: "apples", amount: "3" }, run);
		expect(good.call).toMatchObject({ state: "COMPLETED", arguments: { to: "apples", amount: 3 } });
		expect(await written("order")).toBe(before + 1);
		expect(await flags(run)).toEqual([]);
	});

	it("judges each call of a turn by its own arguments", async () => {
		const { run_id } = await externalRun(tenant);
		const made = turn(
			["order", "a", { to: "apples", amount: 1 }],
			["order", "b", { to: "apples", amount: 9 }],
			["plain", "c", {}],
			["order", "d", { to: "__proto__", amount: 1 }],
		);
		const { run } = await decide(tenant, run_id, made);
		expect(["a", "b", "c", "d"].map((id) => callOf(run, id).state)).toEqual([
			"COMPLETED",
			"REFUSED",
			"COMPLETED",
			"REFUSED",
		]);
	});

	it("is repaired by a model from its message, and shown to nobody who plans", async () => {
		const model = await script([
			calling([["order", "a", { to: "apples", amount: 7 }]]),
			calling([["order", "b", { to: "apples", amount: 2 }]]),
			answering("ordered"),
		]);
		const body = { goal: "order", planner: { kind: "openai", model } };
		const done = (await call("POST", "/v1/runs", body, tenant.operator, { prefer: "wait=20" })).body;
		expect(done).toMatchObject({ status: "completed", answer: "ordered" });
		expect([callOf(done, "a").state, callOf(done, "b").state]).toEqual(["REFUSED", "COMPLETED"]);
		const asked = JSON.stringify(await askedOf(model));
		expect(asked).toContain("only 3 left");
		expect(asked).not.toContain("hasOwn");
		const shown = (await call("GET", `/v1/runs/${done.run_id}/exposure`, undefined, tenant.operator)).text;
		expect(shown).toContain("order");
		expect(shown).not.toContain("hasOwn");
	});

	it("holds for scripted decisions, placeholders filled, and for their replay", async () => {
		const decisions = [
			turn(["order", "first", { to: "apples", amount: 1 }]),
			turn(
				["order_read", "a", { to: "x{{calls.first.result.status}}" }],
				["order_read", "b", { to: "con/c", amount: 1 }],
			),
			{ content: "done" },
		];
		const body = { goal: "order", planner: { kind: "scripted", script: decisions } };
		const sent = await call("POST", "/v1/runs", body, tenant.operator, { prefer: "wait=20" });
		expect(sent.body.status).toBe("completed");
		expect(callOf(sent.body, "a").refusal).toMatchObject({ reason: "semantic_failed" });
		expect(callOf(sent.body, "a").refusal.errors[0].error).toMatch(/^is not in stock: x2\d\d$/);
		expect(callOf(sent.body, "b").state).toBe("COMPLETED");
		const path = `/v1/runs/${sent.body.run_id}/replay`;
		const again = (await call("POST", path, { mode: "recorded" }, tenant.operator, { prefer: "wait=20" })).body;
		expect(callOf(again, "a").state).toBe("REFUSED");
		expect(callOf(again, "b")).toMatchObject({ state: "COMPLETED", source: "recorded" });
	});
});

describe("a check that does not come to an answer", () => {
	it.each([
		["endless", {}],
		["builtin_endless", {}],
		["throws", { text: "a secret" }],
		["silent", {}],
		["yes", {}],
		["waits", {}],
		["hungry", {}],
		["huge", {}],
	])("refuses in bounded time, and the run goes on: %s", async (tool, args) => {
		const run = await externalRun(tenant);
		const started = Date.now();
		const { call: refused, message } = await one(tool, args, run);
		expect(Date.now() - started).toBeLessThan(12_000);
		expect(refused).toMatchObject({ state: "REFUSED", refusal: { stage: "normalize", reason: "unavailable" } });
		expect(JSON.stringify(message)).not.toMatch(/secret|internal:|limit|promise/);
		expect(await flags(run)).toEqual(["semantic_check_failed"]);
		expect(await written(tool)).toBe(0);
		expect((await one("plain", {}, run)).call.state).toBe("COMPLETED");
	});

	it("refuses a turn full of them in bounded time", async () => {
		const { run_id } = await externalRun(tenant);
		const started = Date.now();
		const calls = Array.from(
			{ length: 64 },
			(_, n) => ["endless", `e${n}`, { q: String(n) }] as [string, string, unknown],
		);
		const { run } = await decide(tenant, run_id, turn(...calls));
		expect(Date.now() - started).toBeLessThan(20_000);
		expect(run.calls.every((one: Run) => one.state === "REFUSED")).toBe(true);
	});

	it("is for some arguments only where it fails for those only", async () => {
		expect((await one("throws", {})).call.state).toBe("COMPLETED");
	});
});

describe("a check that means harm", () => {
	it("finds no network, no host and nothing that an earlier run left", async () => {
		for (let n = 0; n < 3; n++) expect((await one("spy", { q: `${n}` })).message).toMatchObject({ status: "success" });
	});

	it("cannot flood a planner or write to its terminal", async () => {
		const { message } = await one("loud", {});
		expect(message.error.errors).toHaveLength(20);
		expect(message.error.errors[0].error).toHaveLength(500);
		expect(JSON.stringify(message)).not.toMatch(/\\u00[01]/);
	});

	it("gets `__proto__` arguments as plain data", async () => {
		const { call: done } = await one(
			"proto",
			'{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}',
		);
		expect(done.state).toBe("COMPLETED");
	});
});

describe("an approval", () => {
	it("is asked for only when the check holds, starts without another one, and is checked anew when it is edited", async () => {
		const ran = vi.spyOn(Executor.prototype, "runCode");
		const refused = await one("order_asked", { to: "apples", amount: 4 });
		expect([refused.call.state, refused.run.pending_approvals]).toEqual(["REFUSED", []]);
		const asked = await one("order_asked", { to: "apples", amount: 1 });
		expect(asked.call.state).toBe("AWAITING_APPROVAL");
		ran.mockClear();
		expect((await approve(tenant, asked.run.pending_approvals[0])).status).toBe(200);
		const done = await rested(tenant, asked.run.run_id, asked.run.seq);
		expect(done.calls.at(-1).state).toBe("COMPLETED");
		expect(ran).not.toHaveBeenCalled();

		const edit = async (amount: number, status = 200): Promise<Run> => {
			const again = await one("order_asked", { to: "apples", amount: 2 });
			const path = `/v1/approvals/${again.run.pending_approvals[0].approval_id}/edit`;
			const sent = await call("POST", path, { arguments: { to: "apples", amount } }, tenant.approver);
			expect(sent.status).toBe(status);
			if (status === 422) expect(sent.body.errors).toMatchObject([{ issue: "semantic_violation" }]);
			const { body } = await call("GET", `/v1/runs/${again.run.run_id}`, undefined, tenant.operator);
			return body;
		};
		const before = await written("order_asked");
		const bad = await edit(99, 422);
		expect(bad.pending_approvals).toMatchObject([{ status: "pending", arguments: { amount: 2 } }]);
		expect(bad.calls).toMatchObject([{ state: "AWAITING_APPROVAL", arguments: { amount: 2 } }]);
		const good = await edit(3);
		expect(good.calls.at(-1)).toMatchObject({ state: "AWAITING_APPROVAL", arguments: { to: "apples", amount: 3 } });
		expect(await written("order_asked")).toBe(before);
		ran.mockRestore();
	});
});

describe("while a check runs", () => {
	/** Holds the next check back until `meanwhile` has happened. */
	const during = (meanwhile: () => Promise<unknown>) => {
		const held = vi.spyOn(Executor.prototype, "runCode");
		held.mockImplementationOnce(async (request) => {
			await meanwhile();
			return executeCode(request);
		});
		return held;
	};

	it("a person may approve what another one is editing: the first word counts", async () => {
		const asked = await one("order_asked", { to: "apples", amount: 1 });
		const [approval] = asked.run.pending_approvals;
		const before = await written("order_asked");
		const held = during(async () => expect((await approve(tenant, approval)).status).toBe(200));
		const path = `/v1/approvals/${approval.approval_id}/edit`;
		const late = await call("POST", path, { arguments: { to: "apples", amount: 2 } }, tenant.approver);
		held.mockRestore();
		expect(late.status).toBe(409);
		await rested(tenant, asked.run.run_id, asked.run.seq);
		expect(await written("order_asked")).toBe(before + 1);
	});

	it("a run may be cancelled: nothing starts", async () => {
		const { run_id } = await externalRun(tenant);
		const before = await written("order");
		const held = during(() => call("POST", `/v1/runs/${run_id}/cancel`, {}, tenant.operator));
		const made = turn(["order", "a", { to: "apples", amount: 1 }]);
		const late = await call("POST", `/v1/runs/${run_id}/decisions`, made, tenant.operator);
		held.mockRestore();
		expect(late.status).toBe(409);
		expect(await written("order")).toBe(before);
	});

	it("the tool may be published with another check: that one speaks, and the call is never let through unchecked", async () => {
		const key = await ledgerTool(tenant, "moving", { ...FREE, ...js("return [];") });
		const { run_id } = await externalRun(tenant);
		const stricter = { ...FREE, ...js("return [{ field: '', message: 'closed today' }];"), version: "1.0.1" };
		// What the isolate knew of the registry was leased for some seconds: after a check control is asked anew.
		const held = during(() => ledgerTool(tenant, "moving", stricter));
		const { run } = await decide(tenant, run_id, turn(["moving", "a", {}]));
		held.mockRestore();
		expect(callOf(run, "a")).toMatchObject({ state: "REFUSED", refusal: { reason: "semantic_failed" } });
		expect(await ledger(key)).toEqual([]);
	});

	it("the run's principal may be revoked: the call that was checked does not start", async () => {
		const { run_id } = await externalRun(tenant);
		const before = await written("order");
		const { tenant_id } = tenant;
		const stub = env.AGENT_RUN.getByName(run_id);
		const principal_id = await runInDurableObject(stub, (_object, state) => {
			const { doc } = state.storage.sql.exec<{ doc: string }>("SELECT doc FROM run_request").one();
			return (JSON.parse(doc) as { principal: { principal_id: string } }).principal.principal_id;
		});
		// A stub belongs to the request that made it, and the check is one of its own.
		const control = () =>
			env.TENANT_CONTROL.getByName(tenant_id) as unknown as Record<
				"revoke" | "reinstate",
				(ask: object) => Promise<unknown>
			>;
		const held = during(() => control().revoke({ v: 1, tenant_id, principal_id }));
		const { run } = await decide(tenant, run_id, turn(["order", "a", { to: "apples", amount: 1 }]));
		held.mockRestore();
		await control().reinstate({ v: 1, tenant_id, principal_id });
		expect(callOf(run, "a")).toMatchObject({ state: "REFUSED", refusal: { reason: "policy_denied" } });
		expect(await written("order")).toBe(before);
	});

	it("two requests under one key are one decision", async () => {
		const { run_id } = await externalRun(tenant);
		const before = await written("order");
		const made = turn(["order", "a", { to: "apples", amount: 1 }]);
		const send = () => decide(tenant, run_id, made, tenant.operator, { "idempotency-key": "once" });
		const [first, second] = await Promise.all([send(), send()]);
		expect([first.run.calls.length, second.run.calls.length]).toEqual([1, 1]);
		expect(await written("order")).toBe(before + 1);
	});

	it("the sandbox may go away: the call is refused, and a tool can be registered all the same", async () => {
		const lost = vi.spyOn(Executor.prototype, "runCode");
		lost.mockImplementation(() => new Promise((_resolve, reject) => setTimeout(reject, 8_000)));
		const [{ call: refused }, key] = await Promise.all([
			one("order", { to: "apples", amount: 1 }),
			ledgerTool(tenant, "unseen", { ...FREE, ...js("not a program") }),
		]);
		lost.mockRestore();
		expect(refused.refusal.reason).toBe("unavailable");
		expect((await one("unseen", {})).call.refusal.reason).toBe("unavailable");
		expect(await ledger(key)).toEqual([]);
	});
});

describe("a run that calls no such tool", () => {
	it("asks the sandbox nothing", async () => {
		const ran = vi.spyOn(Executor.prototype, "runCode");
		expect((await one("plain", { to: "apples" })).call.state).toBe("COMPLETED");
		expect(ran).not.toHaveBeenCalled();
		expect((await one("order", { to: "apples", amount: 1 })).call.state).toBe("COMPLETED");
		expect(ran).toHaveBeenCalledTimes(1);
		ran.mockRestore();
	});
});

describe("registration", () => {
	const put = (tool_id: string, semantic_check: unknown) => {
		const input_schema = { type: "object", properties: { to: { type: "string" } } };
		const implementation = { kind: "builtin", name: "echo" };
		const described = {
			name: tool_id,
			version: "1.0.0",
			description: "Echoes. It does not write.",
			category: "compute",
		};
		const body = { tool_id, ...described, input_schema, implementation, semantic_check };
		return call("PUT", `/v1/tools/${tool_id}`, body, tenant.operator);
	};

	it("names the line of what does not compile, and runs nothing of it", async () => {
		const bad = await put("broken", {
			language: "javascript",
			source: "const errors = [];\nlet b = ;\nreturn errors;",
		});
		expect(bad.status).toBe(422);
		const [error] = bad.body.errors;
		expect(error.field).toBe("/semantic_check/source");
		expect(JSON.stringify(error)).toContain("line 2");
		expect((await call("GET", "/v1/tools/broken", undefined, tenant.operator)).status).toBe(404);
		expect((await put("never_run", { language: "javascript", source: "throw new Error(); for (;;) {}" })).status).toBe(
			201,
		);
	});

	it.each([
		["too long", { language: "javascript", source: `//${"x".repeat(16_383)}` }],
		["empty", { language: "javascript", source: "" }],
		["of another language", { language: "python", source: "[]" }],
		["with more members", { language: "javascript", source: "return [];", fuel: 1 }],
	])("refuses one that is %s", async (_name, check) => {
		const bad = await put("odd", check);
		expect(bad.status).toBe(422);
		expect(bad.body.errors[0].field).toMatch(/^\/semantic_check/);
	});

	it("is part of the definition: another check is another definition, and shows where descriptors are shown", async () => {
		const shown = (await call("GET", "/v1/tools/order", undefined, tenant.operator)).body;
		expect(shown.semantic_check.source).toBe(STOCK);
		const other = await put("hashed", { language: "javascript", source: "return [];" });
		const same = await put("hashed", { language: "javascript", source: "return [ ];" });
		expect([other.status, same.status]).toEqual([201, 409]);
	});
});
