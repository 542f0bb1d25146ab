/**
 * TenantControl: the one object per tenant that says which revision of policy and registry holds, who is revoked and what
 * is halted (decision 12). Runs lease its word for LEASE_TTL_MS; it judges nothing itself and never reads D1.
 */
import { DurableObject } from "cloudflare:workers";
import type { Lease } from "#core/ports.ts";
import type { TenantControlApi } from "./api.ts";

const SCHEMA = `
CREATE TABLE IF NOT EXISTS revision (what TEXT PRIMARY KEY, rev INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revoked (principal_id TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS halt (scope TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER, reason TEXT NOT NULL, by TEXT NOT NULL, PRIMARY KEY (scope, since)) WITHOUT ROWID;
`;

export class TenantControl extends DurableObject<Env> implements TenantControlApi {
	readonly #sql: SqlStorage;
	/** Derived from the rows and dropped with every change. */
	#said: Omit<Lease, "issued_at"> | null = null;

	constructor(ctx: DurableObjectState, env: Env) {
		super(ctx, env);
		this.#sql = ctx.storage.sql;
		this.#sql.exec(SCHEMA);
	}

	async lease(): Promise<Lease> {
		return this.#lease();
	}

	async bump(ask: { v: 1; tenant_id: string; what: "policy" | "registry" }): Promise<Lease> {
		this.#bump(ask.what);
		return this.#lease();
	}

	async revoke(ask: { v: 1; tenant_id: string; principal_id: string }): Promise<Lease> {
		this.#sql.exec("INSERT INTO revoked VALUES (?, ?) ON CONFLICT DO NOTHING", ask.principal_id, Date.now());
		this.#bump("policy");
		return this.#lease();
	}

	async halt(ask: { v: 1; tenant_id: string; scope: string; on: boolean; reason: string; by: string }): Promise<Lease> {
		const now = Date.now();
		const open = this.#sql.exec("SELECT 1 FROM halt WHERE scope = ? AND until IS NULL", ask.scope).toArray().length > 0;
		if (ask.on && !open) this.#sql.exec("INSERT INTO halt VALUES (?, ?, NULL, ?, ?)", ask.scope, now, ask.reason, ask.by);
		if (!ask.on) this.#sql.exec("UPDATE halt SET until = ? WHERE scope = ? AND until IS NULL", now, ask.scope);
		this.#said = null;
		return this.#lease();
	}

	#bump(what: "policy" | "registry"): void {
		this.#sql.exec("INSERT INTO revision VALUES (?, 1) ON CONFLICT (what) DO UPDATE SET rev = rev + 1", what);
		this.#said = null;
	}

	#lease(): Lease {
		this.#said ??= {
			policy_rev: this.#rev("policy"),
			registry_rev: this.#rev("registry"),
			revoked_principals: this.#sql.exec<{ principal_id: string }>("SELECT principal_id FROM revoked").toArray().map((row) => row.principal_id),
			halts: this.#sql.exec<{ scope: string; since: number }>("SELECT scope, since FROM halt WHERE until IS NULL").toArray(),
			open_breakers: [],
		};
		return { ...this.#said, issued_at: Date.now() };
	}

	#rev(what: string): number {
		return this.#sql.exec<{ rev: number }>("SELECT rev FROM revision WHERE what = ?", what).toArray()[0]?.rev ?? 0;
	}
}
