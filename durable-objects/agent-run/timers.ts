/**
 * The run's timers: a table, and the one alarm over it (decision 5). They are written in the transaction of the step that
 * wants them, and `setAlarm` rolls back with it; those that the state says already are kept in memory only. Knows nothing of
 * what a timer is for. Used by the run's store.
 */
import { DERIVED } from "#core/run/derived-timers.ts";
import type { DueKind } from "#core/run/state.ts";
import { chunks } from "./chunks.ts";
import { complain } from "./complain.ts";

export type Timer = { readonly kind: DueKind; readonly ref: string; readonly at: number | null };
/** The timers that the loaded state says by itself. */
export type Derive = () => { kind: DueKind; ref: string; at: number }[];

/** Three bound values each, and SQLite in an object binds 100 at most. */
const TIMERS_PER_STATEMENT = 30;
/** Timers served by one alarm; what is left rings again at once. */
const SERVED_AT_ONCE = 100;
/** When a timer that could not be served is looked at again, ms. */
const RETRY_MS = 10_000;

export class Timers {
	readonly #storage: DurableObjectStorage;
	readonly #sql: SqlStorage;
	/** When the alarm rings; null: not set, or not known. */
	#armed: number | null = null;
	/** All timers as they stand; null: to be read, and worked out. */
	#due: Map<string, number> | null = null;
	readonly #derived: Derive;
	/** Whether what has no timer now is not likely to set one soon: the run is over. */
	over: () => boolean = () => false;

	constructor(storage: DurableObjectStorage, derived: Derive) {
		this.#storage = storage;
		this.#sql = storage.sql;
		this.#derived = derived;
	}

	async remember(): Promise<void> {
		this.#armed = await this.#storage.getAlarm();
	}

	/**
	 * The last word on each timer counts. What is in the table is known in memory, so a timer that was never set costs no
	 * statement to clear, and the next one due is found without a query.
	 */
	write(timers: readonly Timer[], now: number): void {
		const due = this.#known();
		const known = timers.filter((timer) => timer.at !== null || due.has(`${timer.kind}:${timer.ref}`));
		const stored = known.filter((timer) => !DERIVED.has(timer.kind));
		const set = stored.filter((timer) => timer.at !== null);
		const cleared = stored.filter((timer) => timer.at === null);
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
			for (const { kind, ref, at } of known) {
				if (at === null) due.delete(`${kind}:${ref}`);
				else due.set(`${kind}:${ref}`, at);
			}
			this.arm(now);
		} catch (error) {
			this.#due = null;
			throw error;
		}
	}

	has(kind: DueKind, ref = ""): boolean {
		return this.#known().has(`${kind}:${ref}`);
	}

	#known(): Map<string, number> {
		this.#due ??= new Map(
			this.#sql
				.exec<{ kind: DueKind; ref: string; at: number }>("SELECT kind, ref, at FROM due")
				.toArray()
				.filter(({ kind }) => !DERIVED.has(kind))
				.concat(this.#derived())
				.map(({ kind, ref, at }) => [`${kind}:${ref}`, at]),
		);
		return this.#due;
	}

	/** What a failed transaction left in memory is not what storage holds. */
	forget(): void {
		this.#due = null;
		this.#armed = null;
	}

	/**
	 * An alarm that rings early finds nothing and is set again: cheaper than moving it with every call. Between two turns there
	 * may be no timer either; it is taken back only where it would wake an object that is over for nothing.
	 */
	arm(now: number): void {
		let next = Number.POSITIVE_INFINITY;
		for (const at of this.#known().values()) if (at < next) next = at;
		if (next === Number.POSITIVE_INFINITY) {
			if (this.#armed !== null && this.over()) this.#disarm();
			return;
		}
		if (this.#armed !== null && this.#armed > now && this.#armed <= next) return;
		this.#armed = next;
		void this.#storage.setAlarm(next);
	}

	#disarm(): void {
		this.#armed = null;
		void this.#storage.deleteAlarm();
	}

	/**
	 * The alarm rang. Serves what is due, oldest first, each in a try of its own, and sets the alarm again: one that cannot be
	 * served must not bar those behind it, and the platform gives an alarm up that fails a few times. So it never fails, not
	 * even where the run itself cannot be made `ready`; that is false where there is no run.
	 */
	async ring(
		clock: () => number,
		ready: () => Promise<boolean>,
		one: (kind: DueKind, ref: string) => Promise<void>,
	): Promise<void> {
		this.#armed = null;
		try {
			if (!(await ready())) return;
		} catch (error) {
			complain("a run could not be recovered", error);
			this.#armed = clock() + RETRY_MS;
			void this.#storage.setAlarm(this.#armed);
			return;
		}
		for (const { kind, ref } of this.#ripe(clock())) {
			try {
				await one(kind, ref);
			} catch (error) {
				complain("a timer could not be served", error, kind);
				this.write([{ kind, ref, at: clock() + RETRY_MS }], clock());
			}
		}
		this.arm(clock());
	}

	/** Timers that are due, oldest first; they stay until the step that serves them takes them out. */
	#ripe(now: number): { kind: DueKind; ref: string }[] {
		return [...this.#known()]
			.filter(([, at]) => at <= now)
			.sort(([, a], [, b]) => a - b)
			.slice(0, SERVED_AT_ONCE)
			.map(([name]) => ({ kind: name.slice(0, name.indexOf(":")) as DueKind, ref: name.slice(name.indexOf(":") + 1) }));
	}
}
