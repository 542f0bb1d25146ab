/**
 * Keys from the master secret: one per tenant and purpose, so that a key leaked from one use opens no other (decision
 * 24). Synchronous, through `node:crypto`, because Durable Objects hash, sign and name things without an await
 * (decision 1). It stores nothing and never returns a master. Called by the vault, the run objects, links and hooks.
 */
import { createHash, createHmac, hkdfSync } from "node:crypto";

/** What a key is for. A purpose names one use; a new use takes a new purpose. */
export type KeyPurpose =
	| "secrets"
	| "channels"
	| "triggers"
	| "links"
	| "run_ids"
	| "signing_seed"
	| "hash_salt"
	| "csrf"
	| "provider_user";

/** One master secret with its public name. `kid` is derived from the bytes, so it cannot be assigned twice or wrongly. */
export type Master = { readonly kid: string; readonly bytes: Uint8Array };

/**
 * Reads `BELAY_MASTER_SECRET`: 32 bytes in base64, or several separated by commas, the present one first and retired ones
 * after it (they open, they never seal). Throws on anything else: a service without its key must not start. The message
 * never holds the text.
 */
export function readMasters(text: string): readonly [Master, ...Master[]] {
	const masters = text.split(",").map((one) => readMaster(one.trim()));
	return masters as [Master, ...Master[]];
}

function readMaster(text: string): Master {
	const canonical = /^[A-Za-z0-9+/_-]{43}=?$/.test(text);
	const bytes = new Uint8Array(Buffer.from(text, "base64"));
	if (!canonical || bytes.byteLength !== 32) throw new Error("the master secret must be 32 random bytes in base64");
	const kid = createHash("sha256").update("belay/kid\0").update(bytes).digest("hex").slice(0, 8);
	return { kid, bytes };
}

/** 32 bytes by HKDF-SHA256 (RFC 5869). The context is JSON, so no tenant id can run over into the purpose. */
export function deriveKey(master: Uint8Array, tenant_id: string, purpose: KeyPurpose): Uint8Array {
	const context = JSON.stringify(["belay/v1", purpose, tenant_id]);
	return new Uint8Array(hkdfSync("sha256", master, "belay", context, 32));
}

/** HMAC-SHA256 of UTF-8 text, 32 bytes. */
export function hmacSha256(key: Uint8Array, text: string): Uint8Array {
	return new Uint8Array(createHmac("sha256", key).update(text, "utf8").digest());
}
