/** Decision 21: a session id belongs to the principal that used it first, in its tenant. Called when a run is made. */
import { writeD1 } from "./d1-unavailable.ts";

export class D1Sessions {
	readonly #db: D1Database;

	constructor(db: D1Database) {
		this.#db = db;
	}

	/**
	 * `bound` when the session is this principal's, now or before; `taken` when it is another's. Two that arrive together
	 * are told apart by the primary key. Throws `D1Unavailable`.
	 */
	async bind(tenant_id: string, session_id: string, principal_id: string, now: string): Promise<"bound" | "taken"> {
		const [, owner] = await writeD1("bind a session", () =>
			this.#db.batch<{ principal_id: string }>([
				this.#db
					.prepare(
						"INSERT INTO sessions (tenant_id, session_id, principal_id, created_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (tenant_id, session_id) DO NOTHING",
					)
					.bind(tenant_id, session_id, principal_id, now),
				this.#db
					.prepare("SELECT principal_id FROM sessions WHERE tenant_id = ?1 AND session_id = ?2")
					.bind(tenant_id, session_id),
			]),
		);
		return owner?.results[0]?.principal_id === principal_id ? "bound" : "taken";
	}
}
