/**
 * Tables of a run that an earlier version made, brought to the present form when its object wakes: in one transaction, and
 * nothing is lost. A run outlives deploys, and its storage has no other keeper. Used by the run's store.
 */
import type { LogRow } from "#core/run/effect.ts";
import type { PackedRows } from "./packed-rows.ts";
import type { StoredStep } from "./run-log.ts";
import { STEP_TABLE } from "./schema.ts";

type OldEntry = { seq: number; at: string; event: LogRow["event"]; doc: string; audit: string | null };

/** Looked at before a transaction is begun: nearly every object that wakes has the tables of today. */
export const isOld = (sql: SqlStorage): boolean =>
	sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'log'").toArray().length > 0;

/** Until 2026-11-30 each entry of the log had a row. Call it inside a transaction. */
export function entriesToSteps(sql: SqlStorage, rows: PackedRows): void {
	sql.exec(STEP_TABLE);
	// One at a time: the longest log may be larger than the memory of an object.
	for (let at = 0; ; ) {
		const [old] = sql.exec<OldEntry>("SELECT * FROM log WHERE seq > ? ORDER BY seq LIMIT 1", at).toArray();
		if (old === undefined) break;
		const { seq, event } = old;
		const data = rows.unpack<LogRow["data"]>(`log:${seq}`, old.doc);
		const audit = old.audit === null ? null : rows.unpack<LogRow["audit"]>(`audit:${seq}`, old.audit);
		const step: StoredStep = { from: seq, at: old.at, entries: [{ event, data, audit }] };
		sql.exec("INSERT INTO step VALUES (?, ?)", seq, rows.pack(`step:${seq}`, step));
		at = seq;
	}
	sql.exec("DELETE FROM body WHERE owner LIKE 'log:%' OR owner LIKE 'audit:%'");
	sql.exec("DROP TABLE log");
}
