/**
 * Who exists in a tenant: people, agents and services. It keeps names and addresses; what somebody may do is the authority
 * store's answer. Called by the key routes (making, finding) and by link sending (whose address is this?).
 */
import * as z from "zod";
import { PRINCIPAL_KINDS } from "#core/principal.ts";
import { readD1, writeD1 } from "./d1-unavailable.ts";

const principalRow = z.object({
	principal_id: z.string(),
	kind: z.enum(PRINCIPAL_KINDS),
	name: z.string(),
	/** Lowercase; registered by an administrator, which is what makes it a verified address. */
	email: z.string().nullable(),
	created_at: z.string(),
	disabled_at: z.string().nullable(),
});
export type PrincipalRow = z.infer<typeof principalRow>;

const COLUMNS = "principal_id, kind, name, email, created_at, disabled_at";

export class D1Principals {
	readonly #db: D1Database;

	constructor(db: D1Database) {
		this.#db = db;
	}

	async get(tenant_id: string, principal_id: string): Promise<PrincipalRow | undefined> {
		const row = await readD1("read a principal", () =>
			this.#db
				.prepare(`SELECT ${COLUMNS} FROM principals WHERE tenant_id = ?1 AND principal_id = ?2`)
				.bind(tenant_id, principal_id)
				.first(),
		);
		return principalRow.safeParse(row).data;
	}

	/** Enabled people with this address; more than one may share it. `email` is compared without regard to case. */
	async peopleAt(tenant_id: string, email: string): Promise<PrincipalRow[]> {
		const { results } = await readD1("find people by address", () =>
			this.#db
				.prepare(
					`SELECT ${COLUMNS} FROM principals WHERE tenant_id = ?1 AND kind = 'user' AND disabled_at IS NULL AND lower(email) = ?2 ORDER BY principal_id LIMIT 20`,
				)
				.bind(tenant_id, email.toLowerCase())
				.all(),
		);
		return results.flatMap((row) => principalRow.safeParse(row).data ?? []);
	}

	/** False when the id is taken; nothing is replaced. */
	async insert(tenant_id: string, one: Omit<PrincipalRow, "disabled_at">): Promise<boolean> {
		const done = await writeD1("make a principal", () =>
			this.#db
				.prepare(
					`INSERT INTO principals (tenant_id, principal_id, kind, name, email, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
					ON CONFLICT (tenant_id, principal_id) DO NOTHING`,
				)
				.bind(tenant_id, one.principal_id, one.kind, one.name, one.email?.toLowerCase() ?? null, one.created_at)
				.run(),
		);
		return done.meta.changes > 0;
	}
}
