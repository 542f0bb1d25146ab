/**
 * A tenant of a deployment as SQL text: the tenant, the built-in roles, one person who may administer everything, and one
 * API key, of which the text holds the SHA-256 only. It has no tools and no further principals: those are made over the
 * API. Called by `npm run tenant`; pure, so that what would be executed can be read first.
 */
import { createHash } from "node:crypto";
import type { SqlStatement } from "#adapters/d1/d1-tool-catalog.ts";
import type { RoleName } from "./roles.ts";
import { insert, roleStatements } from "./seed.ts";

/** As `POST /v1/keys` makes them (workers/api/routes/keys.ts). */
const PREFIX = "belay_live_";
const PRINCIPAL_ID = "usr_owner";
const ROLE: RoleName = "agent_operator";
const NAME_CHARACTERS = 100;
const MAIL_CHARACTERS = 320;

export type NewTenant = {
	readonly tenant_id: string;
	readonly principal_id: string;
	/** The whole key: to be shown once and kept nowhere. */
	readonly key: string;
	readonly sql: string;
};

/** What is wrong with a tenant's name, with what would be right; null when nothing is. */
export function nameFault(name: string): string | null {
	const rule = `a tenant's name is 1 to ${NAME_CHARACTERS} characters on one line, for example --name "Acme"`;
	if (name.trim() === "") return `the name is empty; ${rule}`;
	if (name !== name.trim()) return `the name \`${name}\` begins or ends with a space; ${rule}`;
	if ([...name].length > NAME_CHARACTERS) return `the name has ${[...name].length} characters; ${rule}`;
	if (!name.isWellFormed() || /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name))
		return `the name holds a character that cannot be seen (a line break, a control character); ${rule}`;
	return null;
}

/** As `nameFault`, for the address that links of approvals may be mailed to. */
export function emailFault(email: string): string | null {
	return email.length <= MAIL_CHARACTERS && /^[^\s@'"<>,;]+@[^\s@'"<>,;]+\.[^\s@'"<>,;]+$/.test(email)
		? null
		: `\`${email}\` is not an e-mail address, for example --email owner@example.com`;
}

/** `random` answers that many fresh bytes; `now` is ISO 8601 UTC. Name and e-mail have been checked. */
export function newTenant(input: {
	readonly name: string;
	readonly email: string | null;
	readonly now: string;
	readonly random: (n: number) => Buffer;
}): NewTenant {
	const { name, email, now, random } = input;
	const tenant_id = `tenant_${random(16).toString("hex")}`;
	const key = PREFIX + random(32).toString("base64url");
	const statements = [
		insert("tenants", { tenant_id, name, created_at: now }),
		...roleStatements(tenant_id, now),
		insert("principals", {
			tenant_id,
			principal_id: PRINCIPAL_ID,
			kind: "user",
			name: email ?? name,
			email,
			department: null,
			created_at: now,
		}),
		insert("role_bindings", { tenant_id, principal_id: PRINCIPAL_ID, role: ROLE, created_at: now }),
		insert("api_keys", {
			tenant_id,
			key_id: `key_${random(16).toString("hex")}`,
			key_hash: createHash("sha256").update(key, "utf8").digest("hex"),
			prefix: PREFIX,
			last4: key.slice(-4),
			principal_id: PRINCIPAL_ID,
			created_at: now,
			expires_at: null,
		}),
	];
	return { tenant_id, principal_id: PRINCIPAL_ID, key, sql: `${statements.map(literal).join(";\n")};\n` };
}

/** A statement with its parameters written into it: `wrangler d1 execute --file` takes none. */
function literal({ sql, params }: SqlStatement): string {
	return sql.replace(/\?(\d+)/g, (_, n: string) => {
		const value = params[Number(n) - 1] ?? null;
		return value === null ? "NULL" : `'${String(value).replaceAll("'", "''")}'`;
	});
}
