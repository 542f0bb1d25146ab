/**
 * One run's rows in its own SQLite (decision 2): a row per call, message, approval and step; texts too long for a
 * cell lie in chunks beside them. It decides nothing. Only the run object uses it.
 */
import type { StoredMessage } from "#core/planner/conversation.ts";
import type { ToolVersion } from "#core/registry/descriptor.ts";
import type { LogRow, Row } from "#core/run/effect.ts";
import type { ApprovalRecord, CallRecord, Exposure, RunRecord, RunState } from "#core/run/state.ts";
import type { ScriptEntry } from "./api.ts";
import { PackedRows } from "./packed-rows.ts";
import { RunLog } from "./run-log.ts";
import { placeOf, SCHEMA, TURN_OF_PLACE } from "./schema.ts";
import { askedOf, REQUEST_FIELDS, wholeRun } from "./split-run.ts";
import { type Derive, type Timer, Timers } from "./timers.ts";
import { isOld, upgrade } from "./upgrade.ts";

type Written = Exclude<Row, { readonly table: "log" | "run" | "due" | "due_done" }>;

/** An edited call came later and has the place of the one it replaces. */
const byOrder = (a: CallRecord, b: CallRecord): number => a.ordinal - b.ordinal;

export class RunStore {
	readonly #storage: DurableObjectStorage;
	readonly #sql: SqlStorage;
	readonly #rows: PackedRows;
	readonly timers: Timers;
	readonly log: RunLog;
	/** The run as its request row was last written. */
	#asked: RunRecord | null = null;

