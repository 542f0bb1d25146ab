/** A life of the object ends in mid-work: what may be repeated is, what may not is unknown and said so (I9). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import {
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

const slow = (tool_id: string, ms: number) => ({
	implementation: {
		kind: "http",
		method: "POST",
		url: `https://ledger.test/${tenant.tenant_id}-${tool_id}/slow?ms=${ms}`,
	},
});
const until = (run_id: string, status: string) =>
	expect.poll(async () => (await getRun(tenant, run_id)).status, { timeout: 15_000 }).toBe(status);

/** Starts a call, waits until the upstream has it, and kills the object under it. */
async function killed(tool_id: string, more: Record<string, unknown>): Promise<{ run: Run; key: string }> {
	const key = await ledgerTool(tenant, tool_id, { ...slow(tool_id, 1500), ...more });
	const run = await externalRun(tenant);
	const before = (await ledger(key)).length;
	await decide(tenant, run.run_id, turn([tool_id, "c1", { text: "x" }]), tenant.operator, { prefer: "wait=0" });
	await expect.poll(async () => (await ledger(key)).length, { timeout: 5_000 }).toBe(before + 1);
	await abortAllDurableObjects();
	return { run, key };
}

describe("killed in mid-call", () => {
	it("an unkeyed write is unknown, executed once, and the run goes on", async () => {
		const { run, key } = await killed("write_once", {});
		await until(run.run_id, "awaiting_decision");
		const after = await getRun(tenant, run.run_id);
		expect(callOf(after, "c1")).toMatchObject({ state: "OUTCOME_UNKNOWN", error: { code: "outcome_unknown" } });
		const { messages } = (await call("GET", `/v1/runs/${run.run_id}/messages?turn=1`, undefined, tenant.operator)).body;
		expect(messageOf(messages)).toMatchObject({ status: "outcome_unknown" });
		expect(await ledger(key)).toHaveLength(1);
		const { data } = (await call("GET", `/v1/runs/${run.run_id}/evidence`, undefined, tenant.operator)).body;
		expect(data.at(-1)).toMatchObject({
			outcome: "unknown",
			does_not_prove: ["that the effect happened", "that it did not happen"],
		});
		// A person settles it; an agent may not.
		const path = `/v1/runs/${run.run_id}/calls/${callOf(after, "c1").tool_call_id}/outcome`;
		const word = { outcome: "happened", result: { seen: true }, reason: "the ledger shows it" };
		expect([403, 404]).toContain((await call("POST", path, word, tenant.agent)).status);
		const settled = await call("POST", path, word, tenant.operator);
		expect(settled.status).toBe(200);
		expect(callOf(settled.body, "c1")).toMatchObject({ state: "COMPLETED", result: { seen: true } });
		expect((await call("POST", path, word, tenant.operator)).status).toBe(409);
		expect((await call("GET", `/v1/runs/${run.run_id}/evidence/verify`, undefined, tenant.operator)).body.valid).toBe(
			true,
		);
	});

	it("a read is done again and completes, with both attempts on record", async () => {
		const { run, key } = await killed("read_again", READ);
		await until(run.run_id, "awaiting_decision");
		const found = callOf(await getRun(tenant, run.run_id), "c1");
		expect(found).toMatchObject({ state: "COMPLETED" });
		expect(found.attempts).toHaveLength(2);
		expect(await ledger(key)).toHaveLength(2);
	});

	it("a keyed write is repeated with the same Idempotency-Key", async () => {
		const { run, key } = await killed("keyed", { idempotency: { mode: "key" } });
		await until(run.run_id, "awaiting_decision");
		expect(callOf(await getRun(tenant, run.run_id), "c1").state).toBe("COMPLETED");
		const keys = (await ledger(key)).map((entry) => entry.headers["idempotency-key"]);
		expect(keys).toHaveLength(2);
		expect(new Set(keys).size).toBe(1);
		expect(keys[0]).toBe(callOf(await getRun(tenant, run.run_id), "c1").tool_call_id);
	});

	it("D09: the alarm may ring twice, and storage wins over corrupted memory", async () => {
		const { run, key } = await killed("alarmed", {});
		const stub = env.AGENT_RUN.getByName(run.run_id);
		await runDurableObjectAlarm(stub);
		await runDurableObjectAlarm(stub);
		await until(run.run_id, "awaiting_decision");
		expect(await ledger(key)).toHaveLength(1);
		const kept = await runInDurableObject(
			stub,
			(_object, state) => state.storage.sql.exec("SELECT count(*) AS n FROM call").one().n,
		);
		expect(kept).toBe(1);
	});
});

