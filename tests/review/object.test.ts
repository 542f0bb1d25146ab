/** Attacks on the run object: repeated requests at once, people who are gone, places that nobody gives back, bad timers. */

import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { call as callShape } from "#core/run/view.ts";
import type { AgentRunApi } from "#objects/agent-run/api.ts";
import { DEVELOPMENT_PRINCIPALS } from "../../ops/seed/seed.ts";
import { decide, externalRun, getRun, ledgerTool, PAY, READ, type Run, turn } from "../acceptance/tools.ts";
import { call, seedTenant, send, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	await ledgerTool(tenant, "pay", PAY);
	await ledgerTool(tenant, "slow", { ...READ, implementation: slow(1_500) });
	await ledgerTool(tenant, "quick", READ);
});
const slow = (ms: number) => ({
	kind: "http",
	method: "POST",
	url: `https://ledger.test/${tenant.tenant_id}-slow/slow?ms=${ms}`,
	auth: { type: "none" },
});
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

describe("one Idempotency-Key, two requests at once", () => {
	it("is one decision, and both get its answer", async () => {
		const run = await externalRun(tenant);
		const path = `/v1/runs/${run.run_id}/decisions`;
		const body = turn(["no_such_tool", "c1", {}]);
		const both = await Promise.all(
			[1, 2, 3].map(() => call("POST", path, body, tenant.operator, { "idempotency-key": "k1" })),
		);
		expect(both.map((answer) => answer.status)).toEqual([200, 200, 200]);
		expect((await getRun(tenant, run.run_id)).calls).toHaveLength(1);
	});
	it("is one message", async () => {
		const run = await externalRun(tenant);
		await decide(tenant, run.run_id, turn(["pay", "c1", { to: "A" }]));
		const path = `/v1/runs/${run.run_id}/messages`;
		const said = await Promise.all(
			Array.from({ length: 20 }, () =>
				call("POST", path, { content: "again" }, tenant.operator, { "idempotency-key": "k1" }),
			),
		);
		// Sixteen messages may wait: twenty that are one are taken, twenty that count are not.
		expect(said.map((answer) => answer.status)).toEqual(Array.from({ length: 20 }, () => 200));
	});
});

describe("a decision by a Worker of an earlier version", () => {
	it("is answered in the form that it knows", async () => {
		const { run_id, principal_id = "usr_operator" } = await externalRun(tenant);
		const { kind, name } = DEVELOPMENT_PRINCIPALS.operator;
		const authority = { policy_rev: 0, roles: [], permissions: [], tools: [], data_scope: "own" as const };
		const caller = { tenant_id: tenant.tenant_id, principal_id, kind, name, authority };
		const stub = env.AGENT_RUN.getByName(run_id) as unknown as AgentRunApi;
		const ask = { v: 1, caller, decision: { content: "done" }, wait_ms: 0, idempotency_key: null } as const;
		expect(await stub.decide(ask as never)).toMatchObject({
			ok: true,
			value: { run: { run_id, status: "completed" } },
		});
	});
});

describe("a refused decision", () => {
	it("leaves its Idempotency-Key unused", async () => {
		const run = await externalRun(tenant);
		const path = `/v1/runs/${run.run_id}/decisions`;
		const ask = () => call("POST", path, { content: "  " }, tenant.operator, { "idempotency-key": "k2" });
		expect((await ask()).body).toMatchObject({ status: 422, code: "empty_decision" });
		expect((await ask()).body).toMatchObject({ status: 422, code: "empty_decision" });
	});
});

describe("a call's view", () => {
	it("shows what the contract names and nothing of the machine's own", async () => {
		const run = await externalRun(tenant);
		const { run: after } = await decide(tenant, run.run_id, turn(["pay", "c1", { to: "A" }]));
		const [shown] = after.calls;
		expect(Object.keys(shown).filter((name) => !Object.hasOwn(callShape.shape, name))).toEqual([]);
	});

	it("is of the same calls when the object has been evicted, an edited one included", async () => {
		const run = await externalRun(tenant);
		const reads = Array.from({ length: 55 }, (_, n): [string, string, unknown] => ["quick", `c${n}`, { q: String(n) }]);
		const { run: waiting } = await decide(tenant, run.run_id, turn(["pay", "c", { to: "A" }], ...reads));
		const [approval] = waiting.pending_approvals;
		const edited = await call(
			"POST",
			`/v1/approvals/${approval.approval_id}/edit`,
			{ arguments: { to: "B" } },
			tenant.approver,
		);
		expect(edited.status).toBe(200);
		const before = (await getRun(tenant, run.run_id)).calls;
		await evictDurableObject(env.AGENT_RUN.getByName(run.run_id));
		expect((await getRun(tenant, run.run_id)).calls).toEqual(before);
		expect(before.map((one: Run) => one.provider_call_id)).toContain("c");
	});
});

