/**
 * `Idempotency-Key`: what a repeated request makes is the same thing, because its id is computed, not drawn (decision 23).
 * The id is an HMAC under the tenant's own key, so nobody can compute another's, nor aim at one: it covers who asks, the
 * route and the key. Called by routes that create something.
 */
import { sha256 } from "#adapters/digest.ts";
import { randomBytes } from "#adapters/random.ts";
import { deriveKey, hmacSha256, readMasters } from "#adapters/secrets/derive.ts";
import { findIllFormed } from "#core/data/well-formed.ts";
import { hex } from "#core/ids.ts";
import { canonicalJson, type Json } from "#core/json.ts";
import type { Caller } from "#core/principal.ts";
import type { Env } from "./env.ts";
import { invalidField } from "./problem.ts";

/** The request's key, or null. Throws 422 when it is not 1 to 255 visible ASCII characters. */
export function idempotencyKey(header: string | undefined): string | null {
	if (header === undefined) return null;
	if (/^[\x21-\x7e]{1,255}$/.test(header)) return header;
	throw invalidField(
		"header:idempotency-key",
		"format_invalid",
		"the idempotency key has another form",
		"1 to 255 visible ASCII characters",
	);
}

/** 128 bits in hex for a new object: computed when there is a key, else random. `route` keeps the nouns apart. */
export function newIdPart(env: Env, caller: Caller, route: string, key: string | null): string {
	if (key === null) return hex(randomBytes(16));
	return hex(tenantMac(env, caller.tenant_id, [caller.principal_id, route, key]).subarray(0, 16));
}

/** 256 bits that only this deployment can compute for this tenant. Parts are JSON, so none runs over into the next. */
export function tenantMac(env: Env, tenantId: string, parts: readonly string[]): Uint8Array {
	const [master] = readMasters(env.BELAY_MASTER_SECRET);
	return hmacSha256(deriveKey(master.bytes, tenantId, "run_ids"), canonicalJson(parts));
}

/** SHA-256 of the canonical request: tells a repeat from another request under the same key. Throws 422 on half a character. */
export function requestHash(body: unknown): string {
	const half = findIllFormed(body as Json);
	if (half !== undefined)
		throw invalidField(half, "format_invalid", "text holds half a character", "well-formed Unicode");
	return sha256(canonicalJson(body));
}
