/**
 * Roles and who holds them, at rest. It unites nothing and judges nothing: that is the authority store's and core's work.
 * Whoever changes something here tells TenantControl afterwards. Called by the role routes and by key making.
 */
import * as z from "zod";
import { type Role, role } from "#core/principal.ts";
import { readD1, writeD1 } from "./d1-unavailable.ts";
import { storedJson } from "./stored-json.ts";

const bindingRow = z.object({ principal_id: z.string(), role: z.string(), created_at: z.string() });
export type RoleBinding = z.infer<typeof bindingRow>;

export class D1Roles {
	readonly #db: D1Database;

	constructor(db: D1Database) {
		this.#db = db;
	}

	async get(tenant_id: string, name: string): Promise<Role | undefined> {
		const row = await readD1("read a role", () =>
			this.#db
				.prepare("SELECT role FROM roles WHERE tenant_id = ?1 AND name = ?2")
				.bind(tenant_id, name)
				.first<{ role: string }>(),
		);
		return row === null ? undefined : storedJson(role, row.role);
	}

	/** By name; a row that no longer parses is left out, as it grants nothing. */
	async list(tenant_id: string): Promise<Role[]> {
		const { results } = await readD1("list roles", () =>
			this.#db
				.prepare("SELECT role FROM roles WHERE tenant_id = ?1 ORDER BY name")
				.bind(tenant_id)
				.all<{ role: string }>(),
		);
		return results.flatMap((row) => storedJson(role, row.role) ?? []);
	}

	/** Creates or replaces. */
	async put(tenant_id: string, one: Role, now: string): Promise<void> {
		await writeD1("store a role", () =>
			this.#db
				.prepare(
					`INSERT INTO roles (tenant_id, name, role, updated_at) VALUES (?1, ?2, ?3, ?4)
					ON CONFLICT (tenant_id, name) DO UPDATE SET role = excluded.role, updated_at = excluded.updated_at`,
				)
				.bind(tenant_id, one.name, JSON.stringify(one), now)
				.run(),
		);
	}

	/** Deletes a role that nobody holds: in one statement, so that no binding slips in between. */
	async deleteUnbound(tenant_id: string, name: string): Promise<boolean> {
		const done = await writeD1("delete a role", () =>
			this.#db
				.prepare(
					`DELETE FROM roles WHERE tenant_id = ?1 AND name = ?2
					AND NOT EXISTS (SELECT 1 FROM role_bindings WHERE tenant_id = ?1 AND role = ?2)`,
				)
				.bind(tenant_id, name)
				.run(),
		);
		return done.meta.changes > 0;
	}

	/** All bindings of the tenant, or of one principal. */
	async bindings(tenant_id: string, principal_id?: string): Promise<RoleBinding[]> {
		const { results } = await readD1("list role bindings", () =>
			this.#db
				.prepare(
					`SELECT principal_id, role, created_at FROM role_bindings WHERE tenant_id = ?1 AND (?2 IS NULL OR principal_id = ?2)
					ORDER BY principal_id, role`,
				)
				.bind(tenant_id, principal_id ?? null)
				.all(),
		);
		return results.flatMap((row) => bindingRow.safeParse(row).data ?? []);
	}

	/** Binds roles to a principal; those it holds already stay as they are. */
	async bind(tenant_id: string, principal_id: string, roles: readonly string[], now: string): Promise<void> {
		await writeD1("bind roles", () =>
			this.#db
				.prepare(
					`INSERT INTO role_bindings (tenant_id, principal_id, role, created_at)
					SELECT ?1, ?2, value, ?4 FROM json_each(?3) WHERE true ON CONFLICT (tenant_id, principal_id, role) DO NOTHING`,
				)
				.bind(tenant_id, principal_id, JSON.stringify(roles), now)
				.run(),
		);
	}

	/** False when there was no such binding. */
	async unbind(tenant_id: string, principal_id: string, name: string): Promise<boolean> {
		const done = await writeD1("unbind a role", () =>
			this.#db
				.prepare("DELETE FROM role_bindings WHERE tenant_id = ?1 AND principal_id = ?2 AND role = ?3")
				.bind(tenant_id, principal_id, name)
				.run(),
		);
		return done.meta.changes > 0;
	}
}
