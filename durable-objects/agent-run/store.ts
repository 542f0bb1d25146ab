/**
 * One run's rows in its own SQLite (decision 2): a row per call, message, approval and log entry; texts too long for a
 * cell lie in chunks beside them. It decides nothing. Only the run object uses it.
 */
import { BODY_CHUNK_BYTES } from "#core/limits.ts";
import type { StoredMessage } from "#core/planner/conversation.ts";
import type { WireDecision } from "#core/planner/decision.ts";
import type { ToolVersion } from "#core/registry/descriptor.ts";
import type { LogRow, Row } from "#core/run/effect.ts";
import type { ApprovalRecord, CallRecord, DueKind, Exposure, RunRecord, RunState } from "#core/run/state.ts";

const SCHEMA = `
CREATE TABLE run (id INTEGER PRIMARY KEY CHECK (id = 1), doc TEXT NOT NULL);
CREATE TABLE run_request (id INTEGER PRIMARY KEY CHECK (id = 1), doc TEXT NOT NULL);
CREATE TABLE call (tool_call_id TEXT PRIMARY KEY, ordinal INTEGER NOT NULL, turn INTEGER NOT NULL, state TEXT NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX call_by_turn ON call (turn, ordinal);
CREATE TABLE approval (approval_id TEXT PRIMARY KEY, tool_call_id TEXT NOT NULL, status TEXT NOT NULL, seq INTEGER NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE message (n INTEGER PRIMARY KEY, turn INTEGER NOT NULL, doc TEXT NOT NULL);
CREATE TABLE exposure (n INTEGER PRIMARY KEY, doc TEXT NOT NULL);
CREATE TABLE definition (definition_hash TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE log (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, event TEXT NOT NULL, doc TEXT NOT NULL, audit TEXT);
CREATE TABLE due (kind TEXT NOT NULL, ref TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (kind, ref)) WITHOUT ROWID;
CREATE TABLE flushed (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL);
CREATE TABLE body (owner TEXT NOT NULL, part INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (owner, part)) WITHOUT ROWID;
CREATE TABLE link (token_hash TEXT PRIMARY KEY, approval_id TEXT NOT NULL, doc TEXT NOT NULL, used_at INTEGER) WITHOUT ROWID;
CREATE TABLE request (key TEXT PRIMARY KEY, hash TEXT NOT NULL, turn INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE script (n INTEGER PRIMARY KEY, doc TEXT NOT NULL);
`;

/** The members of a run that its request said; everything else moves with every step. */
const REQUEST_FIELDS = [
	"run_id",
	"tenant_id",
	"trace_id",
	"session_id",
	"request_hash",
	"goal",
	"principal",
	"authority",
	"planner",
	"pinned",
	"limits",
	"metadata",
	"context",
	"created_at",
] as const satisfies readonly (keyof RunRecord)[];
const REQUEST_FIELD_SET: ReadonlySet<string> = new Set(REQUEST_FIELDS);

function splitRun(run: RunRecord): [asked: object, moving: object] {
	const entries = Object.entries(run);
	return [
		Object.fromEntries(entries.filter(([name]) => REQUEST_FIELD_SET.has(name))),
		Object.fromEntries(entries.filter(([name]) => !REQUEST_FIELD_SET.has(name))),
	];
}

type Timer = { readonly kind: DueKind; readonly ref: string; readonly at: number | null };
type StoredLogRow = { seq: number; at: string; event: LogRow["event"]; doc: string; audit: string | null };
type Written = Exclude<Row, { readonly table: "log" | "due" | "due_done" }>;

/** Five bound values each, and SQLite in an object binds 100 at most. */
const LOG_ROWS_PER_STATEMENT = 20;
const TIMERS_PER_STATEMENT = 30;

function* chunks<T>(list: readonly T[], size: number): Generator<readonly T[]> {
	for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size);
}

/** A doc that starts so lies in `body`. No JSON text begins with it. */
const CHUNKED = "§";

export class RunStore {
	readonly #storage: DurableObjectStorage;
	readonly #sql: SqlStorage;
	#armed: number | null = null;
	#due: Map<string, number> | null = null;
	/** The run as its request row was last written. */
	#asked: RunRecord | null = null;

