/**
 * The run's log in storage: one row per step, whatever it said and did to the run, since each written row has its price.
 * Entries are numbered one by one, so the last number and the first say the rest. Used by the run's store.
 */
import { invariant } from "#core/invariant.ts";
import type { LogRow } from "#core/run/effect.ts";
import type { RunRecord } from "#core/run/state.ts";
import type { PackedRows } from "./packed-rows.ts";
import { movingOf } from "./split-run.ts";
import { type StoredStep, stored, told } from "./stored-step.ts";

const LAST = "(SELECT max(seq) FROM step)";
/** Steps taken from storage at once: 13 MB at most, since a longer one lies in parts. */
const READ_STEPS = 50;
/** Text of entries for an index that are in memory at once: a long run with the largest arguments would not fit. */
const AUDITED_MAX_CHARS = 4_194_304;

export class RunLog {
	readonly #sql: SqlStorage;
	readonly #rows: PackedRows;

	constructor(sql: SqlStorage, rows: PackedRows) {
		this.#sql = sql;
		this.#rows = rows;
	}

	/** The entries of one step, in order, and the run as it left it; of one that said nothing, with the step before. */
	write(entries: readonly LogRow[], run: RunRecord | null): void {
		const [first] = entries;
		const last = entries.at(-1);
		const moving = run === null ? null : this.#rows.pack("run", movingOf(run));
		if (first === undefined || last === undefined) {
			if (moving !== null) this.#sql.exec(`UPDATE step SET run = ? WHERE seq = ${LAST}`, moving);
			return;
		}
		invariant(last.seq === first.seq + entries.length - 1, "a step's entries follow one another");
		const step: StoredStep = { from: first.seq, at: first.at, entries: stored(entries) };
		const doc = this.#rows.pack(`step:${last.seq}`, step);
		this.#sql.exec("INSERT INTO step (seq, run, doc) VALUES (?, ?, ?)", last.seq, moving, doc);
	}

	/** What moves of the run, as the last step left it. */
	run(): Partial<RunRecord> | undefined {
		return this.#rows.one<Partial<RunRecord>>(`SELECT run AS doc FROM step WHERE seq = ${LAST}`);
	}

	/** Every entry after `after_seq`, in order; one step is in memory whole. */
	*after(after_seq: number): Generator<LogRow> {
		for (let at = after_seq, read = READ_STEPS; read === READ_STEPS; ) {
			read = 0;
			const query = "SELECT doc FROM step WHERE seq > ? ORDER BY seq LIMIT ?";
			for (const { from, at: time, entries } of this.#rows.each<StoredStep>(query, at, READ_STEPS)) {
				for (const [n, entry] of told(entries).entries())
					if (from + n > after_seq) yield { ...entry, seq: from + n, at: time };
				at = from + entries.length - 1;
				read++;
			}
		}
	}

	/**
	 * The next entries that an index outside wants to know of: each carries its audit part (evidence does, and nothing else).
	 * At most `limit` and AUDITED_MAX_CHARS of text. `to`: the last one's number where there may be more; null at the log's end.
	 */
	audited(after_seq: number, limit: number): { readonly rows: readonly LogRow[]; readonly to: number | null } {
		const rows: LogRow[] = [];
		let room = AUDITED_MAX_CHARS;
		for (const row of this.after(after_seq)) {
			if (row.audit === null) continue;
			rows.push(row);
			room -= JSON.stringify(row).length;
			if (rows.length === limit || room < 0) return { rows, to: row.seq };
		}
		return { rows, to: null };
	}
}
