/**
 * Tables of a run that an earlier version made, brought to the present form when its object wakes: in one transaction, and
 * nothing is lost. A run outlives deploys, and its storage has no other keeper. Used by the run's store.
 */
import type { LogRow } from "#core/run/effect.ts";
import type { CallRecord, RunRecord } from "#core/run/state.ts";
import type { PackedRows } from "./packed-rows.ts";
import { CALL_TABLE, placeOf, STEP_TABLE } from "./schema.ts";
import type { StoredStep } from "./stored-step.ts";

type OldEntry = { seq: number; at: string; event: LogRow["event"]; doc: string; audit: string | null };

const has = (sql: SqlStorage, table: string): boolean =>
	sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", table).toArray().length > 0;

/** Looked at before a transaction is begun: nearly every object that wakes has the tables of today. */
export const isOld = (sql: SqlStorage): boolean => has(sql, "run");

/** Call it inside a transaction. */
export function upgrade(sql: SqlStorage, rows: PackedRows): void {
	if (has(sql, "log")) entriesToSteps(sql, rows);
	else sql.exec("ALTER TABLE step ADD COLUMN run TEXT");
	const calls = placeCalls(sql, rows);
	runIntoStep(sql, rows, calls);
}

/** Until 2026-11-30 each entry of the log had a row. One at a time: the longest log may be larger than the memory of an object. */
function entriesToSteps(sql: SqlStorage, rows: PackedRows): void {
	sql.exec(STEP_TABLE);
	for (let at = 0; ; ) {
		const [old] = sql.exec<OldEntry>("SELECT * FROM log WHERE seq > ? ORDER BY seq LIMIT 1", at).toArray();
		if (old === undefined) break;
		const { seq, event } = old;
		const data = rows.unpack<LogRow["data"]>(`log:${seq}`, old.doc);
		const audit = old.audit === null ? null : rows.unpack<LogRow["audit"]>(`audit:${seq}`, old.audit);
		const step: StoredStep = { from: seq, at: old.at, entries: [{ event, data, audit }] };
		sql.exec("INSERT INTO step (seq, doc) VALUES (?, ?)", seq, rows.pack(`step:${seq}`, step));
		at = seq;
	}
	sql.exec("DELETE FROM body WHERE owner LIKE 'log:%' OR owner LIKE 'audit:%'");
	sql.exec("DROP TABLE log");
}

/** An edited call has the ordinal of the one it replaces, and comes behind it. Docs in parts are as good as edited: it is order only. */
const LAST_OF_ITS_EDITS = `doc LIKE '%"superseded_by":null%'`;

/** Until 2026-12-01 a call lay under its id, with an index by turn. Answers how many there are. */
function placeCalls(sql: SqlStorage, rows: PackedRows): number {
	sql.exec("ALTER TABLE call RENAME TO old_call");
	sql.exec(CALL_TABLE);
	const ids = sql
		.exec<{ id: string }>(`SELECT tool_call_id AS id FROM old_call ORDER BY turn, ordinal, ${LAST_OF_ITS_EDITS}`)
		.toArray();
	for (const [at, { id }] of ids.entries()) {
		const n = at + 1;
		const call = rows.one<CallRecord>("SELECT doc FROM old_call WHERE tool_call_id = ?", id);
		if (call === undefined) continue;
		sql.exec(
			"INSERT INTO call VALUES (?, ?, ?, ?)",
			placeOf(call.turn, n),
			id,
			call.state,
			rows.pack(id, { ...call, n }),
		);
	}
	sql.exec("DROP TABLE old_call");
	return ids.length;
}

/** Until then what moves of a run had a row of its own; edited calls shared a number, so the next one may be taken. */
function runIntoStep(sql: SqlStorage, rows: PackedRows, calls: number): void {
	const run = rows.one<RunRecord>("SELECT doc FROM run");
	sql.exec("DROP TABLE run");
	if (run === undefined) return;
	const next_call = Math.max(run.next_call, calls + 1);
	sql.exec("UPDATE step SET run = ? WHERE seq = (SELECT max(seq) FROM step)", rows.pack("run", { ...run, next_call }));
}