describe("time", () => {
	it("a turn that runs out ends its calls by class and goes on with what it has", async () => {
		await ledgerTool(tenant, "too_slow", { ...slow("too_slow", 5_000), ...READ });
		const key = await ledgerTool(tenant, "slow_write", slow("slow_write", 5_000));
		await ledgerTool(tenant, "quick", READ);
		const limits = { turn_timeout_ms: 1_200 };
		const run = await externalRun(tenant, { limits });
		const turned = await decide(
			tenant,
			run.run_id,
			turn(["too_slow", "c1", {}], ["slow_write", "c2", {}], ["quick", "c3", {}]),
			tenant.operator,
			{ prefer: "wait=20" },
		);
		const states = ["c1", "c2", "c3"].map((id) => callOf(turned.run, id).state);
		expect(states).toEqual(["TIMEOUT", "OUTCOME_UNKNOWN", "COMPLETED"]);
		expect(await ledger(key)).toHaveLength(1);
		expect(turned.run.status).toBe("awaiting_decision");
	});

	it("D07: turns are counted across restarts, and their end is no completion", async () => {
		const run = await externalRun(tenant, { limits: { turns: 2 } });
		await decide(tenant, run.run_id, turn(["quick", "c1", {}]));
		await abortAllDurableObjects();
		const last = await decide(tenant, run.run_id, turn(["quick", "c2", {}]));
		expect(last.run).toMatchObject({ status: "failed", answer: null, error: { code: "turn_limit" } });
		const more = await call("POST", `/v1/runs/${run.run_id}/decisions`, turn(["quick", "c3", {}]), tenant.operator);
		expect([more.status, more.body.code]).toEqual([409, "not_awaiting_decision"]);
	});

	it("cancel stops what waits and lets what is out report", async () => {
		const key = await ledgerTool(tenant, "cancelled_write", slow("cancelled_write", 600));
		const run = await externalRun(tenant);
		await decide(tenant, run.run_id, turn(["cancelled_write", "c1", {}]), tenant.operator, { prefer: "wait=0" });
		await expect.poll(async () => (await ledger(key)).length).toBe(1);
		const cancelled = await call("POST", `/v1/runs/${run.run_id}/cancel`, undefined, tenant.operator);
		expect(cancelled.body).toMatchObject({ status: "cancelled" });
		await expect
			.poll(async () => callOf(await getRun(tenant, run.run_id), "c1").state, { timeout: 5_000 })
			.toMatch(/OUTCOME_UNKNOWN|COMPLETED/);
		expect((await call("POST", `/v1/runs/${run.run_id}/cancel`, undefined, tenant.operator)).status).toBe(409);
	});
});

describe("judged again at the start", () => {
	it("an approval of a tool that was published anew or taken offline since does not start", async () => {
		for (const change of ["publish", "delete"] as const) {
			const tool_id = `judged_${change}`;
			const key = await ledgerTool(tenant, tool_id, { approval: { mode: "always" } });
			const run = await externalRun(tenant);
			const turned = await decide(tenant, run.run_id, turn([tool_id, "c1", { text: "x" }]));
			if (change === "publish")
				await ledgerTool(tenant, tool_id, {
					approval: { mode: "always" },
					version: "1.0.1",
					description: "It writes elsewhere now.",
				});
			else expect((await call("DELETE", `/v1/tools/${tool_id}`, undefined, tenant.operator)).status).toBeLessThan(300);
			const { tool_call_id, input_hash, approval_id } = turned.pending_approvals[0];
			const answer = await call(
				"POST",
				`/v1/approvals/${approval_id}/decision`,
				{ decision: "approve", tool_id, tool_call_id, input_hash },
				tenant.approver,
			);
			expect([answer.status, answer.body.code]).toEqual([409, "approval_superseded"]);
			const after = await rested(tenant, run.run_id, turned.run.seq);
			expect(callOf(after, "c1")).toMatchObject({ state: "REFUSED", refusal: { reason: "definition_changed" } });
			expect(await ledger(key)).toHaveLength(0);
		}
	});
});
