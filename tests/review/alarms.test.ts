/** The one alarm: set whenever something must ring, also for timers that nobody stores, and gone when nothing must. */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, it } from "vitest";
import { decide, externalRun, getRun, ledger, ledgerTool, READ, turn } from "../acceptance/tools.ts";
import { call, seedTenant, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	await ledgerTool(tenant, "quick", READ);
	const url = `https://ledger.test/${tenant.tenant_id}-slow/slow?ms=1500`;
	await ledgerTool(tenant, "slow", { ...READ, implementation: { kind: "http", method: "POST", url } });
});
const stubOf = (run_id: string) => env.AGENT_RUN.getByName(run_id);
const alarmOf = (run_id: string) => runInDurableObject(stubOf(run_id), (_object, state) => state.storage.getAlarm());
const sql = (run_id: string, ...texts: string[]) =>
	runInDurableObject(stubOf(run_id), (_object, state) => {
		for (const text of texts) state.storage.sql.exec(text);
	});

it("looks after a call that is out, although nothing of it is in the table of timers", async () => {
	const run = await externalRun(tenant, { limits: { turn_timeout_ms: 20_000 } });
	await decide(tenant, run.run_id, turn(["slow", "c1", {}]), tenant.operator, { prefer: "wait=0" });
	await sql(run.run_id, "DELETE FROM due");
	await abortAllDurableObjects();
	const at = await alarmOf(run.run_id);
	expect(at).not.toBeNull();
	// Nobody asks for the run: the alarm alone brings it to its end.
	await runDurableObjectAlarm(stubOf(run.run_id));
	await expect
		.poll(async () => (await ledger(`${tenant.tenant_id}-slow`)).length, { timeout: 10_000 })
		.toBeGreaterThan(1);
	await expect
		.poll(async () => (await getRun(tenant, run.run_id)).status, { timeout: 10_000 })
		.toBe("awaiting_decision");
});

it("rings a bounded number of times for a run at rest, and never again", async () => {
	const run = await externalRun(tenant);
	for (const id of ["a", "b", "c"]) await decide(tenant, run.run_id, turn(["quick", id, {}]));
	await new Promise((done) => setTimeout(done, 6_500));
	let rings = 0;
	while (rings < 10 && (await runDurableObjectAlarm(stubOf(run.run_id)))) rings += 1;
	expect(rings).toBeLessThan(3);
	expect(await alarmOf(run.run_id)).toBeNull();
});

/** Counts what is asked of the run's alarm from now on. */
async function counted(run_id: string): Promise<{ set: number; deleted: number }> {
	const count = { set: 0, deleted: 0 };
	await runInDurableObject(stubOf(run_id), (_object, { storage }) => {
		const [set, drop] = [storage.setAlarm.bind(storage), storage.deleteAlarm.bind(storage)];
		storage.setAlarm = (...args) => {
			count.set += 1;
			return set(...args);
		};
		storage.deleteAlarm = (...args) => {
			count.deleted += 1;
			return drop(...args);
		};
	});
	return count;
}

it("is gone once a finished run has nothing left to do, and is not touched by the calls before", async () => {
	const run = await externalRun(tenant);
	await decide(tenant, run.run_id, turn(["quick", "a", {}]));
	const count = await counted(run.run_id);
	for (const id of ["b", "c", "d"]) await decide(tenant, run.run_id, turn(["quick", id, {}]));
	await new Promise((done) => setTimeout(done, 1_500));
	await decide(tenant, run.run_id, turn(["quick", "e", {}]));
	expect(count).toEqual({ set: 0, deleted: 0 });
	expect(await alarmOf(run.run_id)).not.toBeNull();
	expect((await decide(tenant, run.run_id, { content: "done" })).run.status).toBe("completed");
	// Its last rows still have to reach D1.
	expect(await alarmOf(run.run_id)).not.toBeNull();
	await expect.poll(() => alarmOf(run.run_id), { timeout: 6_000 }).toBeNull();
	expect(count).toEqual({ set: 0, deleted: 1 });
	expect(await runDurableObjectAlarm(stubOf(run.run_id))).toBe(false);
});

it("is set again for a finished run that goes on", async () => {
	const run = await externalRun(tenant);
	await decide(tenant, run.run_id, { content: "done" });
	await expect.poll(() => alarmOf(run.run_id), { timeout: 6_000 }).toBeNull();
	await call("POST", `/v1/runs/${run.run_id}/messages`, { content: "and b?" }, tenant.operator);
	await decide(tenant, run.run_id, turn(["quick", "c1", {}]));
	expect(await alarmOf(run.run_id)).toBeGreaterThan(Date.now());
});

it("an object of an earlier version goes on: its timers of old are not taken for new", async () => {
	const run = await externalRun(tenant);
	await decide(tenant, run.run_id, turn(["quick", "a", {}]));
	await sql(run.run_id, "INSERT INTO due VALUES ('watchdog', 'call_gone', 1), ('clock', '', 1)");
	await abortAllDurableObjects();
	const turned = await decide(tenant, run.run_id, turn(["quick", "b", {}], ["quick", "c", {}]));
	expect(turned.run.calls.map((one: { state: string }) => one.state)).toEqual(["COMPLETED", "COMPLETED"]);
	expect((await getRun(tenant, run.run_id)).calls).toHaveLength(3);
	await new Promise((done) => setTimeout(done, 2_500));
	let rings = 0;
	while (rings < 10 && (await runDurableObjectAlarm(stubOf(run.run_id)))) rings += 1;
	expect(rings).toBeLessThan(3);
	expect(await alarmOf(run.run_id)).toBeNull();
});
