/**
 * The run's log on its way to D1: a cursor into the log, not a second table (decision 3). One flusher per run; it is off
 * the hot path, repeats until D1 has the rows, and a repeat adds nothing (decision 40).
 */
import { maskText } from "#core/data/mask.ts";
import type { Evidence } from "#core/evidence/record.ts";
import type { EvidenceLedger, LedgerBatch } from "#core/ports.ts";
import type { LogRow } from "#core/run/effect.ts";
import type { RunRecord } from "#core/run/state.ts";
import type { RunStore } from "./store.ts";

/** Log rows per batch: far under what one D1 batch takes. */
const BATCH_ROWS = 500;
/** Entries kept in memory for the next flush, and their audit's text; a run has them in its storage as well. */
const FRESH_ROWS = 200;
const FRESH_MAX_CHARS = 1_048_576;
const GOAL_MAX_CHARS = 500;

/** How long a step's rows may wait for their way to D1, so that several go together, ms. */
const FLUSH_DELAY_MS = 1_000;
/** The same for a run that keeps moving: D1 sees it this often, ms. Its end, and what people decide, do not wait so long. */
const FLUSH_INTERVAL_MS = 5_000;
/** When the alarm looks after rows whose flush failed or died with the object, ms. */
const FLUSH_RETRY_MS = 10_000;

export class Flusher {
	readonly #ctx: DurableObjectState;
	readonly #store: RunStore;
	readonly #ledger: EvidenceLedger;
	readonly #run: () => RunRecord | null;
	#running: Promise<boolean> | null = null;
	#next: { readonly at: number; readonly timer: ReturnType<typeof setTimeout> } | null = null;
	/** When the last flush began, ms since the epoch. */
	#flushed_at = 0;
	/** The entries after `after` that D1 wants, and up to `until`: a flush reads nothing from storage while it needs no others. */
	#fresh: { after: number; until: number; rows: LogRow[]; chars: number } | null = null;

	constructor(ctx: DurableObjectState, store: RunStore, ledger: EvidenceLedger, run: () => RunRecord | null) {
		this.#ctx = ctx;
		this.#store = store;
		this.#ledger = ledger;
		this.#run = run;
	}

