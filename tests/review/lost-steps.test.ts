/** Attacks on what follows a step: a plan whose step fails, a recovery that fails, a back-off that a death interrupts. */
import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { answer, asked, calls, managedRun } from "../acceptance/provider.ts";
import {
	approve,
	decide,
	externalRun,
	getRun,
	ledger,
	ledgerTool,
	PAY,
	READ,
	type Run,
	rested,
	turn,
} from "../acceptance/tools.ts";
import { call, seedTenant, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	await ledgerTool(tenant, "pay", PAY);
});
const newModel = (): string => `m-${crypto.randomUUID()}`;
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
const stubOf = (run_id: string) => env.AGENT_RUN.getByName(run_id);
const sql = (run_id: string, text: string) =>
	runInDurableObject(stubOf(run_id), (_object, state) => {
		state.storage.sql.exec(text);
	});

describe("a planner's turn whose step fails", () => {
	it("ends the run at once with a code that says nothing of why, and does not leave it to its clock", async () => {
		const model = newModel();
		const waiting = await managedRun(tenant, model, [calls(["p", "pay", { to: "A", amount: 1 }]), answer("paid")]);
		expect(waiting.status).toBe("awaiting_approval");
		await sql(
			waiting.run_id,
			`CREATE TRIGGER broken BEFORE INSERT ON message WHEN NEW.doc LIKE '%"role":"assistant"%' BEGIN SELECT RAISE(ABORT, 'secret-of-the-run'); END`,
		);
		expect((await approve(tenant, waiting.pending_approvals[0])).status).toBe(200);
		const done = await rested(tenant, waiting.run_id, waiting.seq);
		expect(done).toMatchObject({ status: "failed", answer: null, error: { code: "planner_error" } });
		expect(JSON.stringify(done)).not.toContain("secret-of-the-run");
		expect(await asked(model)).toHaveLength(2);
	});
});

describe("an attempt whose last step fails", () => {
	/** Storage refuses the next `times` transactions of the run; says how many it has refused. */
	const refusing = async (run_id: string, times: number): Promise<() => number> => {
		let refused = 0;
		await runInDurableObject(stubOf(run_id), (_object, { storage }) => {
			const real = storage.transactionSync.bind(storage);
			storage.transactionSync = (work) => {
				if (refused === times) return real(work);
				refused += 1;
				throw new Error("secret-of-the-run");
			};
		});
		return () => refused;
	};
	const out = async (): Promise<Run> => {
		const run = await externalRun(tenant);
		const { length } = await ledger(`${tenant.tenant_id}-brief`);
		await decide(tenant, run.run_id, turn(["brief", "c1", {}]), tenant.operator, { prefer: "wait=0" });
		await expect.poll(async () => (await getRun(tenant, run.run_id)).calls[0].state).toBe("RUNNING");
		expect(await ledger(`${tenant.tenant_id}-brief`)).toHaveLength(length + 1);
		return { ...run, asked: length + 1 };
	};
	beforeAll(async () => {
		const url = `https://ledger.test/${tenant.tenant_id}-brief/slow?ms=700`;
		await ledgerTool(tenant, "brief", { implementation: { kind: "http", method: "POST", url } });
	});

	it("keeps its result: the step is tried again, the tool is not", async () => {
		const { run_id, asked: length } = await out();
		const refused = await refusing(run_id, 2);
		const done = await getRun(tenant, run_id, "", { prefer: "wait=8" });
		expect(refused()).toBe(2);
		expect(done.status).toBe("awaiting_decision");
		expect(done.calls).toMatchObject([{ state: "COMPLETED", attempts: [{ n: 1, outcome: "success" }] }]);
		expect(await ledger(`${tenant.tenant_id}-brief`)).toHaveLength(length);
	});

	it("is left to the watchdog where it keeps failing", async () => {
		const { run_id, asked: length } = await out();
		const refused = await refusing(run_id, 1_000);
		await pause(5_000);
		expect(refused()).toBe(4);
		expect((await getRun(tenant, run_id)).calls[0].state).toBe("RUNNING");
		// As after any death: a write that may have acted is unknown, and is not done again.
		await abortAllDurableObjects();
		await runDurableObjectAlarm(stubOf(run_id));
		expect((await getRun(tenant, run_id)).calls).toMatchObject([{ state: "OUTCOME_UNKNOWN" }]);
		expect(await ledger(`${tenant.tenant_id}-brief`)).toHaveLength(length);
	});
});

describe("a recovery that fails", () => {
	it("does not use up the platform's patience with the alarm: it rings again", async () => {
		const url = `https://ledger.test/${tenant.tenant_id}-slow/slow?ms=1500`;
		await ledgerTool(tenant, "slow", { ...READ, implementation: { kind: "http", method: "POST", url } });
		const run = await externalRun(tenant);
		await decide(tenant, run.run_id, turn(["slow", "c1", {}]), tenant.operator, { prefer: "wait=0" });
		await expect.poll(async () => (await ledger(`${tenant.tenant_id}-slow`)).length).toBe(1);
		await sql(run.run_id, "CREATE TRIGGER broken BEFORE INSERT ON step BEGIN SELECT RAISE(ABORT, 'no'); END");
		await evictDurableObject(stubOf(run.run_id));
		await runInDurableObject(stubOf(run.run_id), (_object, state) => state.storage.setAlarm(Date.now() + 60_000));
		await expect(runDurableObjectAlarm(stubOf(run.run_id))).resolves.toBe(true);
		const alarm = await runInDurableObject(stubOf(run.run_id), (_object, state) => state.storage.getAlarm());
		expect(alarm).toBeGreaterThan(Date.now());
		await sql(run.run_id, "DROP TRIGGER broken");
		await runDurableObjectAlarm(stubOf(run.run_id));
		await expect
			.poll(async () => (await getRun(tenant, run.run_id)).status, { timeout: 10_000 })
			.toBe("awaiting_decision");
	});
});

describe("a planner that waits for its next try", () => {
	it("is asked when its time has come, and once, whoever wakes the object before", async () => {
		const model = newModel();
		const turns = ["status:503", "status:503", answer("done"), answer("never")];
		await fetch(`https://planner.test/_script?key=${model}`, { method: "POST", body: JSON.stringify(turns) });
		const body = { goal: "x", planner: { kind: "openai", model } };
		const { run_id } = (await call("POST", "/v1/runs", body, tenant.operator)).body;
		await expect.poll(async () => (await asked(model)).length, { timeout: 10_000 }).toBe(2);
		await pause(200);
		// As if its provider had said to wait for a while.
		const next = Date.now() + 8_000;
		await sql(run_id, `UPDATE due SET at = ${next} WHERE kind = 'plan'`);
		await abortAllDurableObjects();
		expect((await getRun(tenant, run_id)).status).toBe("planning");
		await pause(1_000);
		expect(await asked(model)).toHaveLength(2);
		await abortAllDurableObjects();
		await runDurableObjectAlarm(stubOf(run_id));
		expect(Date.now()).toBeLessThan(next);
		expect(await asked(model)).toHaveLength(2);
		await abortAllDurableObjects();
		await pause(Math.max(0, next - Date.now()));
		await runDurableObjectAlarm(stubOf(run_id));
		const done = await rested(tenant, run_id, 0);
		expect(done).toMatchObject({ status: "completed", answer: "done" });
		expect(await asked(model)).toHaveLength(3);
	});
});
