/**
 * TenantControl: the one object per tenant that says which revision of policy and registry holds, who is revoked, what is
 * halted and which breakers are open (decision 12). Runs lease its word for LEASE_TTL_MS; it judges nothing itself and
 * never reads D1. The object named PLATFORM_OBJECT holds the halts of everything, which every other one merges into its own.
 */
import { DurableObject } from "cloudflare:workers";
import { mergeHalts } from "#core/approval/merge-halts.ts";
import { BREAKER_MEMORY_MS, BREAKERS_LEASED_MAX, HALTED_MAX_INTERVALS } from "#core/limits.ts";
import type { Clock, Lease } from "#core/ports.ts";
import { type Halt, type OpenedHalt, PLATFORM_OBJECT, type TenantControlApi } from "./api.ts";
import { HaltStore } from "./halt-store.ts";
import { PlatformWord } from "./platform-word.ts";

const SCHEMA = `
CREATE TABLE IF NOT EXISTS revision (what TEXT PRIMARY KEY, rev INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revoked (principal_id TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS breaker (tool_id TEXT PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
`;
/** What only time takes from a lease (old halts, forgotten breakers) goes this late at most, ms. */
const SAID_TTL_MS = 600_000;

const isOpen = ({ until }: { readonly until: number | null }): boolean => until === null;

type Ask<M extends keyof TenantControlApi> = Parameters<TenantControlApi[M]>[0];

export class TenantControl extends DurableObject<Env> implements TenantControlApi {
	readonly #sql: SqlStorage;
	readonly #clock: Clock;
	readonly #halts: HaltStore;
	readonly #platform: PlatformWord;
	/** Derived from the rows and dropped with every change. */
	#said: { readonly word: Omit<Lease, "issued_at">; readonly at: number } | null = null;

	constructor(ctx: DurableObjectState, env: Env, clock: Clock = Date.now) {
		super(ctx, env);
		this.#sql = ctx.storage.sql;
		this.#clock = clock;
		this.#sql.exec(SCHEMA);
		this.#halts = new HaltStore(this.#sql);
		const alone = ctx.id.name === PLATFORM_OBJECT || env.BELAY_PLATFORM_TENANT === "";
		this.#platform = new PlatformWord(this.#sql, alone ? null : () => this.#askPlatform(), clock);
	}

	async lease(): Promise<Lease> {
		await this.#hearPlatform();
		return this.#lease();
	}

	async bump(ask: Ask<"bump">): Promise<Lease> {
		this.#bump(ask.what);
		return this.#lease();
	}

	async revoke(ask: Ask<"revoke">): Promise<Lease> {
		this.#sql.exec("INSERT INTO revoked VALUES (?, ?) ON CONFLICT DO NOTHING", ask.principal_id, this.#clock());
		this.#bump("policy");
		return this.#lease();
	}

	async reinstate(ask: Ask<"reinstate">): Promise<Lease> {
		const gone = this.#sql.exec("DELETE FROM revoked WHERE principal_id = ? RETURNING 1", ask.principal_id).toArray();
		if (gone.length > 0) this.#bump("policy");
		return this.#lease();
	}

	async openHalt(ask: Ask<"openHalt">): Promise<OpenedHalt> {
		this.#said = null;
		return this.#halts.open(ask, this.#clock());
	}

	async endHalt(ask: Ask<"endHalt">): Promise<Halt | null> {
		this.#said = null;
		return this.#halts.end(ask.halt_id, ask.of_platform, this.#clock());
	}

	async halts(): Promise<readonly Halt[]> {
		await this.#hearPlatform();
		// who works for the platform is nobody else's business
		const ofPlatform = this.#platform.halts().map((halt) => ({ ...halt, by: PLATFORM_OBJECT }));
		const all = [...this.#halts.list(), ...ofPlatform];
		return all.sort((a, b) => b.since - a.since || (a.halt_id < b.halt_id ? 1 : -1));
	}

	async platformHalts(): Promise<readonly Halt[]> {
		const all = this.#halts.remembered(this.#clock()).filter(({ scope }) => scope === "all");
		return [...all.filter(isOpen), ...all.filter((halt) => !isOpen(halt))].slice(0, HALTED_MAX_INTERVALS);
	}

	async breaker({ tool_id, until }: Ask<"breaker">): Promise<Lease> {
		if (until === null) this.#sql.exec("DELETE FROM breaker WHERE tool_id = ?", tool_id);
		else this.#sql.exec("INSERT OR REPLACE INTO breaker VALUES (?, ?)", tool_id, until);
		this.#said = null;
		return this.#lease();
	}

	#bump(what: "policy" | "registry"): void {
		this.#sql.exec("INSERT INTO revision VALUES (?, 1) ON CONFLICT (what) DO UPDATE SET rev = rev + 1", what);
		this.#said = null;
	}

	async #hearPlatform(): Promise<void> {
		if (await this.#platform.refresh()) this.#said = null;
	}

	#askPlatform(): Promise<readonly Halt[]> {
		const platform = this.env.TENANT_CONTROL.getByName(PLATFORM_OBJECT) as unknown as TenantControlApi;
		return platform.platformHalts({ v: 1 });
	}

	#lease(): Lease {
		const now = this.#clock();
		// a clock that went back rebuilds as well
		if (this.#said === null || now < this.#said.at || now - this.#said.at >= SAID_TTL_MS)
			this.#said = { word: this.#say(now), at: now };
		return { ...this.#said.word, issued_at: now };
	}

	#say(now: number): Omit<Lease, "issued_at"> {
		this.#sql.exec("DELETE FROM breaker WHERE until <= ?", now - BREAKER_MEMORY_MS);
		const halted = mergeHalts([...this.#halts.remembered(now), ...this.#platform.halts()], now);
		const revoked = this.#sql.exec<{ principal_id: string }>("SELECT principal_id FROM revoked").toArray();
		const latest = "SELECT tool_id, until FROM breaker ORDER BY until DESC LIMIT ?";
		return {
			policy_rev: this.#rev("policy"),
			registry_rev: this.#rev("registry"),
			revoked_principals: revoked.map((row) => row.principal_id),
			halts: halted.filter(isOpen).map(({ scope, since }) => ({ scope, since })),
			halted,
			open_breakers: this.#sql.exec<{ tool_id: string; until: number }>(latest, BREAKERS_LEASED_MAX).toArray(),
		};
	}

	#rev(what: string): number {
		return this.#sql.exec<{ rev: number }>("SELECT rev FROM revision WHERE what = ?", what).toArray()[0]?.rev ?? 0;
	}
}
