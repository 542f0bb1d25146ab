/** What one governed call costs in rows, which is what a deployment pays for: a ratchet, so that it only falls. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, it } from "vitest";
import { D1EvidenceLedger } from "#adapters/d1/d1-evidence-ledger.ts";
import { seedTenant, type TestTenant } from "../support/client.ts";
import { decide, externalRun, ledgerTool, READ, turn } from "./tools.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	await ledgerTool(tenant, "quick", READ);
});

it("a call that is allowed writes four rows to its run's storage, indexes counted", async () => {
	const run = await externalRun(tenant);
	await decide(tenant, run.run_id, turn(["quick", "a", {}]));
	const written: Record<string, number> = {};
	await runInDurableObject(env.AGENT_RUN.getByName(run.run_id), (_object, state) => {
		const { sql } = state.storage;
		const exec = sql.exec.bind(sql);
		sql.exec = ((query: string, ...binds: unknown[]) => {
			const cursor = exec(query, ...binds);
			const [, table] = /^(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)/.exec(query) ?? [];
			if (table !== undefined) written[table] = (written[table] ?? 0) + cursor.rowsWritten;
			return cursor;
		}) as typeof sql.exec;
	});
	await decide(tenant, run.run_id, turn(["quick", "b", {}]));
	expect(written).toEqual({ step: 2, call: 2 });
});

it("its evidence writes two rows to D1", async () => {
	let rows = 0;
	const counting = {
		prepare: (query: string) => env.DB.prepare(query),
		batch: async (statements: D1PreparedStatement[]) => {
			const results = await env.DB.batch(statements);
			for (const { meta } of results) rows += meta.rows_written;
			return results;
		},
	} as unknown as D1Database;
	const ledger = new D1EvidenceLedger(() => counting);
	const batch = (calls: number, run_seq: number) => ledgerBatch(tenant.tenant_id, calls, run_seq);
	await ledger.append(batch(0, 1));
	rows = 0;
	await ledger.append(batch(0, 50));
	const without = rows;
	rows = 0;
	await ledger.append(batch(10, 100));
	expect((rows - without) / 10).toBe(2);
});

/** What a flush sends for so many calls of one run. */
function ledgerBatch(tenant_id: string, calls: number, run_seq: number): Parameters<D1EvidenceLedger["append"]>[0] {
	const at = new Date(0).toISOString();
	const run_id = `run_${"0".repeat(32)}`;
	const ids = { run_id, session_id: "sess_1", principal_id: "usr_1", trace_id: "0".repeat(32) };
	const seqs = Array.from({ length: calls }, (_, n) => n + 1);
	return {
		tenant_id,
		run: {
			...ids,
			status: "awaiting_decision",
			goal: "",
			planner_kind: "external",
			seq: run_seq,
			created_at: at,
			updated_at: at,
		},
		approvals: [],
		evidence: seqs.map((seq) => ({
			evidence_id: `ev_${seq}`,
			run_id,
			seq,
			tool_call_id: `call_${seq}`,
			tool_id: "quick",
			outcome: "success",
			input_hash: "",
			hash: "",
			at,
		})),
		audit: seqs.map((seq) => ({
			...ids,
			seq,
			at,
			tool_id: "quick",
			action: "call.success",
			input_params: {},
			duration_ms: 1,
			permission_decision: "allow",
			security_flags: [],
			status: "COMPLETED",
		})),
	};
}
