/**
 * What the platform's object said last, kept durably beside a tenant's own halts. Asked at most every LEASE_TTL_MS. When
 * it cannot be reached the last word stands: a halt of everything is not lifted by an outage, nor is one invented. Only
 * TenantControl uses it.
 */
import { LEASE_TTL_MS, PLATFORM_ASK_MS } from "#core/limits.ts";
import type { Clock } from "#core/ports.ts";
import type { Halt } from "./api.ts";

const SCHEMA = "CREATE TABLE IF NOT EXISTS platform_word (id INTEGER PRIMARY KEY CHECK (id = 1), doc TEXT NOT NULL);";

export class PlatformWord {
	readonly #sql: SqlStorage;
	/** Null: nobody can halt everything, so there is nobody to ask. What was heard before stands all the same. */
	readonly #ask: (() => Promise<readonly Halt[]>) | null;
	readonly #clock: Clock;
	#asked_at = Number.NEGATIVE_INFINITY;
	#asking: Promise<boolean> | null = null;
	#doc: string;

	constructor(sql: SqlStorage, ask: (() => Promise<readonly Halt[]>) | null, clock: Clock) {
		this.#sql = sql;
		this.#ask = ask;
		this.#clock = clock;
		this.#sql.exec(SCHEMA);
		this.#doc = this.#sql.exec<{ doc: string }>("SELECT doc FROM platform_word").toArray()[0]?.doc ?? "[]";
	}

	halts(): readonly Halt[] {
		return JSON.parse(this.#doc) as Halt[];
	}

	/** Asks when the last word is old; true when it differs from the one before. Never rejects. */
	refresh(): Promise<boolean> {
		const age = this.#clock() - this.#asked_at;
		// a clock that went back asks again
		if (this.#ask === null || (age >= 0 && age < LEASE_TTL_MS)) return this.#asking ?? Promise.resolve(false);
		this.#asked_at = this.#clock();
		const asking = this.#hear(this.#ask).finally(() => {
			if (this.#asking === asking) this.#asking = null;
		});
		this.#asking = asking;
		return asking;
	}

	async #hear(ask: () => Promise<readonly Halt[]>): Promise<boolean> {
		let timer: ReturnType<typeof setTimeout> | undefined;
		try {
			const late = new Promise<null>((resolve) => {
				timer = setTimeout(() => resolve(null), PLATFORM_ASK_MS);
			});
			const said = await Promise.race([ask(), late]);
			if (said === null) return false;
			const doc = JSON.stringify(said);
			if (doc === this.#doc) return false;
			this.#sql.exec("INSERT OR REPLACE INTO platform_word VALUES (1, ?)", doc);
			this.#doc = doc;
			return true;
		} catch {
			return false;
		} finally {
			clearTimeout(timer);
		}
	}
}
