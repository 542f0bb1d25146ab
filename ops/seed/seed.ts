/**
 * The development tenant (decision 22): principals, roles, tools and a channel, as statements for any D1 client. Sending
 * them again changes nothing but adds the keys of this start; it never touches what a developer has changed since. It is
 * not for production: whoever starts Belay there makes a tenant of their own. Called by `npm start` and by tests.
 */
import { insertVersions, type SqlStatement } from "#adapters/d1/d1-tool-catalog.ts";
import type { Principal } from "#core/principal.ts";
import type { ToolDescriptor } from "#core/registry/descriptor.ts";
import { ROLES, type RoleName } from "./roles.ts";
import { DEMO_TOOLS } from "./tools.ts";

export const DEVELOPMENT_TENANT = "tenant_dev";
/** Keys of a forgotten state directory end by themselves. */
export const DEVELOPMENT_KEY_DAYS = 30;

type SeedPrincipal = Omit<Principal, "tenant_id"> & {
	readonly email: string | null;
	readonly department: string | null;
	readonly roles: readonly RoleName[];
};

/** `agent` may use every tool that operator may, and administers nothing because of its kind (decision 18). */
export const DEVELOPMENT_PRINCIPALS = {
	operator: {
		principal_id: "usr_operator",
		kind: "user",
		name: "operator@example.com",
		email: "operator@example.com",
		department: "operations",
		roles: ["agent_operator"],
	},
	approver: {
		principal_id: "usr_approver",
		kind: "user",
		name: "approver@example.com",
		email: "approver@example.com",
		department: "finance",
		roles: ["approver"],
	},
	reader: {
		principal_id: "usr_reader",
		kind: "user",
		name: "reader@example.com",
		email: "reader@example.com",
		department: "sales",
		roles: ["agent_reader"],
	},
	limited: {
		principal_id: "agt_limited",
		kind: "agent",
		name: "limited agent",
		email: null,
		department: null,
		roles: ["agent_limited"],
	},
	agent: {
		principal_id: "agt_agent",
		kind: "agent",
		name: "agent",
		email: null,
		department: null,
		roles: ["agent_operator"],
	},
} as const satisfies Record<string, SeedPrincipal>;
export type DevelopmentPrincipal = keyof typeof DEVELOPMENT_PRINCIPALS;

export type SeedInput = {
	readonly tenant_id?: string;
	/** ISO 8601 UTC. */
	readonly now: string;
	/** Of this start: `hash` is the SHA-256 of the whole key in lowercase hex. The key itself is not asked for. */
	readonly keys: readonly {
		readonly hash: string;
		readonly prefix: string;
		readonly last4: string;
		readonly principal: DevelopmentPrincipal;
	}[];
	/** `definitionHash` of core/registry with the caller's digest. */
	readonly definitionHash: (descriptor: ToolDescriptor) => string;
};

/** The statements, in an order that a batch or a script can follow; parameters are `?1`, `?2` … */
export function seedStatements(input: SeedInput): SqlStatement[] {
	const tenant_id = input.tenant_id ?? DEVELOPMENT_TENANT;
	const { now } = input;
	return [
		insert("tenants", { tenant_id, name: "Development", created_at: now }),
		...roleStatements(tenant_id, now),
		...Object.values(DEVELOPMENT_PRINCIPALS).flatMap(({ roles, ...principal }) => [
			insert("principals", { tenant_id, ...principal, created_at: now }),
			...roles.map((role) =>
				insert("role_bindings", { tenant_id, principal_id: principal.principal_id, role, created_at: now }),
			),
		]),
		...input.keys.map((key) => keyRow(tenant_id, now, key)),
		insert("channels", {
			tenant_id,
			channel_id: "ch_owner",
			kind: "email",
			name: "owner",
			to: "owner@example.com",
			locale: "en",
			created_at: now,
		}),
		...insertVersions(
			tenant_id,
			DEMO_TOOLS.map((descriptor) => ({
				descriptor,
				definition_hash: input.definitionHash(descriptor),
				created_at: now,
			})),
			"keep",
		),
	];
}

/** The built-in roles, copied into a tenant. */
export function roleStatements(tenant_id: string, now: string): SqlStatement[] {
	return ROLES.map((role) =>
		insert("roles", { tenant_id, name: role.name, role: JSON.stringify(role), updated_at: now }),
	);
}

/** Sends `seedStatements` to a database in one batch. */
export async function seedDevelopment(db: D1Database, input: SeedInput): Promise<void> {
	await db.batch(seedStatements(input).map(({ sql, params }) => db.prepare(sql).bind(...params)));
}

function keyRow(tenant_id: string, now: string, key: SeedInput["keys"][number]): SqlStatement {
	const expires_at = new Date(Date.parse(now) + DEVELOPMENT_KEY_DAYS * 86_400_000).toISOString();
	return insert("api_keys", {
		tenant_id,
		key_id: `key_${key.hash.slice(0, 16)}`,
		key_hash: key.hash,
		prefix: key.prefix,
		last4: key.last4,
		principal_id: DEVELOPMENT_PRINCIPALS[key.principal].principal_id,
		created_at: now,
		expires_at,
	});
}

export function insert(table: string, row: Record<string, string | null>): SqlStatement {
	const names = Object.keys(row);
	return {
		sql: `INSERT INTO ${table} (${names.map((name) => `"${name}"`).join(", ")}) VALUES (${names.map((_, n) => `?${n + 1}`).join(", ")}) ON CONFLICT DO NOTHING`,
		params: Object.values(row),
	};
}
