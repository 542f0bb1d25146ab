/**
 * The ledger's memory twin: what `EvidenceLedger` promises, as short as it can be said. Passes the same contract suite as
 * the real one, so tests of runs may stand on it.
 */
import { INDEX_ROW_MAX_BYTES } from "#core/limits.ts";
import type {
	ApprovalIndexRow,
	AuditRow,
	EvidenceIndexRow,
	EvidenceLedger,
	LedgerBatch,
	RunIndexRow,
} from "#core/ports.ts";

export class MemoryLedger implements EvidenceLedger {
	readonly #runs = new Map<string, RunIndexRow>();
	readonly #approvals = new Map<string, ApprovalIndexRow>();
	readonly #evidence = new Map<string, EvidenceIndexRow>();
	readonly #audit = new Map<string, AuditRow>();

	async append(batch: LedgerBatch): Promise<void> {
		await this.write(batch);
	}

	async write(batch: LedgerBatch): Promise<readonly { kind: string; row_key: string; reason: string }[]> {
		const parked: { kind: string; row_key: string; reason: string }[] = [];
		const keep = <T extends { readonly seq: number }>(
			kind: string,
			rows: Map<string, T>,
			row: T,
			id: string,
			row_key: string,
			newest: boolean,
		) => {
			const reason = unfit(row);
			if (reason !== undefined) {
				parked.push({ kind, row_key, reason });
				return;
			}
			const key = JSON.stringify([batch.tenant_id, id]);
			const old = rows.get(key);
			if (old === undefined || (newest && row.seq > old.seq)) rows.set(key, structuredClone(row));
		};
		const at = (row: { readonly run_id: string | null; readonly seq: number }) =>
			`${row.run_id ?? batch.run.run_id}:${row.seq}`;
		keep("run", this.#runs, batch.run, batch.run.run_id, batch.run.run_id, true);
		for (const row of batch.approvals) keep("approval", this.#approvals, row, row.approval_id, row.approval_id, true);
		for (const row of batch.evidence) keep("evidence", this.#evidence, row, at(row), String(row.seq), false);
		for (const row of batch.audit) keep("audit", this.#audit, row, at(row), String(row.seq), false);
		return parked;
	}

	runs = async (tenant_id: string) => this.#of(this.#runs, tenant_id);
	approvals = async (tenant_id: string) => this.#of(this.#approvals, tenant_id);
	evidence = async (tenant_id: string) => this.#of(this.#evidence, tenant_id);
	audit = async (tenant_id: string) => this.#of(this.#audit, tenant_id);

	#of<T extends { readonly seq: number }>(rows: Map<string, T>, tenant_id: string): T[] {
		return [...rows]
			.filter(([key]) => JSON.parse(key)[0] === tenant_id)
			.map(([, row]) => row)
			.sort((a, b) => a.seq - b.seq);
	}
}

function unfit(row: { readonly [name: string]: unknown }): string | undefined {
	if (new TextEncoder().encode(JSON.stringify(row)).length > INDEX_ROW_MAX_BYTES) return "row_too_large";
	return Number.isSafeInteger(row.seq) ? undefined : "bad_member:seq";
}
