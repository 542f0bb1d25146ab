/**
 * Halts as intervals in one control object's SQLite (decision 17). Each is open until it is itself ended: two people who
 * halt the same thing do not lift each other's. Judges nobody's right to. Only TenantControl uses it.
 */
import { HALT_MEMORY_MS, HALTS_KEPT_MAX, HALTS_OPEN_MAX } from "#core/limits.ts";
import type { Halt, OpenedHalt } from "./api.ts";

const SCHEMA = `
CREATE TABLE IF NOT EXISTS halts (halt_id TEXT PRIMARY KEY, scope TEXT NOT NULL, reason TEXT NOT NULL, opened_by TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS halts_by_since ON halts (since);
CREATE INDEX IF NOT EXISTS halts_by_until ON halts (until);
`;
const COLUMNS = 'halt_id, scope, reason, opened_by AS "by", since, until';

export class HaltStore {
	readonly #sql: SqlStorage;

	constructor(sql: SqlStorage) {
		this.#sql = sql;
		this.#sql.exec(SCHEMA);
	}

	open({ halt_id, scope, reason, by }: Pick<Halt, "halt_id" | "scope" | "reason" | "by">, now: number): OpenedHalt {
		const known = this.#find(halt_id);
		if (known !== undefined) {
			const same = known.scope === scope && known.reason === reason && known.by === by;
			return same ? { ok: true, halt: known } : { ok: false, reason: "taken" };
		}
		const count = "SELECT count(*) AS n FROM halts WHERE until IS NULL AND (scope LIKE 'tool:%') = ?";
		const open = this.#sql.exec<{ n: number }>(count, scope.startsWith("tool:") ? 1 : 0).one().n;
		if (open >= HALTS_OPEN_MAX) return { ok: false, reason: "too_many" };
		this.#sql.exec("INSERT INTO halts VALUES (?, ?, ?, ?, ?, NULL)", halt_id, scope, reason, by, now);
		this.#prune(now);
		return { ok: true, halt: { halt_id, scope, reason, by, since: now, until: null } };
	}

	end(halt_id: string, of_platform: boolean, now: number): Halt | null {
		const found = this.#find(halt_id);
		if (found === undefined || (found.scope === "all") !== of_platform) return null;
		if (found.until !== null) return found;
		// a clock that went back must not make an interval that ends before it begins
		const until = Math.max(found.since, now);
		this.#sql.exec("UPDATE halts SET until = ? WHERE halt_id = ?", until, halt_id);
		return { ...found, until };
	}

	/** Newest first; every open one, however old. */
	list(): Halt[] {
		return this.#sql
			.exec<Halt>(
				`SELECT ${COLUMNS} FROM halts WHERE until IS NULL OR halt_id IN (SELECT halt_id FROM halts ORDER BY since DESC, halt_id DESC LIMIT ?) ORDER BY since DESC, halt_id DESC`,
				HALTS_KEPT_MAX,
			)
			.toArray();
	}

	/** Open, or ended within HALT_MEMORY_MS; newest first. */
	remembered(now: number): Halt[] {
		const query = `SELECT ${COLUMNS} FROM halts WHERE until IS NULL OR until > ? ORDER BY since DESC, halt_id DESC`;
		return this.#sql.exec<Halt>(query, now - HALT_MEMORY_MS).toArray();
	}

	#find(halt_id: string): Halt | undefined {
		return this.#sql.exec<Halt>(`SELECT ${COLUMNS} FROM halts WHERE halt_id = ?`, halt_id).toArray()[0];
	}

	/** What no approval can have waited under goes, beyond the latest HALTS_KEPT_MAX. */
	#prune(now: number): void {
		this.#sql.exec(
			"DELETE FROM halts WHERE until <= ? AND halt_id NOT IN (SELECT halt_id FROM halts ORDER BY since DESC, halt_id DESC LIMIT ?)",
			now - HALT_MEMORY_MS,
			HALTS_KEPT_MAX,
		);
	}
}