	/** `derived`: the timers that the state in memory says by itself. */
	constructor(storage: DurableObjectStorage, derived: Derive) {
		this.#storage = storage;
		this.#sql = storage.sql;
		this.#rows = new PackedRows(storage.sql);
		this.timers = new Timers(storage, derived);
		this.log = new RunLog(storage.sql, this.#rows);
	}

	/** An object that was only probed keeps no storage: tables come with the run. */
	exists(): boolean {
		return this.#sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'run_request'").toArray().length > 0;
	}

	/** For tables that an earlier version of this object made. */
	upgrade(): void {
		if (isOld(this.#sql)) this.transaction(() => upgrade(this.#sql, this.#rows));
	}

	create(script: readonly ScriptEntry[]): void {
		this.#sql.exec(SCHEMA);
		this.#sql.exec("INSERT INTO flushed (id, seq) VALUES (1, 0)");
		for (const [n, decision] of script.entries()) {
			this.#sql.exec("INSERT INTO script (n, doc) VALUES (?, ?)", n, this.#rows.pack(`script:${n}`, decision));
		}
	}

	/** All or nothing. */
	transaction<T>(work: () => T): T {
		try {
			return this.#storage.transactionSync(work);
		} catch (error) {
			this.timers.forget();
			this.#asked = null;
			throw error;
		}
	}

	load(): RunState | null {
		const asked = this.#rows.one<RunRecord>("SELECT doc FROM run_request");
		const moving = this.log.run();
		if (asked === undefined || moving === undefined) return null;
		const run = wholeRun(asked, moving);
		const calls = this.#rows.all<CallRecord>(
			"SELECT doc FROM call WHERE place >= ? OR state IN ('AWAITING_APPROVAL', 'PENDING', 'DISPATCHED', 'RUNNING') ORDER BY place",
			placeOf(run.turn, 0),
		);
		calls.sort(byOrder);
		const approvals = this.#rows.all<ApprovalRecord>(
			"SELECT doc FROM approval WHERE status = 'pending' OR tool_call_id IN (SELECT tool_call_id FROM call WHERE place >= ?)",
			placeOf(run.turn, 0),
		);
		return {
			run,
			exposure: this.#rows.one<Exposure>("SELECT doc FROM exposure ORDER BY n DESC LIMIT 1") ?? null,
			calls: new Map(calls.map((call) => [call.tool_call_id, call])),
			approvals: new Map(approvals.map((approval) => [approval.approval_id, approval])),
		};
	}

	/** Writes one step's rows. Call it inside `transaction`. Arms the one alarm over the due-table in the same transaction. */
	save(rows: readonly Row[], now: number): void {
		const log: LogRow[] = [];
		let run: RunRecord | null = null;
		const timers = new Map<string, Timer>();
		for (const row of rows) {
			if (row.table === "log") log.push(row.doc);
			else if (row.table === "run") run = row.doc;
			else if (row.table === "due") timers.set(`${row.kind}:${row.ref}`, row);
			else if (row.table === "due_done") timers.set(`${row.kind}:${row.ref}`, { ...row, at: null });
			else this.#write(row);
		}
		if (run !== null) this.#writeRequest(run);
		this.log.write(log, run);
		if (timers.size > 0) this.timers.write([...timers.values()], now);
	}

	#write(row: Written): void {
		const sql = this.#sql;
		switch (row.table) {
			case "call": {
				const { tool_call_id, n, turn, state } = row.doc;
				sql.exec(
					"INSERT INTO call VALUES (?, ?, ?, ?) ON CONFLICT (place) DO UPDATE SET state = excluded.state, doc = excluded.doc",
					placeOf(turn, n),
					tool_call_id,
					state,
					this.#rows.pack(tool_call_id, row.doc),
				);
				return;
			}
			case "approval": {
				const { approval_id, tool_call_id, status, seq } = row.doc;
				sql.exec(
					"INSERT INTO approval VALUES (?, ?, ?, ?, ?) ON CONFLICT (approval_id) DO UPDATE SET status = excluded.status, seq = excluded.seq, doc = excluded.doc",
					approval_id,
					tool_call_id,
					status,
					seq,
					this.#rows.pack(approval_id, row.doc),
				);
				return;
			}
			case "message":
				sql.exec(
					"INSERT INTO message VALUES (?, ?, ?)",
					row.doc.n,
					row.doc.turn,
					this.#rows.pack(`message:${row.doc.n}`, row.doc),
				);
				return;
			case "exposure":
				sql.exec("INSERT INTO exposure VALUES (?, ?)", row.doc.n, this.#rows.pack(`exposure:${row.doc.n}`, row.doc));
				return;
			case "definition":
				sql.exec(
					"INSERT INTO definition VALUES (?, ?) ON CONFLICT DO NOTHING",
					row.doc.definition_hash,
					JSON.stringify(row.doc),
				);
				return;
		}
	}

	/** What was asked for hardly ever changes and may be large: it has a row of its own, written only when it did. */
	#writeRequest(run: RunRecord): void {
		const before = this.#asked;
		const same = before !== null && REQUEST_FIELDS.every((name) => before[name] === run[name]);
		if (!same)
			this.#sql.exec(
				"INSERT INTO run_request VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
				this.#rows.pack("run_request", askedOf(run)),
			);
		this.#asked = run;
	}

	/** Looks through the run's calls, the newest first: it is rarely asked, and an index would be paid for with each of them. */
	call(tool_call_id: string): CallRecord | undefined {
		return this.#rows.one<CallRecord>(
			"SELECT doc FROM call WHERE tool_call_id = ? ORDER BY place DESC LIMIT 1",
			tool_call_id,
		);
	}
	/** In the planner's order. */
	callsOf(turn: number): CallRecord[] {
		const calls = this.#rows.all<CallRecord>(
			"SELECT doc FROM call WHERE place BETWEEN ? AND ?",
			placeOf(turn, 0),
			placeOf(turn + 1, 0) - 1,
		);
		return calls.sort(byOrder);
	}
	/** The turns that have calls, ascending. */
	turnsCalled(): number[] {
		const turns = this.#sql.exec<{ turn: number }>(`SELECT DISTINCT ${TURN_OF_PLACE} AS turn FROM call ORDER BY turn`);
		return [...turns].map(({ turn }) => turn);
	}
	lastCalls(limit: number): CallRecord[] {
		return this.#rows.all<CallRecord>("SELECT doc FROM call ORDER BY place DESC LIMIT ?", limit).reverse();
	}
	/** Completed results by the planner's own id, latest last: what a script's placeholders may name. */
	results(): Map<string, CallRecord> {
		const calls = this.#rows.all<CallRecord>("SELECT doc FROM call WHERE state = 'COMPLETED'");
		calls.sort((a, b) => a.turn - b.turn || byOrder(a, b));
		return new Map(calls.map((call) => [call.provider_call_id, call]));
	}
	approval(approval_id: string): ApprovalRecord | undefined {
		return this.#rows.one<ApprovalRecord>("SELECT doc FROM approval WHERE approval_id = ?", approval_id);
	}
	approvalsSince(seq: number): ApprovalRecord[] {
		return this.#rows.all<ApprovalRecord>("SELECT doc FROM approval WHERE seq > ? ORDER BY seq", seq);
	}
	messages(): StoredMessage[] {
		return this.#rows.all<StoredMessage>("SELECT doc FROM message ORDER BY n");
	}
	definition(definition_hash: string): ToolVersion | undefined {
		return this.#rows.one<ToolVersion>("SELECT doc FROM definition WHERE definition_hash = ?", definition_hash);
	}
	script(n: number): ScriptEntry | undefined {
		return this.#rows.one<ScriptEntry>("SELECT doc FROM script WHERE n = ?", n);
	}

	flushed(): number {
		return this.#sql.exec<{ seq: number }>("SELECT seq FROM flushed").one().seq;
	}
	markFlushed(seq: number): void {
		this.#sql.exec("UPDATE flushed SET seq = max(seq, ?)", seq);
	}

	request(key: string): { hash: string; turn: number } | undefined {
		return this.#sql
			.exec<{ hash: string; turn: number }>("SELECT hash, turn FROM request WHERE key = ?", key)
			.toArray()[0];
	}
	rememberRequest(key: string, hash: string, turn: number): void {
		this.#sql.exec("INSERT INTO request VALUES (?, ?, ?) ON CONFLICT DO NOTHING", key, hash, turn);
	}

	/** A link that is known keeps whether it was used. */
	putLink(token_hash: string, approval_id: string, doc: object): void {
		this.#sql.exec(
			"INSERT INTO link VALUES (?, ?, ?, NULL) ON CONFLICT (token_hash) DO UPDATE SET doc = excluded.doc",
			token_hash,
			approval_id,
			JSON.stringify(doc),
		);
	}
	link<T>(token_hash: string): { approval_id: string; doc: T; used_at: number | null } | undefined {
		const row = this.#sql
			.exec<{ approval_id: string; doc: string; used_at: number | null }>(
				"SELECT approval_id, doc, used_at FROM link WHERE token_hash = ?",
				token_hash,
			)
			.toArray()[0];
		return row === undefined ? undefined : { ...row, doc: JSON.parse(row.doc) as T };
	}
	useLink(token_hash: string, at: number): void {
		this.#sql.exec("UPDATE link SET used_at = ? WHERE token_hash = ?", at, token_hash);
	}
}
