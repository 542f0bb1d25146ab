/**
 * Seals secrets for rest: AES-256-GCM, written `v1.<kid>.<iv>.<ct>` in base64url (decision 24). The tenant, the name and
 * the version are authenticated with the text, so a row copied to another tenant, name or version does not open. It
 * decides nothing about who may use a secret. Called by the secrets API (seal) and by `SecretVault` (open).
 */
import { deriveKey, type KeyPurpose, type Master } from "./derive.ts";

export type SecretPlace = { readonly tenant_id: string; readonly name: string; readonly version: number };

const SEALED = /^v1\.([0-9a-f]{8})\.([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{22,})$/;

export class SecretSealer {
	readonly #masters: readonly [Master, ...Master[]];
	readonly #purpose: KeyPurpose;

	/** `masters`: the first seals, all of them open. One purpose per sealer: a channel's secret never opens as a tool's. */
	constructor(masters: readonly [Master, ...Master[]], purpose: KeyPurpose = "secrets") {
		this.#masters = masters;
		this.#purpose = purpose;
	}

	/** Sealed text for a database row. Two calls with the same input differ: the nonce is random, 96 bits. */
	async seal(place: SecretPlace, plain: string): Promise<string> {
		const master = this.#masters[0];
		const iv = crypto.getRandomValues(new Uint8Array(12));
		const key = await this.#key(master, place.tenant_id, "encrypt");
		const data = new TextEncoder().encode(plain);
		const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData: bound(place) }, key, data);
		return `v1.${master.kid}.${Buffer.from(iv).toString("base64url")}.${Buffer.from(sealed).toString("base64url")}`;
	}

	/** The plain text, or undefined when the text is malformed, sealed elsewhere, changed, or under a master that is gone. */
	async open(place: SecretPlace, sealed: string): Promise<string | undefined> {
		const [, kid, iv = "", ct = ""] = SEALED.exec(sealed) ?? [];
		const master = this.#masters.find((one) => one.kid === kid);
		if (master === undefined) return undefined;
		try {
			const key = await this.#key(master, place.tenant_id, "decrypt");
			const nonce = new Uint8Array(Buffer.from(iv, "base64url"));
			const data = new Uint8Array(Buffer.from(ct, "base64url"));
			const plain = await crypto.subtle.decrypt(
				{ name: "AES-GCM", iv: nonce, additionalData: bound(place) },
				key,
				data,
			);
			return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(plain);
		} catch {
			return undefined; // the authentication tag does not fit; which part of it is nobody's business
		}
	}

	/** Whether the present master sealed it: rows that answer false are sealed again when they are next written. */
	isCurrent(sealed: string): boolean {
		return SEALED.exec(sealed)?.[1] === this.#masters[0].kid;
	}

	#key(master: Master, tenant_id: string, use: "encrypt" | "decrypt"): Promise<CryptoKey> {
		const bytes = deriveKey(master.bytes, tenant_id, this.#purpose);
		return crypto.subtle.importKey("raw", bytes, "AES-GCM", false, [use]);
	}
}

/** JSON keeps the parts apart: tenant `a|b` with name `c` is not tenant `a` with name `b|c`. */
function bound({ tenant_id, name, version }: SecretPlace): Uint8Array {
	return new TextEncoder().encode(JSON.stringify(["v1", tenant_id, name, version]));
}
