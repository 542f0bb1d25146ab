/**
 * What a principal's roles add up to. It only unites; what a permission covers is core's to judge. Called by the Worker
 * for each caller (with a short cache in front) and by runs when they judge again.
 */
import { and, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { AuthorityStore } from "#core/ports.ts";
import { type Authority, type Role, role } from "#core/principal.ts";
import { readD1 } from "./d1-unavailable.ts";
import { principals, roleBindings, roles } from "./schema.ts";
import { storedJson } from "./stored-json.ts";

const SCOPES = ["own", "department", "all"] as const;

export class D1AuthorityStore implements AuthorityStore {
	readonly #db: D1Database;

	constructor(db: D1Database) {
		this.#db = db;
	}

	/** The union over the principal's roles and the widest data scope; undefined for an unknown or disabled principal. */
	async resolve(tenant_id: string, principal_id: string, policy_rev: number): Promise<Authority | undefined> {
		const found = await this.roles(tenant_id, principal_id);
		if (found === undefined) return undefined;
		const widest = Math.max(0, ...found.map((one) => SCOPES.indexOf(one.data_scope)));
		return {
			policy_rev,
			roles: found.map((one) => one.name).sort(),
			permissions: union(found.map((one) => one.permissions)),
			tools: union(found.map((one) => one.tools)),
			data_scope: SCOPES[widest] ?? "own",
		};
	}

	/**
	 * The roles themselves, for masking and conditions; undefined for an unknown or disabled principal. A bound role that
	 * does not exist or no longer parses grants nothing.
	 */
	async roles(tenant_id: string, principal_id: string): Promise<Role[] | undefined> {
		const rows = await readD1("resolve roles", () =>
			drizzle(this.#db)
				.select({ disabled_at: principals.disabled_at, name: roles.name, role: roles.role })
				.from(principals)
				.leftJoin(
					roleBindings,
					and(eq(roleBindings.tenant_id, principals.tenant_id), eq(roleBindings.principal_id, principals.principal_id)),
				)
				.leftJoin(roles, and(eq(roles.tenant_id, principals.tenant_id), eq(roles.name, roleBindings.role)))
				.where(and(eq(principals.tenant_id, tenant_id), eq(principals.principal_id, principal_id))),
		);
		const [first] = rows;
		if (first === undefined || first.disabled_at !== null) return undefined;
		return rows.flatMap((row) => {
			const parsed = row.role === null ? undefined : storedJson(role, row.role);
			return parsed === undefined || parsed.name !== row.name ? [] : [parsed];
		});
	}
}

function union(lists: readonly (readonly string[])[]): string[] {
	return [...new Set(lists.flat())].sort();
}
