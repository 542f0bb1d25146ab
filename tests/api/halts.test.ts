/** The kill switch over the API and in the control objects: who may use it, what it covers, and what it cannot be made to do. */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BREAKER_MEMORY_MS, HALT_MEMORY_MS, HALTS_OPEN_MAX, LEASE_TTL_MS } from "#core/limits.ts";
import type { Lease } from "#core/ports.ts";
import { type Halt, PLATFORM_OBJECT, type TenantControlApi } from "#objects/tenant-control/api.ts";
import { PlatformWord } from "#objects/tenant-control/platform-word.ts";
import { TenantControl } from "#objects/tenant-control/tenant-control.ts";
import { call, pluck, seedTenant, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
let other: TestTenant;
let platform: TestTenant;
beforeAll(async () => {
	platform = await seedTenant({ tenant_id: env.BELAY_PLATFORM_TENANT });
});
beforeEach(async () => {
	tenant = await seedTenant();
	other = await seedTenant();
});

const open = (scope: string, key: string, headers = {}) =>
	call("POST", "/v1/halts", { scope, reason: "it pays twice" }, key, headers);
const end = (halt_id: string, key: string) => call("DELETE", `/v1/halts/${halt_id}`, undefined, key);
const list = async (key: string) => (await call("GET", "/v1/halts", undefined, key)).body.data;
const stub = (tenant_id: string) => env.TENANT_CONTROL.getByName(tenant_id);
const control = (tenant_id: string) => stub(tenant_id) as unknown as TenantControlApi;
const lease = ({ tenant_id }: TestTenant): Promise<Lease> => control(tenant_id).lease({ v: 1, tenant_id });
/** Memory is lost; the tenant's next lease asks the platform again. */
async function forget(of: TestTenant): Promise<void> {
	await lease(of);
	await evictDurableObject(stub(of.tenant_id));
}

describe("halting", () => {
	it("opens, is leased at once, survives a restart, and ends once", async () => {
		const made = await open("tenant", tenant.operator);
		expect(made.status).toBe(201);
		const { halt_id, since } = made.body;
		expect(made.body).toEqual({
			halt_id: expect.stringMatching(/^halt_[0-9a-f]{32}$/),
			scope: "tenant",
			reason: "it pays twice",
			by: "usr_operator",
			since: expect.any(String),
			until: null,
		});
		await forget(tenant);
		expect((await lease(tenant)).halts).toEqual([{ scope: "tenant", since: Date.parse(since) }]);
		expect((await lease(other)).halts).toEqual([]);
		const ended = await end(halt_id, tenant.operator);
		expect(ended.status).toBe(200);
		const again = await end(halt_id, tenant.operator);
		expect(again.body).toEqual(ended.body);
		const { halts, halted } = await lease(tenant);
		expect(halts).toEqual([]);
		expect(halted).toEqual([{ scope: "tenant", since: Date.parse(since), until: Date.parse(ended.body.until) }]);
	});

	it("each halt stands until it is itself ended: nobody lifts a colleague's with their own", async () => {
		const first = (await open("tenant", tenant.operator)).body.halt_id;
		const second = (await open("tenant", tenant.operator)).body.halt_id;
		await end(second, tenant.operator);
		expect(pluck((await lease(tenant)).halts, "scope")).toEqual(["tenant"]);
		await end(first, tenant.operator);
		expect((await lease(tenant)).halts).toEqual([]);
		expect(pluck(await list(tenant.operator), "halt_id")).toEqual(expect.arrayContaining([first, second]));
	});

	it("a tool's covers that tool, and a misspelt one is refused instead of halting nothing", async () => {
		expect((await open("tool:echo", tenant.operator)).status).toBe(201);
		expect(pluck((await lease(tenant)).halts, "scope")).toEqual(["tool:echo"]);
		const misspelt = await open("tool:ecko", tenant.operator);
		expect(misspelt.status).toBe(422);
		expect(misspelt.body.errors[0]).toMatchObject({ field: "/scope", issue: "unknown_name" });
		for (const scope of ["", "tool:", "tool:a b", "everything", "Tenant", "all "])
			expect((await open(scope, tenant.operator)).status, scope).toBe(422);
		expect((await call("POST", "/v1/halts", { scope: "tenant", reason: "  " }, tenant.operator)).status).toBe(422);
	});

	it("stops a call that would have run", async () => {
		const key = crypto.randomUUID();
		const note = {
			tool_id: "note",
			name: "note",
			version: "1.0.0",
			description: "writes to the test ledger; does not read it",
			category: "data_retrieval",
			effect: "write",
			approval: { mode: "never" },
			input_schema: { type: "object", properties: {} },
			implementation: { kind: "http", method: "POST", url: `https://ledger.test/${key}/ok` },
		};
		expect((await call("PUT", "/v1/tools/note", note, tenant.operator)).status).toBe(201);
		expect((await open("tool:note", tenant.operator)).status).toBe(201);
		const run = await call("POST", "/v1/runs", { goal: "g", planner: { kind: "external" } }, tenant.agent);
		const asked = { id: "c1", type: "function", function: { name: "note", arguments: "{}" } };
		const path = `/v1/runs/${run.body.run_id}/decisions`;
		await call("POST", path, { content: null, tool_calls: [asked] }, tenant.agent, { prefer: "wait=1" });
		expect(await (await fetch(`https://ledger.test/_log?key=${key}`)).json()).toEqual([]);
		await call("POST", `/v1/runs/${run.body.run_id}/cancel`, {}, tenant.agent);
	});

	it("a repeated Idempotency-Key opens one halt, and does not open an ended one again", async () => {
		const headers = { "idempotency-key": "k1" };
		const first = await open("tenant", tenant.operator, headers);
		const second = await open("tenant", tenant.operator, headers);
		expect(second.body).toEqual(first.body);
		expect((await open("tool:echo", tenant.operator, headers)).status).toBe(409);
		await end(first.body.halt_id, tenant.operator);
		expect((await open("tenant", tenant.operator, headers)).body.until).not.toBeNull();
		expect((await lease(tenant)).halts).toEqual([]);
	});

	it("leaves two rows in the audit for each step, with the reason", async () => {
		const { halt_id } = (await open("tool:echo", tenant.operator)).body;
		await end(halt_id, tenant.operator);
		const query =
			"SELECT action, status, tool_id, input_params FROM audit WHERE tenant_id = ?1 AND action LIKE 'halt.%'";
		const { results } = await env.DB.prepare(query).bind(tenant.tenant_id).all<Record<string, string>>();
		const said = results.map(({ action, status, tool_id }) => `${action} ${status} ${tool_id}`).sort();
		expect(said).toEqual([
			"halt.end done echo",
			"halt.end started echo",
			"halt.open done echo",
			"halt.open started echo",
		]);
		for (const { input_params } of results) expect(input_params).toContain(halt_id);
		expect(JSON.stringify(results)).toContain("it pays twice");
	});
});

describe("who may", () => {
	it("people with halts:manage only: no agent whatever its roles, no service, no reader, no approver", async () => {
		const service = await call(
			"POST",
			"/v1/keys",
			{ principal_id: "svc", kind: "service", name: "svc", roles: ["agent_operator"] },
			tenant.operator,
		);
		const { halt_id } = (await open("tenant", tenant.operator)).body;
		for (const key of [tenant.agent, tenant.limited, service.body.key, tenant.reader, tenant.approver]) {
			expect((await open("tenant", key)).status).toBe(403);
			expect((await end(halt_id, key)).status).toBe(403);
			expect((await call("GET", "/v1/halts", undefined, key)).status).toBe(403);
		}
		expect(pluck((await lease(tenant)).halts, "scope")).toEqual(["tenant"]);
	});

	it("nobody sees or ends another tenant's halt, and trying leaves nothing in either audit", async () => {
		const { halt_id } = (await open("tenant", tenant.operator)).body;
		const foreign = await end(halt_id, other.operator);
		const guessed = await end(`halt_${"0".repeat(32)}`, other.operator);
		expect([foreign.status, guessed.status]).toEqual([404, 404]);
		expect((await end(halt_id, platform.operator)).status).toBe(404);
		expect(pluck(await list(other.operator), "halt_id")).not.toContain(halt_id);
		expect((await lease(tenant)).halts).toHaveLength(1);
		const query = "SELECT count(*) AS n FROM audit WHERE tenant_id = ?1 AND action = 'halt.end'";
		expect((await env.DB.prepare(query).bind(other.tenant_id).first<{ n: number }>())?.n).toBe(0);
	});
});

describe("everything", () => {
	it("is halted by the platform's people, for every tenant, and lifted by them alone", async () => {
		const made = await open("all", platform.operator);
		expect(made.status).toBe(201);
		const { halt_id } = made.body;
		await forget(tenant);
		expect(pluck((await lease(tenant)).halts, "scope")).toEqual(["tenant"]);
		// told why everything stands still, not who works for the platform
		const seen = (await list(tenant.operator)).find((one: Halt) => one.halt_id === halt_id);
		expect(seen).toMatchObject({ scope: "all", reason: "it pays twice", by: "platform", until: null });
		expect((await list(platform.operator)).find((one: Halt) => one.halt_id === halt_id).by).toBe("usr_operator");
		expect((await end(halt_id, tenant.operator)).status).toBe(403);
		expect((await end(halt_id, platform.agent)).status).toBe(403);
		expect((await end(halt_id, platform.operator)).body.until).not.toBeNull();
		await forget(tenant);
		expect((await lease(tenant)).halts).toEqual([]);
		expect((await lease(tenant)).halted).toEqual([
			expect.objectContaining({ scope: "tenant", until: expect.any(Number) }),
		]);
	});

	it("is refused to the operator of any other tenant, one that is called like the platform's object included", async () => {
		const namesake = await seedTenant({ tenant_id: PLATFORM_OBJECT });
		for (const key of [tenant.operator, namesake.operator]) {
			const refused = await open("all", key);
			expect(refused.status).toBe(403);
			expect(refused.body.code).toBe("forbidden");
		}
		// that tenant's own halt halts nobody else
		const own = await open("tenant", namesake.operator);
		expect(own.status).toBe(201);
		await forget(tenant);
		expect((await lease(tenant)).halts).toEqual([]);
		// nor can it end one of everything, which lies in the same object
		const everything = (await open("all", platform.operator)).body.halt_id;
		expect((await end(everything, namesake.operator)).status).toBe(403);
		expect(pluck(await control(PLATFORM_OBJECT).platformHalts({ v: 1 }), "until")).toContain(null);
		await end(everything, platform.operator);
		await end(own.body.halt_id, namesake.operator);
	});

	it("when the platform cannot be reached the last word stands, over a restart too, and nothing new is said", async () => {
		await runInDurableObject(stub(`tenant_${crypto.randomUUID()}`), async (_object, state) => {
			const { sql } = state.storage;
			let now = 1_000_000;
			let asked = 0;
			let answer: () => Promise<readonly Halt[]> = () => Promise.reject(new Error("away"));
			const ask = () => {
				asked += 1;
				return answer();
			};
			const word = () => new PlatformWord(sql, ask, () => now);
			const halt: Halt = { halt_id: "halt_x", scope: "all", reason: "r", by: "p", since: 1, until: null };
			const first = word();
			expect(await first.refresh()).toBe(false);
			expect(first.halts()).toEqual([]);
			answer = async () => [halt];
			now += LEASE_TTL_MS - 1;
			expect(await first.refresh()).toBe(false);
			expect(asked).toBe(1);
			now += 1;
			// a crowd asks once
			expect(await Promise.all([first.refresh(), first.refresh(), first.refresh()])).toEqual([true, true, true]);
			expect(asked).toBe(2);
			answer = () => Promise.reject(new Error("away"));
			now += LEASE_TTL_MS;
			expect(await first.refresh()).toBe(false);
			expect(first.halts()).toEqual([halt]);
			const restarted = word();
			expect(restarted.halts()).toEqual([halt]);
			expect(await restarted.refresh()).toBe(false);
			expect(restarted.halts()).toEqual([halt]);
			// silence is no word either, and holds nobody up for long
			answer = () => new Promise(() => {});
			now += LEASE_TTL_MS;
			expect(await restarted.refresh()).toBe(false);
			expect(restarted.halts()).toEqual([halt]);
			answer = async () => [];
			now += LEASE_TTL_MS;
			expect(await restarted.refresh()).toBe(true);
			expect(restarted.halts()).toEqual([]);
			// configured away: what was heard still stands
			sql.exec("INSERT OR REPLACE INTO platform_word VALUES (1, ?)", JSON.stringify([halt]));
			const silenced = new PlatformWord(sql, null, () => now);
			expect(await silenced.refresh()).toBe(false);
			expect(silenced.halts()).toEqual([halt]);
		});
	});
});

describe("the control object", () => {
	/** A new object over the same storage for every step: nothing that lives in memory survives. */
	async function steps(work: (at: (ms: number) => TenantControl) => Promise<void>): Promise<void> {
		await runInDurableObject(stub(`tenant_${crypto.randomUUID()}`), (_object, state) =>
			work((ms) => new TenantControl(state, { ...env, BELAY_PLATFORM_TENANT: "" }, () => ms)),
		);
	}
	const named = { v: 1 as const, tenant_id: "t" };
	const halt = (halt_id: string, scope = "tenant") => ({ ...named, halt_id, scope, reason: "r", by: "usr" });
	const ending = (halt_id: string) => ({ ...named, halt_id, of_platform: false });

	it("merges intervals in its lease and forgets them after the longest approval, open ones never", () =>
		steps(async (at) => {
			await at(1_000).openHalt(halt("h1"));
			await at(2_000).openHalt(halt("h2"));
			await at(3_000).endHalt(ending("h1"));
			await at(4_000).endHalt(ending("h2"));
			await at(5_000).openHalt(halt("h3", "tool:x"));
			const said = await at(6_000).lease();
			expect(said.halted).toEqual([
				{ scope: "tool:x", since: 5_000, until: null },
				{ scope: "tenant", since: 1_000, until: 4_000 },
			]);
			expect(said.halts).toEqual([{ scope: "tool:x", since: 5_000 }]);
			expect((await at(4_000 + HALT_MEMORY_MS).lease()).halted).toEqual([
				{ scope: "tool:x", since: 5_000, until: null },
			]);
		}));

	it("a lease that is held in memory lets go of what only time takes", () =>
		runInDurableObject(stub(`tenant_${crypto.randomUUID()}`), async (_object, state) => {
			let now = 1_000;
			const object = new TenantControl(state, { ...env, BELAY_PLATFORM_TENANT: "" }, () => now);
			await object.openHalt(halt("h1"));
			now = 2_000;
			await object.endHalt(ending("h1"));
			await object.breaker({ ...named, tool_id: "a", until: 2_000 });
			now += HALT_MEMORY_MS - 1;
			expect((await object.lease()).halted).toHaveLength(1);
			now += 600_000;
			expect(await object.lease()).toMatchObject({ halted: [], open_breakers: [], issued_at: now });
		}));

	it("a flood of tool halts is refused, leaves every one in the lease and never bars halting the tenant", () =>
		steps(async (at) => {
			const object = at(1_000);
			for (let n = 0; n < HALTS_OPEN_MAX; n++) await object.openHalt(halt(`h${n}`, `tool:t${n}`));
			expect(await object.openHalt(halt("more", "tool:more"))).toEqual({ ok: false, reason: "too_many" });
			expect((await object.openHalt(halt("all_of_it"))).ok).toBe(true);
			expect((await object.lease()).halts).toHaveLength(HALTS_OPEN_MAX + 1);
			expect(await object.halts()).toHaveLength(HALTS_OPEN_MAX + 1);
		}));

	it("an interval never ends before it began, whatever the clock does", () =>
		steps(async (at) => {
			await at(9_000).openHalt(halt("h1"));
			expect(await at(8_000).endHalt(ending("h1"))).toMatchObject({ since: 9_000, until: 9_000 });
		}));

	it("publishes open breakers durably, takes closed ones off, and drops those long past", () =>
		steps(async (at) => {
			await at(1_000).breaker({ ...named, tool_id: "a", until: 31_000 });
			await at(1_000).breaker({ ...named, tool_id: "b", until: 40_000 });
			expect((await at(2_000).lease()).open_breakers).toEqual([
				{ tool_id: "b", until: 40_000 },
				{ tool_id: "a", until: 31_000 },
			]);
			await at(3_000).breaker({ ...named, tool_id: "b", until: null });
			// half-open: still on the list, so that the next call asks the gate
			expect((await at(50_000).lease()).open_breakers).toEqual([{ tool_id: "a", until: 31_000 }]);
			expect((await at(31_000 + BREAKER_MEMORY_MS).lease()).open_breakers).toEqual([]);
		}));
});

describe("a revoked principal", () => {
	const make = (of: TestTenant, headers = {}) =>
		call("POST", "/v1/keys", { principal_id: "agt_again", kind: "agent", name: "again" }, of.operator, headers);
	const revoked = async (of: TestTenant) => (await lease(of)).revoked_principals.includes("agt_again");

	it("works again with a new key, and a repeat of the old request brings nobody back", async () => {
		const headers = { "idempotency-key": "k1" };
		const first = await make(tenant, headers);
		expect(first.status).toBe(201);
		await call("DELETE", `/v1/keys/${first.body.key_id}`, undefined, tenant.operator);
		expect(await revoked(tenant)).toBe(true);
		// the attack: whoever kept the request replays it
		await make(tenant, headers);
		expect(await revoked(tenant)).toBe(true);
		const before = (await lease(tenant)).policy_rev;
		expect((await make(tenant)).status).toBe(201);
		expect(await revoked(tenant)).toBe(false);
		expect((await lease(tenant)).policy_rev).toBeGreaterThan(before);
	});
});
