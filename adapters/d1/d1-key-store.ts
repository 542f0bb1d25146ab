/**
 * API keys. The caller hashes (SHA-256, lowercase hex): a raw key never reaches this file, a log of it or the database.
 * Finding by hash needs no constant-time comparison, since whoever can choose the hash already holds the key.
 */
import { and, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { type Principal, principal } from "#core/principal.ts";
import { readD1, writeD1 } from "./d1-unavailable.ts";
import { apiKeys, principals } from "./schema.ts";

export type FoundKey =
	| { readonly ok: true; readonly principal: Principal; readonly key_id: string; readonly expires_at: string | null }
	/** For the audit; a caller that shows a key is told 401 and nothing more. */
	| { readonly ok: false; readonly reason: "unknown_key" | "expired" | "revoked" | "principal_disabled" };

export type NewKey = {
	readonly key_id: string;
	readonly key_hash: string;
	readonly prefix: string;
	readonly last4: string;
	readonly principal_id: string;
	readonly created_at: string;
	readonly expires_at: string | null;
};
export type KeyView = Omit<NewKey, "key_hash"> & { readonly revoked_at: string | null };

export class D1KeyStore {
	readonly #db: D1Database;

	constructor(db: D1Database) {
		this.#db = db;
	}

	/** Whom a key stands for at `now` (ISO 8601 UTC). */
	async find(key_hash: string, now: string): Promise<FoundKey> {
		const [row] = await readD1("find a key", () =>
			drizzle(this.#db)
				.select({ key: apiKeys, principal: principals })
				.from(apiKeys)
				.leftJoin(
					principals,
					and(eq(principals.tenant_id, apiKeys.tenant_id), eq(principals.principal_id, apiKeys.principal_id)),
				)
				.where(eq(apiKeys.key_hash, key_hash)),
		);
		if (row === undefined) return { ok: false, reason: "unknown_key" };
		if (row.key.revoked_at !== null) return { ok: false, reason: "revoked" };
		if (row.key.expires_at !== null && row.key.expires_at <= now) return { ok: false, reason: "expired" };
		const owner = principal.safeParse(row.principal);
		if (!owner.success || row.principal?.disabled_at !== null) return { ok: false, reason: "principal_disabled" };
		return { ok: true, principal: owner.data, key_id: row.key.key_id, expires_at: row.key.expires_at };
	}

	/** False when the key_id or the hash is taken; nothing is replaced. */
	async insert(tenant_id: string, key: NewKey): Promise<boolean> {
		const rows = await writeD1("insert a key", () =>
			drizzle(this.#db)
				.insert(apiKeys)
				.values({ tenant_id, ...key })
				.onConflictDoNothing()
				.returning({ id: apiKeys.key_id }),
		);
		return rows.length > 0;
	}

	/** Keys of the tenant without their hashes, oldest first. */
	async list(tenant_id: string): Promise<KeyView[]> {
		const rows = await readD1("list keys", () =>
			drizzle(this.#db)
				.select()
				.from(apiKeys)
				.where(eq(apiKeys.tenant_id, tenant_id))
				.orderBy(apiKeys.created_at, apiKeys.key_id),
		);
		return rows.map(({ tenant_id: _tenant, key_hash: _hash, ...view }) => view);
	}

	/** False when there is no such key; a second revocation keeps the first one's time. */
	async revoke(tenant_id: string, key_id: string, now: string): Promise<boolean> {
		const done = await writeD1("revoke a key", () =>
			this.#db
				.prepare("UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?3) WHERE tenant_id = ?1 AND key_id = ?2")
				.bind(tenant_id, key_id, now)
				.run(),
		);
		return done.meta.changes > 0;
	}
}
