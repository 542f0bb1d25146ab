/**
 * Signs an outgoing message as Standard Webhooks asks (standardwebhooks.com, symmetric `v1`): HMAC-SHA256 over
 * `id.timestamp.body`. Verifies nothing. Called by the webhook channel and by outbound events.
 */
import { createHmac } from "node:crypto";

/** The specification's bounds for a symmetric key. */
const KEY_MIN_BYTES = 24;
const KEY_MAX_BYTES = 64;

/** The bytes of `whsec_<base64>` (the prefix may be absent), or undefined when it is not such a secret. */
export function webhookKey(secret: string): Uint8Array | undefined {
	const text = secret.startsWith("whsec_") ? secret.slice(6) : secret;
	if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return undefined;
	const bytes = new Uint8Array(Buffer.from(text, "base64"));
	return bytes.byteLength >= KEY_MIN_BYTES && bytes.byteLength <= KEY_MAX_BYTES ? bytes : undefined;
}

/** `v1,<base64>`. `timestamp` in whole seconds since the epoch. */
export function signWebhook(key: Uint8Array, id: string, timestamp: number, body: string): string {
	const mac = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`, "utf8").digest("base64");
	return `v1,${mac}`;
}