	/** Flushes with what else comes within a moment, `now` rather than within a while. */
	soon(now = false): void {
		const at = Math.max(Date.now() + FLUSH_DELAY_MS, now ? 0 : this.#flushed_at + FLUSH_INTERVAL_MS);
		if (this.#next !== null && this.#next.at <= at) return;
		if (this.#next === null) this.#timer(FLUSH_RETRY_MS);
		else clearTimeout(this.#next.timer);
		const timer = setTimeout(() => {
			this.#next = null;
			this.#ctx.waitUntil(this.flush());
		}, at - Date.now());
		this.#next = { at, timer };
	}

	/** A step logged this; `now` as of `soon`. */
	saw(logged: readonly LogRow[], now: boolean): void {
		this.#remember(logged);
		this.soon(now);
	}

	#remember(logged: readonly LogRow[]): void {
		const [first] = logged;
		if (first === undefined) return;
		const before = first.seq - 1;
		if (this.#fresh?.until !== before) this.#fresh = { after: before, until: before, rows: [], chars: 0 };
		const fresh = this.#fresh;
		for (const row of logged) {
			if (row.audit === null) continue;
			fresh.rows.push(row);
			// The record's input is the audit's: the same object.
			fresh.chars += JSON.stringify(row.audit).length;
		}
		fresh.until += logged.length;
		// D1 is away, or slow, or the arguments are long: storage has them all.
		if (fresh.rows.length > FRESH_ROWS || fresh.chars > FRESH_MAX_CHARS) this.#fresh = null;
	}

	/** The next entries for D1 after `from`, as `RunLog.audited`. Memory has them only if it saw the run's last one, `until`. */
	#audited(from: number, until: number): ReturnType<RunStore["log"]["audited"]> {
		const fresh = this.#fresh;
		if (fresh === null || from < fresh.after || fresh.until !== until) return this.#store.log.audited(from, BATCH_ROWS);
		return { rows: fresh.rows.filter((row) => row.seq > from), to: null };
	}

	/** D1 has everything up to here; an idle run holds nothing for it. */
	#sent(to: number): void {
		this.#store.markFlushed(to);
		if (this.#fresh === null || to <= this.#fresh.after) return;
		const rows = this.#fresh.rows.filter((row) => row.seq > to);
		const chars = rows.reduce((sum, row) => sum + JSON.stringify(row.audit).length, 0);
		this.#fresh = { ...this.#fresh, after: to, rows, chars };
	}

	/** True when D1 has everything there was. Joins a flush that is under way, then looks again at what came meanwhile. */
	async flush(): Promise<boolean> {
		if (this.#running !== null) await this.#running;
		this.#running ??= this.#drain().finally(() => {
			this.#running = null;
		});
		const done = await this.#running;
		// Rows that came while the last ones were on their way keep the timer; so does the next flush, for those that come until then.
		if (done && this.#next === null && this.#store.flushed() >= (this.#run()?.seq ?? 0)) this.#timer(null);
		else if (!done) this.#timer(FLUSH_RETRY_MS);
		return done;
	}

	/** As `flush`, but waited for `ms` at most: with D1 away, or slow, it goes on by itself. */
	async within(ms: number): Promise<void> {
		const { promise: late, resolve } = Promise.withResolvers<void>();
		const timer = setTimeout(resolve, ms);
		await Promise.race([this.flush(), late]);
		clearTimeout(timer);
	}

	/** The flush's twin in storage: should this life end before the rows are in D1, the alarm brings them. */
	#timer(in_ms: number | null): void {
		const now = Date.now();
		this.#store.timers.write([{ kind: "flush", ref: "", at: in_ms === null ? null : now + in_ms }], now);
	}

	/** Up to where the run is now: what comes meanwhile goes with the next flush, or a busy run would send each call by itself. */
	async #drain(): Promise<boolean> {
		this.#flushed_at = Date.now();
		const goal = this.#run()?.seq ?? 0;
		try {
			for (;;) {
				const from = this.#store.flushed();
				const run = this.#run();
				if (run === null || from >= goal) return true;
				const { rows, to: last } = this.#audited(from, run.seq);
				// None left behind them: what came after the last of them wants no index.
				const to = last ?? run.seq;
				await this.#ledger.append(this.#batch(run, rows, from));
				this.#sent(to);
			}
		} catch {
			return false;
		}
	}

	#batch(run: RunRecord, rows: readonly LogRow[], from: number): LedgerBatch {
		const { run_id, session_id, trace_id, principal, status, seq, created_at, updated_at } = run;
		const { principal_id } = principal;
		return {
			tenant_id: run.tenant_id,
			run: {
				run_id,
				session_id,
				principal_id,
				trace_id,
				status,
				goal: maskText(run.goal).slice(0, GOAL_MAX_CHARS).toWellFormed(),
				planner_kind: run.planner.kind,
				seq,
				created_at,
				updated_at,
			},
			approvals: this.#store.approvalsSince(from).map((approval) => ({
				approval_id: approval.approval_id,
				run_id,
				tool_id: approval.tool_id,
				domain: approval.domain,
				status: approval.status,
				requested_by: approval.requested_by,
				seq: approval.seq,
				created_at: approval.created_at,
				expires_at: approval.expires_at,
			})),
			evidence: rows
				.filter((row) => row.event === "evidence.recorded")
				.map((row) => row.data as unknown as Evidence)
				.map(({ evidence_id, seq: at_seq, tool_call_id, tool_id, outcome, input_hash, hash, at }) => ({
					evidence_id,
					run_id,
					seq: at_seq,
					tool_call_id,
					tool_id,
					outcome,
					input_hash: input_hash ?? "",
					hash,
					at,
				})),
			audit: rows.flatMap((row) =>
				row.audit === null
					? []
					: [{ ...row.audit, run_id, seq: row.seq, trace_id, at: row.at, session_id, principal_id }],
			),
		};
	}
}
