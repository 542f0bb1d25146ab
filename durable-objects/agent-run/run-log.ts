/**
 * The run's log in storage: one row per step, whatever it said, did to the run and added to its conversation, since each
 * written row has its price.
 * Entries are numbered one by one, so the last number and the first say the rest. Used by the run's store.
 */
import { invariant } from "#core/invariant.ts";
import type { StoredMessage } from "#core/planner/conversation.ts";
import type { LogRow } from "#core/run/effect.ts";
import type { RunRecord } from "#core/run/state.ts";
import type { PackedRows } from "./packed-rows.ts";
import { movingOf } from "./split-run.ts";
import { type StoredStep, stored, told } from "./stored-step.ts";

/** What a step is written from. `run`: null where it did nothing to it. */
export type WrittenStep = {
	readonly entries: readonly LogRow[];
	readonly run: RunRecord | null;
	readonly messages: readonly StoredMessage[];
};

const LAST = "(SELECT max(seq) FROM step)";
const MESSAGES = "SELECT messages AS doc FROM step WHERE messages IS NOT NULL";
/** A step's row holds three texts, of which the last may be long. */
export const SHORT_CHARS = 65_536;
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

	/** A step whole; one that said nothing goes with the step before. Its entries follow one another. */
	write({ entries, run, messages }: WrittenStep): void {
		const [first] = entries;
		const last = entries.at(-1);
		if (first === undefined || last === undefined) {
			this.#amend(run, messages);
			return;
		}
		invariant(last.seq === first.seq + entries.length - 1, "a step's entries follow one another");
		const step: StoredStep = { from: first.seq, at: first.at, entries: stored(entries) };
		this.#sql.exec(
			"INSERT INTO step (seq, run, messages, doc) VALUES (?, ?, ?, ?)",
			last.seq,
			run === null ? null : this.#packRun(run),
			messages.length === 0 ? null : this.#packMessages(last.seq, messages),
			this.#rows.pack(`step:${last.seq}`, step),
		);
	}

	#amend(run: RunRecord | null, messages: readonly StoredMessage[]): void {
		if (run !== null) this.#sql.exec(`UPDATE step SET run = ? WHERE seq = ${LAST}`, this.#packRun(run));
		if (messages.length === 0) return;
		const { seq } = this.#sql.exec<{ seq: number }>("SELECT max(seq) AS seq FROM step").one();
		const before = this.#rows.all<StoredMessage[]>(`${MESSAGES} AND seq = ?`, seq).flat();
		this.#sql.exec(
			"UPDATE step SET messages = ? WHERE seq = ?",
			this.#packMessages(seq, [...before, ...messages]),
			seq,
		);
	}

	#packRun = (run: RunRecord): string => this.#rows.pack("run", movingOf(run), SHORT_CHARS);
	#packMessages = (seq: number, messages: readonly StoredMessage[]): string =>
		this.#rows.pack(`messages:${seq}`, messages, SHORT_CHARS);

	/** What moves of the run, as the last step left it. */
	run(): Partial<RunRecord> | undefined {
		return this.#rows.one<Partial<RunRecord>>(`SELECT run AS doc FROM step WHERE seq = ${LAST}`);
	}

	/** The conversation, in order. */
	messages(): StoredMessage[] {
		return this.#rows.all<StoredMessage[]>(`${MESSAGES} ORDER BY seq`).flat();
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
