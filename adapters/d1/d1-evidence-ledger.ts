/**
 * The index of what runs did, written by each run's one flusher. Idempotent by key, so a flush whose answer was lost is
 * simply sent again; a row that cannot be written is parked and named, and never holds back the rows behind it
 * (decision 40). It holds no bodies and is never on a run's path: with D1 away `append` throws `D1Unavailable` and the
 * run's cursor stays where it was.
 */
import type { AuditRow, EvidenceLedger, LedgerBatch } from "#core/ports.ts";
import { type BulkTable, bulkInsert, type Row, rowBytes, unfit } from "./bulk-insert.ts";
import {
	D1_DEADLINES,
	type D1Deadlines,
	D1Unavailable,
	type DatabaseSource,
	databaseOf,
	readD1,
	writeD1,
} from "./d1-unavailable.ts";
import { approvals, audit, evidence, parkedRows, runs } from "./schema.ts";

const TABLES = {
	run: { table: runs, on_conflict: "newest" },
	approval: { table: approvals, on_conflict: "newest" },
	evidence: { table: evidence, on_conflict: "keep" },
	audit: { table: audit, on_conflict: "keep" },
	parked: { table: parkedRows, on_conflict: "keep" },
} as const satisfies Record<string, BulkTable>;

export type LedgerRowKind = "run" | "approval" | "evidence" | "audit";
/** A row that was not written: where it belongs, its key (`seq` or an id) and why (`row_too_large`, `bad_member:…`, `refused_by_database`). */
export type ParkedRow = {
	readonly run_id: string;
	readonly kind: LedgerRowKind;
	readonly row_key: string;
	readonly reason: string;
	readonly bytes: number;
};
type Item = { readonly kind: LedgerRowKind; readonly row_key: string; readonly row: Row };

export class D1EvidenceLedger implements EvidenceLedger {
	readonly #database: (tenant_id: string) => D1Database;
	readonly #limits: D1Deadlines;

	constructor(source: DatabaseSource, limits: D1Deadlines = D1_DEADLINES) {
		this.#database = databaseOf(source);
		this.#limits = limits;
	}

	async append(batch: LedgerBatch): Promise<void> {
		await this.write(batch);
	}

	/** `append` that says which rows were parked; they are recorded in `parked_rows` as well. Throws `D1Unavailable`. */
	async write(batch: LedgerBatch): Promise<readonly ParkedRow[]> {
		const items = itemsOf(batch);
		const reasons = items.map((item) => unfit(TABLES[item.kind].table, item.row));
		const parked = items.flatMap((item, n) => park(batch, item, reasons[n]) ?? []);
		const fit = items.filter((_, n) => reasons[n] === undefined);
		try {
			await this.#send(batch, fit, parked);
			return parked;
		} catch (error) {
			await this.#answersOrThrow(batch, error);
		}
		const refused = await this.#isolate(batch, fit);
		const all = [...parked, ...refused];
		await this.#send(batch, [], all);
		return all;
	}

	/** Everything in one D1 batch: one round trip, one transaction. */
	async #send(batch: LedgerBatch, items: readonly Item[], parked: readonly ParkedRow[]): Promise<void> {
		const db = this.#database(batch.tenant_id);
		const rows = { run: [], approval: [], evidence: [], audit: [], parked: [...parked] } as Record<
			keyof typeof TABLES,
			Row[]
		>;
		for (const item of items) rows[item.kind].push(item.row);
		const statements = Object.entries(TABLES).flatMap(([kind, into]) =>
			bulkInsert(db, into, batch.tenant_id, rows[kind as keyof typeof TABLES]),
		);
		if (statements.length > 0) await writeD1("append to the ledger", () => db.batch(statements), this.#limits);
	}

	/** A database that refuses the batch but answers a plain question has been given something it cannot take. */
	async #answersOrThrow(batch: LedgerBatch, error: unknown): Promise<void> {
		if (!(error instanceof D1Unavailable) || error.timed_out) throw error;
		await readD1("append to the ledger", () => this.#database(batch.tenant_id).prepare("SELECT 1").all(), this.#limits);
	}

	/** Halves the rows until what is refused stands alone: few statements for one bad row among hundreds. */
	async #isolate(batch: LedgerBatch, items: readonly Item[]): Promise<ParkedRow[]> {
		if (items.length === 0) return [];
		try {
			await this.#send(batch, items, []);
			return [];
		} catch (error) {
			await this.#answersOrThrow(batch, error);
		}
		const [only] = items;
		if (items.length === 1 && only !== undefined) return park(batch, only, "refused_by_database") ?? [];
		const middle = Math.ceil(items.length / 2);
		return [
			...(await this.#isolate(batch, items.slice(0, middle))),
			...(await this.#isolate(batch, items.slice(middle))),
		];
	}
}

function itemsOf(batch: LedgerBatch): Item[] {
	return [
		{ kind: "run", row_key: batch.run.run_id, row: { ...batch.run } },
		...batch.approvals.map((row): Item => ({ kind: "approval", row_key: row.approval_id, row: { ...row } })),
		...batch.evidence.map((row): Item => ({ kind: "evidence", row_key: String(row.seq), row: { ...row } })),
		...batch.audit.map(
			(row): Item => ({ kind: "audit", row_key: String(row.seq), row: auditRow(row.run_id ?? batch.run.run_id, row) }),
		),
	];
}

/** An audit row as stored: JSON members as text, `stream_id` beside the run so that rows without a run have a key. */
export function auditRow(stream_id: string, row: AuditRow): Row {
	return {
		...row,
		stream_id,
		input_params: JSON.stringify(row.input_params),
		security_flags: JSON.stringify(row.security_flags),
	};
}

function park(batch: LedgerBatch, item: Item, reason: string | undefined): ParkedRow[] | undefined {
	if (reason === undefined) return undefined;
	return [{ run_id: batch.run.run_id, kind: item.kind, row_key: item.row_key, reason, bytes: rowBytes(item.row) }];
}
