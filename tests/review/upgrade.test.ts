/** A run whose tables an earlier version made: it wakes, nothing of it is lost, and it goes on. */
import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, it } from "vitest";
import { decide, externalRun, getRun, ledgerTool, READ, type Run, turn } from "../acceptance/tools.ts";
import { call, seedTenant, type TestTenant, worker } from "../support/client.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	await ledgerTool(tenant, "quick", READ);
});

/** Longer than a row held, so its entry lay in parts. */
const LONG = "x".repeat(261_900);
const PART_CHARS = 262_144;

type Step = { from: number; at: string; entries: { event: string; data: object; audit: object | null }[] };

/** The log as it lay until 2026-11-29: a row for each entry. */
function ofOld(sql: SqlStorage, run_id: string): void {
	const rows = sql.exec<{ doc: string }>("SELECT doc FROM step ORDER BY seq").toArray();
	const whole = (doc: string): string =>
		doc.startsWith("§")
			? sql
					.exec<{ data: string }>("SELECT data FROM body WHERE owner = ? ORDER BY part", doc.slice(1))
					.toArray()
					.map(({ data }) => JSON.parse(data))
					.join("")
			: doc;
	const steps = rows.map(({ doc }): Step => JSON.parse(whole(doc)));
	sql.exec("DELETE FROM body WHERE owner LIKE 'step:%'");
	sql.exec("DROP TABLE step");
	sql.exec(
		"CREATE TABLE log (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, event TEXT NOT NULL, doc TEXT NOT NULL, audit TEXT)",
	);
	for (const { from, at, entries } of steps)
		for (const [n, { event, data, audit }] of entries.entries()) {
			const seq = from + n;
			let doc = JSON.stringify({ seq, at, run_id, ...data });
			if (doc.length > PART_CHARS) {
				for (let part = 0; part * PART_CHARS < doc.length; part++)
					sql.exec(
						"INSERT INTO body VALUES (?, ?, ?)",
						`log:${seq}`,
						part,
						JSON.stringify(doc.slice(part * PART_CHARS, (part + 1) * PART_CHARS)),
					);
				doc = `§log:${seq}`;
			}
			sql.exec(
				"INSERT INTO log VALUES (?, ?, ?, ?, ?)",
				seq,
				at,
				event,
				doc,
				audit === null ? null : JSON.stringify(audit),
			);
		}
}

/** The calls as they lay before that, under another key. */
function callsOfOld(sql: SqlStorage): void {
	sql.exec(
		"CREATE TABLE old (tool_call_id TEXT PRIMARY KEY, ordinal INTEGER NOT NULL, turn INTEGER NOT NULL, state TEXT NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID",
	);
	sql.exec("INSERT INTO old SELECT tool_call_id, ordinal, turn, state, doc FROM call");
	sql.exec("DROP TABLE call");
	sql.exec("ALTER TABLE old RENAME TO call");
	sql.exec("CREATE INDEX call_by_turn ON call (turn, ordinal)");
}

const tablesOf = (run_id: string): Promise<string[]> =>
	runInDurableObject(env.AGENT_RUN.getByName(run_id), (_object, state) =>
		state.storage.sql
			.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'")
			.toArray()
			.map(({ name }) => name),
	);
const get = async (path: string): Promise<Run> => (await call("GET", path, undefined, tenant.operator)).body;

/** The events so far, as their frames' data. */
async function events(run_id: string, last: number): Promise<unknown[]> {
	const answer = await worker.fetch(
		new Request(`https://belay.test/v1/runs/${run_id}/events`, {
			headers: { authorization: `Bearer ${tenant.operator}` },
		}),
	);
	const reader = (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
	let text = "";
	while (!new RegExp(`^id: ${last}$`, "m").test(text) || !text.endsWith("\n\n"))
		text += (await reader.read()).value ?? "";
	await reader.cancel();
	return [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data ?? ""));
}

it("keeps calls, evidence, events and the audit of a run from before the log had a row per step", async () => {
	const run = await externalRun(tenant);
	const { run_id } = run;
	await decide(tenant, run_id, turn(["quick", "a", {}], ["quick", "b", { q: "two" }]));
	await decide(tenant, run_id, turn(["quick", "c", { text: LONG }]));
	const before = await getRun(tenant, run_id);
	const evidence = await get(`/v1/runs/${run_id}/evidence`);
	expect(evidence.data).toHaveLength(3);
	const told = await events(run_id, before.seq);
	expect(told).toHaveLength(before.seq);
	// As if nothing had reached D1 yet: what the flush reads comes from storage.
	await runInDurableObject(env.AGENT_RUN.getByName(run_id), (_object, state) => {
		ofOld(state.storage.sql, run_id);
		callsOfOld(state.storage.sql);
		state.storage.sql.exec("UPDATE flushed SET seq = 0");
	});
	await env.DB.prepare("DELETE FROM audit WHERE run_id = ?").bind(run_id).run();
	await abortAllDurableObjects();

	expect(await getRun(tenant, run_id)).toEqual(before);
	expect(await tablesOf(run_id)).not.toContain("log");
	expect(await tablesOf(run_id)).toContain("step");
	expect(await get(`/v1/runs/${run_id}/evidence`)).toEqual(evidence);
	expect(await events(run_id, before.seq)).toEqual(told);

	const next = await decide(tenant, run_id, turn(["quick", "d", {}]));
	expect(next.run.calls.map((one: Run) => one.state)).toEqual(["COMPLETED"]);
	expect((await getRun(tenant, run_id)).calls.map((one: Run) => one.provider_call_id)).toEqual(["a", "b", "c", "d"]);
	const verdict = await call("GET", `/v1/runs/${run_id}/evidence/verify`, undefined, tenant.operator);
	expect(verdict.body).toMatchObject({ valid: true });
	// The long one is too large for a row of the index, which says so and holds nothing back.
	const count = async (table: string): Promise<number> =>
		(await env.DB.prepare(`SELECT * FROM ${table} WHERE run_id = ?`).bind(run_id).all()).results.length;
	await expect.poll(() => count("audit"), { timeout: 15_000 }).toBe(3);
	expect(await count("parked_rows")).toBe(1);
});
