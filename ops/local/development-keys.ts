/**
 * Puts the development tenant into a local control database with a key for each of its principals, and takes away keys of
 * earlier starts that nobody holds any more. Called by start and bench. Never used on a deployed database.
 */
import { createHash, randomBytes } from "node:crypto";
import { definitionHash } from "#core/registry/register.ts";
import {
	DEVELOPMENT_PRINCIPALS,
	DEVELOPMENT_TENANT,
	type DevelopmentPrincipal,
	seedDevelopment,
} from "../seed/seed.ts";
import type { Database } from "./serve.ts";

/** How these keys begin, which also tells them from keys that a developer made with `POST /v1/keys`. */
const PREFIX = "belay_dev_";
const sha256 = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex");

export type DevelopmentKeys = {
	readonly tenant_id: string;
	readonly keys: Readonly<Record<DevelopmentPrincipal, string>>;
};

type StoredKey = {
	readonly key_hash: string;
	readonly principal_id: string;
	readonly expires_at: string | null;
	readonly revoked_at: string | null;
};

/**
 * Seeds and answers the keys, which are stored as hashes only. Of `earlier` those are kept that still let their principal
 * in, so that a restart locks no client out; the others are made anew, and what they replace is taken away.
 */
export async function seedWithKeys(
	database: Database,
	earlier: Partial<Readonly<Record<DevelopmentPrincipal, unknown>>> = {},
): Promise<DevelopmentKeys> {
	const now = new Date().toISOString();
	const { results } = await database
		.prepare("SELECT key_hash, principal_id, expires_at, revoked_at FROM api_keys WHERE tenant_id = ?1 AND prefix = ?2")
		.bind(DEVELOPMENT_TENANT, PREFIX)
		.all<StoredKey>();
	const isValid = (key: string, principal_id: string): boolean =>
		results.some(
			(row) =>
				row.key_hash === sha256(key) &&
				row.principal_id === principal_id &&
				row.revoked_at === null &&
				(row.expires_at === null || row.expires_at > now),
		);
	const names = Object.keys(DEVELOPMENT_PRINCIPALS) as DevelopmentPrincipal[];
	const all = names.map((principal) => {
		const had = earlier[principal];
		const kept = typeof had === "string" && isValid(had, DEVELOPMENT_PRINCIPALS[principal].principal_id);
		return { principal, key: kept ? had : PREFIX + randomBytes(24).toString("hex") };
	});
	const held = new Set(all.map(({ key }) => sha256(key)));
	const gone = results.filter(({ key_hash }) => !held.has(key_hash));
	if (gone.length > 0)
		await database.batch(
			gone.map(({ key_hash }) => database.prepare("DELETE FROM api_keys WHERE key_hash = ?1").bind(key_hash)),
		);
	// A key that is kept has its row already, which the seed leaves as it is.
	await seedDevelopment(database as unknown as D1Database, {
		now,
		keys: all.map(({ principal, key }) => ({ principal, hash: sha256(key), prefix: PREFIX, last4: key.slice(-4) })),
		definitionHash: (descriptor) => definitionHash(descriptor, sha256),
	});
	const keys = Object.fromEntries(all.map(({ principal, key }) => [principal, key])) as Record<
		DevelopmentPrincipal,
		string
	>;
	return { tenant_id: DEVELOPMENT_TENANT, keys };
}

/** As a first start does. */
export const seedWithFreshKeys = (database: Database): Promise<DevelopmentKeys> => seedWithKeys(database);
