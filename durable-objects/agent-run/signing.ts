/** Hashes and signatures as `apply()` needs them: synchronous, per tenant, derived from the master secret (decisions 1, 24). */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { sha256 } from "#adapters/digest.ts";
import { deriveKey, readMasters } from "#adapters/secrets/derive.ts";
import { wellFormedJson } from "#core/data/well-formed.ts";
import { hex } from "#core/ids.ts";
import { canonicalJson, type JsonObject } from "#core/json.ts";

/** PKCS #8 frame of an Ed25519 seed (RFC 8410). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/** Of what a request said, whatever the order of its members; half a character counts as U+FFFD. */
export const digestOf = (said: object): string => sha256(canonicalJson(wellFormedJson(said as JsonObject)));

export type TenantKeys = {
	readonly sign: (text: string) => string;
	readonly verify: (text: string, signature: string) => boolean;
	/** Hex; part of every input hash of the tenant (decision 26). */
	readonly salt: string;
	readonly publicJwk: JsonWebKey & { kid: string };
};

const known = new Map<string, TenantKeys>();

/** Keys of a tenant; remembered for the isolate's life, since both inputs are fixed for it. */
export function tenantKeys(master_secret: string, tenant_id: string): TenantKeys {
	const found = known.get(tenant_id);
	if (found !== undefined) return found;
	const [master] = readMasters(master_secret);
	const seed = deriveKey(master.bytes, tenant_id, "signing_seed");
	const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });
	const publicKey: KeyObject = createPublicKey(privateKey);
	const jwk = publicKey.export({ format: "jwk" }) as JsonWebKey;
	const keys: TenantKeys = {
		sign: (text) => sign(null, Buffer.from(text, "utf8"), privateKey).toString("base64url"),
		verify: (text, signature) =>
			verify(null, Buffer.from(text, "utf8"), publicKey, Buffer.from(signature, "base64url")),
		salt: hex(deriveKey(master.bytes, tenant_id, "hash_salt")),
		publicJwk: { ...jwk, kid: `${tenant_id}.${master.kid}` },
	};
	if (known.size > 1_000) known.clear();
	known.set(tenant_id, keys);
	return keys;
}