describe("the link of a person who was revoked", () => {
	it("decides nothing", async () => {
		const run = await externalRun(tenant);
		const turned = await decide(tenant, run.run_id, turn(["pay", "c1", { to: "A" }]));
		const { approval_id } = turned.pending_approvals[0] as Run;
		const { principal_id, kind, name } = DEVELOPMENT_PRINCIPALS.approver;
		const stub = env.AGENT_RUN.getByName(run.run_id) as unknown as AgentRunApi;
		const authority = { policy_rev: 0, roles: [], permissions: [], tools: [], data_scope: "own" } as const;
		const reply = await stub.issueLink({
			v: 1,
			tenant_id: tenant.tenant_id,
			approval_id,
			approver: {
				tenant_id: tenant.tenant_id,
				principal_id,
				kind,
				name,
				authority: { ...authority, roles: [], permissions: [], tools: [] },
			},
			view_only: false,
		});
		if (!reply.ok) throw new Error("no link");
		const { token } = reply.value;
		const html = (await call("GET", `/a/${token}`)).text;
		const csrf = /name="csrf" value="([^"]+)"/.exec(html)?.[1] ?? "";
		const control = env.TENANT_CONTROL.getByName(tenant.tenant_id) as unknown as {
			revoke(ask: object): Promise<unknown>;
			reinstate(ask: object): Promise<unknown>;
		};
		await control.revoke({ v: 1, tenant_id: tenant.tenant_id, principal_id });
		const posted = await send(
			new Request(`https://belay.test/a/${token}`, {
				method: "POST",
				headers: { "content-type": "application/x-www-form-urlencoded", origin: "https://belay.test" },
				body: new URLSearchParams({ csrf, decision: "approve" }).toString(),
			}),
		);
		await control.reinstate({ v: 1, tenant_id: tenant.tenant_id, principal_id });
		expect(posted.status).toBe(403);
		expect((await getRun(tenant, run.run_id)).pending_approvals).toHaveLength(1);
	});
});

describe("a timer that cannot be served", () => {
	it("bars no other one, and the alarm is set again", async () => {
		const run = await externalRun(tenant);
		const stub = env.AGENT_RUN.getByName(run.run_id);
		await pause(1_500);
		await runInDurableObject(stub, async (_object, state) => {
			state.storage.sql.exec("INSERT OR REPLACE INTO due VALUES ('no_such_kind', 'x', 1)");
			state.storage.sql.exec("INSERT OR REPLACE INTO due VALUES ('start', 'call_x', 2)");
			await state.storage.setAlarm(Date.now() + 60_000);
		});
		await evictDurableObject(stub);
		await runDurableObjectAlarm(stub).catch(() => undefined);
		const left = await runInDurableObject(stub, async (_object, state) => ({
			kinds: state.storage.sql
				.exec<{ kind: string }>("SELECT kind FROM due")
				.toArray()
				.map((row) => row.kind),
			alarm: await state.storage.getAlarm(),
		}));
		await runInDurableObject(stub, (_object, state) => {
			state.storage.sql.exec("DELETE FROM due WHERE kind = 'no_such_kind'");
		});
		await evictDurableObject(stub);
		expect(left.kinds).not.toContain("start");
		expect(left.alarm).toBeGreaterThan(Date.now());
	});
});

describe("places of a concurrency class", () => {
	const three = async (): Promise<Run[]> => {
		const runs = await Promise.all([1, 2, 3].map(() => externalRun(tenant)));
		const four = turn(...[1, 2, 3, 4].map((n): [string, string, unknown] => ["slow", `c${n}`, { q: String(n) }]));
		for (const run of runs) await decide(tenant, run.run_id, four, tenant.operator, { prefer: "wait=0" });
		return runs;
	};
	const waiting = async (runs: Run[]): Promise<number> => {
		const now = await Promise.all(runs.map((run) => getRun(tenant, run.run_id)));
		return now.flatMap((run) => run.calls as Run[]).filter((one) => one.state === "PENDING").length;
	};
	it("are not kept by calls that were taken back while they waited", async () => {
		const runs = await three();
		expect(await waiting(runs)).toBe(2);
		await call("POST", `/v1/runs/${(runs[2] as Run).run_id}/cancel`, {}, tenant.operator);
		await pause(2_500);
		const again = await three();
		expect(await waiting(again)).toBe(2);
		await pause(2_500);
		expect(await waiting(again)).toBe(0);
	});
	it("are handed on to a call of another run at once, not when its timer looks again", async () => {
		const many = async (n: number): Promise<Run> => {
			const run = await externalRun(tenant);
			const calls = Array.from({ length: n }, (_, at): [string, string, unknown] => ["slow", `c${at}`, { q: "x" }]);
			await decide(tenant, run.run_id, turn(...calls), tenant.operator, { prefer: "wait=0" });
			return run;
		};
		const began = Date.now();
		await many(4);
		await many(4);
		await many(2);
		const last = await many(1);
		expect(await waiting([last])).toBe(1);
		const done = await getRun(tenant, last.run_id, "", { prefer: "wait=15" });
		const started = Date.parse(done.calls[0].attempts[0].started_at) - began;
		expect(started).toBeLessThan(4_500);
	});
});

describe("a call in a deployment whose tools cannot be set up", () => {
	it("does not say that it runs: nothing was invoked", async () => {
		const run = await externalRun(tenant);
		const stub = env.AGENT_RUN.getByName(run.run_id);
		const configure = (datasets: string) =>
			runInDurableObject(stub, (object) => {
				const { env: own } = object as unknown as { env: { BELAY_DATASETS: string } };
				const before = own.BELAY_DATASETS;
				own.BELAY_DATASETS = datasets;
				return before;
			});
		const before = await configure("{");
		await decide(tenant, run.run_id, turn(["quick", "c1", {}]), tenant.operator, { prefer: "wait=0" });
		await pause(200);
		await configure(before);
		const { calls } = await getRun(tenant, run.run_id);
		expect(calls.map((one: Run) => one.state)).toEqual(["DISPATCHED"]);
	});
});
