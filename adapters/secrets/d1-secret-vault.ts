/**
 * Opens a stored secret for one use: this tool, towards this host, or not at all. It never lists, caches or logs what it
 * opens. Called by invokers through the `SecretVault` port; rows come through `SecretRows`, which D1 implements.
 */
import { allowsHost } from "#core/normalize/host-pattern.ts";
import type { SecretVault } from "#core/ports.ts";
import type { SecretSealer } from "./secret-sealer.ts";

export type SecretRow = {
	/** `v1.<kid>.<iv>.<ct>` as `SecretSealer.seal` wrote it for (tenant_id, name, version). */
	readonly ciphertext: string;
	readonly version: number;
	readonly allowed_hosts: readonly string[];
	readonly allowed_tools: readonly string[];
};

export interface SecretRows {
	get(tenant_id: string, name: string): Promise<SecretRow | undefined>;
}

export class D1SecretVault implements SecretVault {
	readonly #rows: SecretRows;
	readonly #sealer: SecretSealer;

	constructor(rows: SecretRows, sealer: SecretSealer) {
		this.#rows = rows;
		this.#sealer = sealer;
	}

	/** `not_allowed` before anything is decrypted; a row that does not open counts as unknown. */
	async open(
		tenant_id: string,
		name: string,
		use: { tool_id: string; host: string | null },
	): ReturnType<SecretVault["open"]> {
		const row = await this.#rows.get(tenant_id, name);
		if (row === undefined) return { ok: false, reason: "unknown_secret" };
		const allowed =
			row.allowed_tools.includes(use.tool_id) && use.host !== null && allowsHost(row.allowed_hosts, use.host);
		if (!allowed) return { ok: false, reason: "not_allowed" };
		const value = await this.#sealer.open({ tenant_id, name, version: row.version }, row.ciphertext);
		return value === undefined ? { ok: false, reason: "unknown_secret" } : { ok: true, value, version: row.version };
	}
}
