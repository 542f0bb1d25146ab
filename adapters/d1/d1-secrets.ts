/**
 * Sealed secrets at rest (decision 24). This file never sees a plain one: it keeps ciphertext, version and where the
 * secret may go. Opening and sealing are adapters/secrets' work, which is its only caller.
 */
import { and, asc, eq, isNotNull } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import * as z from "zod";
import { readD1, writeD1 } from "./d1-unavailable.ts";
import { secrets } from "./schema.ts";
import { storedJson } from "./stored-json.ts";

export type SealedSecret = {
	readonly name: string;
	readonly version: number;
	/** `v1.<kid>.<iv>.<ct>`, its AAD naming tenant, name and this version. */
	readonly ciphertext: string;
	readonly allowed_hosts: readonly string[];
	readonly allowed_tools: readonly string[];
	readonly created_at: string;
	readonly updated_at: string;
};
export type SecretView = Omit<SealedSecret, "ciphertext">;

export class D1Secrets {
	readonly #db: D1Database;

	constructor(db: D1Database) {
		this.#db = db;
	}

	async get(tenant_id: string, name: string): Promise<SealedSecret | undefined> {
		const [row] = await readD1("read a secret", () =>
			drizzle(this.#db)
				.select()
				.from(secrets)
				.where(and(eq(secrets.tenant_id, tenant_id), eq(secrets.name, name))),
		);
		if (row === undefined || row.ciphertext === null) return undefined;
		return { ...viewOf(row), ciphertext: row.ciphertext };
	}

	/** The version that the next `put` of this name has to carry. Versions of deleted secrets are never used again. */
	async nextVersion(tenant_id: string, name: string): Promise<number> {
		const [row] = await readD1("read a secret", () =>
			drizzle(this.#db)
				.select({ version: secrets.version })
				.from(secrets)
				.where(and(eq(secrets.tenant_id, tenant_id), eq(secrets.name, name))),
		);
		return (row?.version ?? 0) + 1;
	}

	/** Stores the next version in place of the last one. False when another writer was first: seal again and retry. */
	async put(tenant_id: string, secret: Omit<SealedSecret, "created_at" | "updated_at">, now: string): Promise<boolean> {
		const hosts = JSON.stringify(secret.allowed_hosts);
		const tools = JSON.stringify(secret.allowed_tools);
		const done = await writeD1("store a secret", () =>
			this.#db
				.prepare(
					`INSERT INTO secrets (tenant_id, name, version, ciphertext, allowed_hosts, allowed_tools, created_at, updated_at)
					SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7
					WHERE ?3 = 1 + coalesce((SELECT version FROM secrets WHERE tenant_id = ?1 AND name = ?2), 0)
					ON CONFLICT (tenant_id, name) DO UPDATE SET version = excluded.version, ciphertext = excluded.ciphertext,
						allowed_hosts = excluded.allowed_hosts, allowed_tools = excluded.allowed_tools, updated_at = excluded.updated_at`,
				)
				.bind(tenant_id, secret.name, secret.version, secret.ciphertext, hosts, tools, now)
				.run(),
		);
		return done.meta.changes > 0;
	}

	/** What exists, by name, without any value. */
	async list(tenant_id: string): Promise<SecretView[]> {
		const rows = await readD1("list secrets", () =>
			drizzle(this.#db)
				.select()
				.from(secrets)
				.where(and(eq(secrets.tenant_id, tenant_id), isNotNull(secrets.ciphertext)))
				.orderBy(asc(secrets.name)),
		);
		return rows.map(viewOf);
	}

	/** Forgets the ciphertext and keeps the version number. False when there was nothing to delete. */
	async delete(tenant_id: string, name: string, now: string): Promise<boolean> {
		const done = await writeD1("delete a secret", () =>
			this.#db
				.prepare(
					"UPDATE secrets SET ciphertext = NULL, updated_at = ?3 WHERE tenant_id = ?1 AND name = ?2 AND ciphertext IS NOT NULL",
				)
				.bind(tenant_id, name, now)
				.run(),
		);
		return done.meta.changes > 0;
	}
}

/** A list that no longer parses allows nothing. */
function viewOf(row: typeof secrets.$inferSelect): SecretView {
	const { name, version, created_at, updated_at } = row;
	const list = (text: string) => storedJson(z.array(z.string()), text) ?? [];
	return {
		name,
		version,
		allowed_hosts: list(row.allowed_hosts),
		allowed_tools: list(row.allowed_tools),
		created_at,
		updated_at,
	};
}
