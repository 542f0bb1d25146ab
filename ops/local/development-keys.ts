/**
 * Puts the development tenant into a local control database with fresh keys for its principals, and takes the keys of
 * earlier starts away. Called by start and bench. Never used on a deployed database.
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

/** Seeds and answers the keys, which are stored as hashes only. */
export async function seedWithFreshKeys(database: Database): Promise<DevelopmentKeys> {
	const names = Object.keys(DEVELOPMENT_PRINCIPALS) as DevelopmentPrincipal[];
	const made = names.map((principal) => ({ principal, key: PREFIX + randomBytes(24).toString("hex") }));
	await database
		.prepare("DELETE FROM api_keys WHERE tenant_id = ?1 AND prefix = ?2")
		.bind(DEVELOPMENT_TENANT, PREFIX)
		.run();
	await seedDevelopment(database as unknown as D1Database, {
		now: new Date().toISOString(),
		keys: made.map(({ principal, key }) => ({ principal, hash: sha256(key), prefix: PREFIX, last4: key.slice(-4) })),
		definitionHash: (descriptor) => definitionHash(descriptor, sha256),
	});
	const keys = Object.fromEntries(made.map(({ principal, key }) => [principal, key])) as Record<
		DevelopmentPrincipal,
		string
	>;
	return { tenant_id: DEVELOPMENT_TENANT, keys };
}