	constructor(storage: DurableObjectStorage) {
		this.#storage = storage;
		this.#sql = storage.sql;
	}

	/** An object that was only probed keeps no storage: tables come with the run. */
	exists(): boolean {
		return this.#sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'run'").toArray().length > 0;
	}

	create(script: readonly WireDecision[]): void {
		this.#sql.exec(SCHEMA);
		this.#sql.exec("INSERT INTO flushed (id, seq) VALUES (1, 0)");
		for (const [n, decision] of script.entries()) {
			this.#sql.exec("INSERT INTO script (n, doc) VALUES (?, ?)", n, this.#pack(`script:${n}`, decision));
		}
	}

	/** All or nothing. */
	transaction<T>(work: () => T): T {
		try {
			return this.#storage.transactionSync(work);
		} catch (error) {
			this.forget();
			throw error;
		}
	}

	async rememberAlarm(): Promise<void> {
		this.#armed = await this.#storage.getAlarm();
	}

	load(): RunState | null {
		const asked = this.#one<RunRecord>("SELECT doc FROM run_request");
		const moving = this.#one<RunRecord>("SELECT doc FROM run");
		if (asked === undefined || moving === undefined) return null;
		const run: RunRecord = { ...asked, ...moving };
		const calls = this.#all<CallRecord>(
			"SELECT doc FROM call WHERE turn = ? OR state IN ('AWAITING_APPROVAL', 'PENDING', 'DISPATCHED', 'RUNNING') ORDER BY ordinal",
			run.turn,
		);
		const approvals = this.#all<ApprovalRecord>(
			"SELECT doc FROM approval WHERE status = 'pending' OR tool_call_id IN (SELECT tool_call_id FROM call WHERE turn = ?)",
			run.turn,
		);
		return {
			run,
			exposure: this.#one<Exposure>("SELECT doc FROM exposure ORDER BY n DESC LIMIT 1") ?? null,
			calls: new Map(calls.map((call) => [call.tool_call_id, call])),
			approvals: new Map(approvals.map((approval) => [approval.approval_id, approval])),
		};
	}

	/** Writes one step's rows. Call it inside `transaction`. Arms the one alarm over the due-table in the same transaction. */
	save(rows: readonly Row[], now: number): void {
		const log: LogRow[] = [];
		const timers = new Map<string, Timer>();
		for (const row of rows) {
			if (row.table === "log") log.push(row.doc);
			else if (row.table === "due") timers.set(`${row.kind}:${row.ref}`, row);
			else if (row.table === "due_done") timers.set(`${row.kind}:${row.ref}`, { ...row, at: null });
			else this.#write(row);
		}
		for (const some of chunks(log, LOG_ROWS_PER_STATEMENT)) this.#writeLog(some);
		if (timers.size > 0) this.#writeTimers([...timers.values()], now);
	}

	#write(row: Written): void {
		const sql = this.#sql;
		switch (row.table) {
			case "run":
				this.#writeRun(row.doc);
				return;
			case "call": {
				const { tool_call_id, ordinal, turn, state } = row.doc;
				sql.exec(
					"INSERT INTO call VALUES (?, ?, ?, ?, ?) ON CONFLICT (tool_call_id) DO UPDATE SET state = excluded.state, doc = excluded.doc",
					tool_call_id,
					ordinal,
					turn,
					state,
					this.#pack(tool_call_id, row.doc),
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
					this.#pack(approval_id, row.doc),
				);
				return;
			}
			case "message":
				sql.exec(
					"INSERT INTO message VALUES (?, ?, ?)",
					row.doc.n,
					row.doc.turn,
					this.#pack(`message:${row.doc.n}`, row.doc),
				);
				return;
			case "exposure":
				sql.exec("INSERT INTO exposure VALUES (?, ?)", row.doc.n, this.#pack(`exposure:${row.doc.n}`, row.doc));
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
	#writeRun(run: RunRecord): void {
		const [asked, moving] = splitRun(run);
		const before = this.#asked;
		const same = before !== null && REQUEST_FIELDS.every((name) => before[name] === run[name]);
		const into = "(id, doc) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc";
		if (!same) this.#sql.exec(`INSERT INTO run_request ${into}`, this.#pack("run_request", asked));
		this.#sql.exec(`INSERT INTO run ${into}`, this.#pack("run", moving));
		this.#asked = run;
	}

	/** Several entries in one statement: a governed call logs about nine, and each statement has its own price. */
	#writeLog(rows: readonly LogRow[]): void {
		const binds = rows.flatMap(({ seq, at, event, data, audit }) => [
			seq,
			at,
			event,
			this.#pack(`log:${seq}`, data),
			audit === null ? null : this.#pack(`audit:${seq}`, audit),
		]);
		this.#sql.exec(`INSERT INTO log VALUES ${rows.map(() => "(?, ?, ?, ?, ?)").join(", ")}`, ...binds);
	}

	/**
	 * The last word on each timer counts. What is in the table is known in memory, so a timer that was never set costs no
	 * statement to clear, and the next one due is found without a query.
	 */
	#writeTimers(timers: readonly Timer[], now: number): void {
		const due = this.#timers();
		const set = timers.filter((timer) => timer.at !== null);
		const cleared = timers.filter((timer) => timer.at === null && due.has(`${timer.kind}:${timer.ref}`));
		try {
			for (const some of chunks(cleared, TIMERS_PER_STATEMENT)) {
				const where = some.map(() => "(kind = ? AND ref = ?)").join(" OR ");
				this.#sql.exec(`DELETE FROM due WHERE ${where}`, ...some.flatMap(({ kind, ref }) => [kind, ref]));
			}
			for (const some of chunks(set, TIMERS_PER_STATEMENT)) {
				const values = some.map(() => "(?, ?, ?)").join(", ");
				this.#sql.exec(
					`INSERT INTO due VALUES ${values} ON CONFLICT (kind, ref) DO UPDATE SET at = excluded.at`,
					...some.flatMap(({ kind, ref, at }) => [kind, ref, at]),
				);
			}
			for (const { kind, ref } of cleared) due.delete(`${kind}:${ref}`);
			for (const { kind, ref, at } of set) due.set(`${kind}:${ref}`, at ?? 0);
			this.arm(now);
		} catch (error) {
			this.#due = null;
			throw error;
		}
	}

	#timers(): Map<string, number> {
		this.#due ??= new Map(
			this.#sql
				.exec<{ kind: string; ref: string; at: number }>("SELECT kind, ref, at FROM due")
				.toArray()
				.map(({ kind, ref, at }) => [`${kind}:${ref}`, at]),
		);
		return this.#due;
	}

	/** What a failed transaction left in memory is not what storage holds. */
	forget(): void {
		this.#due = null;
		this.#armed = null;
		this.#asked = null;
	}

	/** An alarm that rings early finds nothing and is set again: cheaper than moving it with every call. */
	arm(now: number): void {
		let next = Number.POSITIVE_INFINITY;
		for (const at of this.#timers().values()) if (at < next) next = at;
		if (next === Number.POSITIVE_INFINITY || (this.#armed !== null && this.#armed > now && this.#armed <= next)) return;
		this.#armed = next;
		void this.#storage.setAlarm(next);
	}

	alarmRang(): void {
		this.#armed = null;
	}

	/** Timers that are due, oldest first; they stay until the step that serves them takes them out. */
	due(now: number): { kind: DueKind; ref: string }[] {
		return this.#sql
			.exec<{ kind: DueKind; ref: string }>("SELECT kind, ref FROM due WHERE at <= ? ORDER BY at LIMIT 100", now)
			.toArray();
	}

	setDue(kind: DueKind, at: number, now: number): void {
		this.#writeTimers([{ kind, ref: "", at }], now);
	}
	clearDue(kind: DueKind, now: number): void {
		this.#writeTimers([{ kind, ref: "", at: null }], now);
	}

	call(tool_call_id: string): CallRecord | undefined {
		return this.#one<CallRecord>("SELECT doc FROM call WHERE tool_call_id = ?", tool_call_id);
	}
	callsOfTurn(turn: number): CallRecord[] {
		return this.#all<CallRecord>("SELECT doc FROM call WHERE turn = ? ORDER BY ordinal", turn);
	}
	lastCalls(limit: number): CallRecord[] {
		return this.#all<CallRecord>("SELECT doc FROM call ORDER BY turn DESC, ordinal DESC LIMIT ?", limit).reverse();
	}
	/** Completed results by the planner's own id, latest last: what a script's placeholders may name. */
	results(): Map<string, CallRecord> {
		const calls = this.#all<CallRecord>("SELECT doc FROM call WHERE state = 'COMPLETED' ORDER BY turn, ordinal");
		return new Map(calls.map((call) => [call.provider_call_id, call]));
	}
	approval(approval_id: string): ApprovalRecord | undefined {
		return this.#one<ApprovalRecord>("SELECT doc FROM approval WHERE approval_id = ?", approval_id);
	}
	approvalsSince(seq: number): ApprovalRecord[] {
		return this.#all<ApprovalRecord>("SELECT doc FROM approval WHERE seq > ? ORDER BY seq", seq);
	}
	messages(): StoredMessage[] {
		return this.#all<StoredMessage>("SELECT doc FROM message ORDER BY n");
	}
	definition(definition_hash: string): ToolVersion | undefined {
		return this.#one<ToolVersion>("SELECT doc FROM definition WHERE definition_hash = ?", definition_hash);
	}
	script(n: number): WireDecision | undefined {
		return this.#one<WireDecision>("SELECT doc FROM script WHERE n = ?", n);
	}

	log(after_seq: number, limit: number, event?: string): LogRow[] {
		const where = event === undefined ? "" : "AND event = ?";
		const binds = event === undefined ? [after_seq, limit] : [after_seq, event, limit];
		return this.#sql
			.exec<StoredLogRow>(
				`SELECT seq, at, event, doc, audit FROM log WHERE seq > ? ${where} ORDER BY seq LIMIT ?`,
				...binds,
			)
			.toArray()
			.map((row) => this.#logRow(row));
	}

	#logRow({ seq, at, event, doc, audit }: StoredLogRow): LogRow {
		return {
			seq,
			at,
			event,
			data: this.#unpack(`log:${seq}`, doc),
			audit: audit === null ? null : this.#unpack(`audit:${seq}`, audit),
		};
	}

	/** The entries that an index outside wants to know of: each carries its audit part (evidence does, and nothing else). */
	audited(after_seq: number, limit: number): LogRow[] {
		return this.#sql
			.exec<StoredLogRow>(
				"SELECT seq, at, event, doc, audit FROM log WHERE seq > ? AND audit IS NOT NULL ORDER BY seq LIMIT ?",
				after_seq,
				limit,
			)
			.toArray()
			.map((row) => this.#logRow(row));
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

	putLink(token_hash: string, approval_id: string, doc: object): void {
		this.#sql.exec("INSERT INTO link VALUES (?, ?, ?, NULL)", token_hash, approval_id, JSON.stringify(doc));
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

	#one<T>(query: string, ...binds: (string | number)[]): T | undefined {
		return this.#all<T>(query, ...binds)[0];
	}
	#all<T>(query: string, ...binds: (string | number)[]): T[] {
		return this.#sql
			.exec<{ doc: string }>(query, ...binds)
			.toArray()
			.map(({ doc }) => this.#unpack(doc.startsWith(CHUNKED) ? doc.slice(1) : "", doc));
	}

	/** C03: a cell stops at 2 MB; a text of up to 256 Ki characters fits, a longer one is kept in parts. */
	#pack(owner: string, value: unknown): string {
		const text = JSON.stringify(value);
		if (text.length <= BODY_CHUNK_BYTES) return text;
		this.#sql.exec("DELETE FROM body WHERE owner = ?", owner);
		for (let part = 0; part * BODY_CHUNK_BYTES < text.length; part++) {
			const data = text.slice(part * BODY_CHUNK_BYTES, (part + 1) * BODY_CHUNK_BYTES);
			// JSON-quoted: a cut may fall inside a surrogate pair, which SQLite's UTF-8 could not hold.
			this.#sql.exec("INSERT INTO body VALUES (?, ?, ?)", owner, part, JSON.stringify(data));
		}
		return CHUNKED + owner;
	}
	#unpack<T>(owner: string, text: string): T {
		if (!text.startsWith(CHUNKED)) return JSON.parse(text) as T;
		const parts = this.#sql
			.exec<{ data: string }>("SELECT data FROM body WHERE owner = ? ORDER BY part", owner)
			.toArray();
		return JSON.parse(parts.map(({ data }) => JSON.parse(data) as string).join("")) as T;
	}
}
