/** The log in a run's storage, a row for each step: what reads it gets entry by entry, and never more than memory holds. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import type { LogRow } from "#core/run/effect.ts";
import { PackedRows } from "#objects/agent-run/packed-rows.ts";
import { RunLog } from "#objects/agent-run/run-log.ts";

/** Runs with a log of its own in an empty object's storage. */
const withLog = (name: string, work: (log: RunLog, sql: SqlStorage) => void): Promise<void> =>
	runInDurableObject(env.AGENT_RUN.getByName(name), (_object, { storage: { sql } }) => {
		sql.exec("CREATE TABLE step (seq INTEGER PRIMARY KEY, run TEXT, doc TEXT NOT NULL)");
		sql.exec(
			"CREATE TABLE body (owner TEXT NOT NULL, part INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (owner, part))",
		);
		work(new RunLog(sql, new PackedRows(sql)), sql);
	});
const entry = (seq: number, data: object, audit: object | null = null) =>
	({ seq, at: "2026-11-30", event: "call.state", data, audit }) as unknown as LogRow;

it("says once what two entries of a step say alike, and gives back what each of them said", () =>
	withLog("run_log_alike", (log, sql) => {
		const of = (tool_call_id: string, state: string, more: object = {}) => ({
			tool_call_id,
			state,
			error: null,
			...more,
		});
		const input = { text: "x".repeat(500) };
		const entries = [
			entry(1, of("a", "PENDING")),
			entry(2, of("b", "PENDING")),
			entry(3, of("b", "DISPATCHED")),
			{
				...entry(4, { tool_call_id: "b", input }, { action: "x", input_params: input }),
				event: "evidence.recorded" as const,
			},
			entry(5, of("b", "COMPLETED", { error: { code: "x" } })),
			entry(6, { state: "PENDING", tool_call_id: "b", error: null }),
			entry(7, { state: "PENDING" }),
			{ ...entry(8, { input }, { action: "x", input_params: null }), event: "evidence.recorded" as const },
		];
		log.write(entries, null);
		expect(JSON.stringify([...log.after(0)].map(({ seq, event, data }) => ({ seq, event, data })))).toBe(
			JSON.stringify(entries.map(({ seq, event, data }) => ({ seq, event, data }))),
		);
		expect([...log.after(0)]).toEqual(entries);
		const { doc } = sql.exec<{ doc: string }>("SELECT doc FROM step").one();
		expect(doc.length).toBeLessThan(JSON.stringify(entries).length - 600);
	}));

it("is read on from every number, within a step and past the end", () =>
	withLog("run_log_resume", (log) => {
		let seq = 0;
		for (let step = 0; step < 130; step++)
			log.write(
				Array.from({ length: step % 4 }, () => entry(++seq, { n: seq, seq: "own", at: "own" })),
				null,
			);
		const all = [...log.after(0)];
		expect(all.map((row) => row.seq)).toEqual(Array.from({ length: seq }, (_, n) => n + 1));
		expect(all[5]?.data).toEqual({ n: 6, seq: "own", at: "own" });
		for (let from = 0; from <= seq + 1; from++) expect([...log.after(from)]).toEqual(all.slice(from));
	}));

it("hands a flush no more text at once than memory holds", () =>
	withLog("run_log_long", (log) => {
		const long = { input: "x".repeat(262_000) };
		for (let seq = 1; seq <= 60; seq++) log.write([entry(seq, long, long)], null);
		const told: number[] = [];
		for (let from: number | null = 0; from !== null; ) {
			const { rows, to }: ReturnType<RunLog["audited"]> = log.audited(from, 500);
			expect(JSON.stringify(rows).length).toBeLessThan(6_000_000);
			told.push(...rows.map(({ seq }) => seq));
			from = to;
		}
		expect(told).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
	}));
