/** A run whose tables an earlier version made: it wakes, nothing of it is lost, and it goes on. */
import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, it } from "vitest";
import { type StoredStep, told } from "#objects/agent-run/stored-step.ts";
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

type Step = { from: number; at: string; entries: ReturnType<typeof told> };

const parsed = (sql: SqlStorage, doc: string) =>
	JSON.parse(
		doc.startsWith("§")
			? sql
					.exec<{ data: string }>("SELECT data FROM body WHERE owner = ? ORDER BY part", doc.slice(1))
					.toArray()
					.map(({ data }) => JSON.parse(data))
					.join("")
			: doc,
	);

/** Each entry as it was said until 2026-11-30: whole. */
function steps(sql: SqlStorage): Step[] {
	const rows = sql.exec<{ doc: string }>("SELECT doc FROM step ORDER BY seq").toArray();
	return rows.map(({ doc }) => {
		const step: StoredStep = parsed(sql, doc);
		return { ...step, entries: told(step.entries) };
	});
}

/** The tables of 2026-11-30: what moves of a run in a row of its own, steps without it, calls by their id with an index. */
function ofNovember(sql: SqlStorage): void {
	const { run } = sql.exec<{ run: string }>("SELECT run FROM step ORDER BY seq DESC LIMIT 1").one();
	const begun = { v: 1, answer: null, error: null, turn_open: false, plan_attempts: 0, denied: [], queued: [] };
	const guards = { loop_guard: { v: 1, seen: [] }, repair_guard: { v: 1, tools: [] }, repair_stop: null };
	sql.exec("CREATE TABLE run (id INTEGER PRIMARY KEY CHECK (id = 1), doc TEXT NOT NULL)");
	sql.exec("INSERT INTO run VALUES (1, ?)", JSON.stringify({ ...begun, ...guards, ...JSON.parse(run) }));
	const all = steps(sql);
	for (const step of all) {
		const seq = step.from + step.entries.length - 1;
		const text = JSON.stringify(step);
		if (text.length <= PART_CHARS) sql.exec("UPDATE step SET doc = ? WHERE seq = ?", text, seq);
		else for (const row of parts(`step:${seq}`, text)) sql.exec("INSERT OR REPLACE INTO body VALUES (?, ?, ?)", ...row);
	}
	sql.exec("ALTER TABLE step DROP COLUMN run");
	callsOf(
		sql,
		"CREATE TABLE old (tool_call_id TEXT NOT NULL UNIQUE, ordinal INTEGER NOT NULL, turn INTEGER NOT NULL, state TEXT NOT NULL, doc TEXT NOT NULL)",
	);
}

const parts = (owner: string, text: string): [string, number, string][] =>
	Array.from({ length: Math.ceil(text.length / PART_CHARS) }, (_, part) => [
		owner,
		part,
		JSON.stringify(text.slice(part * PART_CHARS, (part + 1) * PART_CHARS)),
	]);

/** Calls as they lay under their ids. */
function callsOf(sql: SqlStorage, table: string): void {
	sql.exec(table);
	for (const { doc } of sql.exec<{ doc: string }>("SELECT doc FROM call ORDER BY place").toArray()) {
		const { n: _n, ...call } = parsed(sql, doc);
		const { tool_call_id, ordinal, turn, state } = call;
		const text = JSON.stringify(call);
		const long = text.length > PART_CHARS;
		if (long)
			for (const row of parts(tool_call_id, text)) sql.exec("INSERT OR REPLACE INTO body VALUES (?, ?, ?)", ...row);
		sql.exec("INSERT INTO old VALUES (?, ?, ?, ?, ?)", tool_call_id, ordinal, turn, state, long ? doc : text);
	}
	sql.exec("DROP TABLE call");
	sql.exec("ALTER TABLE old RENAME TO call");
	sql.exec("CREATE INDEX call_by_turn ON call (turn, ordinal)");
}

/** The tables before those: a row for each entry of the log, and calls under another key. */
function ofOld(sql: SqlStorage, run_id: string): void {
	ofNovember(sql);
	const all = steps(sql);
	sql.exec("DELETE FROM body WHERE owner LIKE 'step:%'");
	sql.exec("DROP TABLE step");
	sql.exec(
		"CREATE TABLE log (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, event TEXT NOT NULL, doc TEXT NOT NULL, audit TEXT)",
	);
	for (const { from, at, entries } of all)
		for (const [n, { event, data, audit }] of entries.entries()) {
			const seq = from + n;
			let doc = JSON.stringify({ seq, at, run_id, ...data });
			if (doc.length > PART_CHARS) {
				for (const row of parts(`log:${seq}`, doc)) sql.exec("INSERT INTO body VALUES (?, ?, ?)", ...row);
				doc = `§log:${seq}`;
			}
			const said = audit === null ? null : JSON.stringify(audit);
			sql.exec("INSERT INTO log VALUES (?, ?, ?, ?, ?)", seq, at, event, doc, said);
		}
	sql.exec(
		"CREATE TABLE old (tool_call_id TEXT PRIMARY KEY, ordinal INTEGER NOT NULL, turn INTEGER NOT NULL, state TEXT NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID",
	);
	sql.exec("INSERT INTO old SELECT * FROM call");
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

it.each([
	["of before the log had a row per step", ofOld],
	["of before a step had the run and calls their places", ofNovember],
])("keeps calls, evidence, events and the audit of a run with the tables %s", async (_name, former) => {
	const run = await externalRun(tenant);
	const { run_id } = run;
	await decide(tenant, run_id, turn(["quick", "a", {}], ["quick", "b", { q: "two" }]));
	await decide(tenant, run_id, turn(["quick", "c", { text: LONG }]));
	for (const content of ["first", "second"])
		expect((await call("POST", `/v1/runs/${run_id}/messages`, { content }, tenant.operator)).status).toBe(200);
	const before = await getRun(tenant, run_id);
	const words = await get(`/v1/runs/${run_id}/messages`);
	expect(words).toMatchObject({ said: ["first", "second"] });
	const evidence = await get(`/v1/runs/${run_id}/evidence`);
	expect(evidence.data).toHaveLength(3);
	const told = await events(run_id, before.seq);
	expect(told).toHaveLength(before.seq);
	// As if nothing had reached D1 yet: what the flush reads comes from storage.
	await runInDurableObject(env.AGENT_RUN.getByName(run_id), (_object, state) => {
		former(state.storage.sql, run_id);
		state.storage.sql.exec("UPDATE flushed SET seq = 0");
	});
	await env.DB.prepare("DELETE FROM audit WHERE run_id = ?").bind(run_id).run();
	await abortAllDurableObjects();

	expect(await getRun(tenant, run_id)).toEqual(before);
	const tables = await tablesOf(run_id);
	for (const gone of ["log", "run", "old_call"]) expect(tables).not.toContain(gone);
	expect(tables).toContain("step");
	expect(await get(`/v1/runs/${run_id}/evidence`)).toEqual(evidence);
	expect(await events(run_id, before.seq)).toEqual(told);
	expect(await get(`/v1/runs/${run_id}/messages`)).toEqual(words);

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
