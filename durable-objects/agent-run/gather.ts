/**
 * What a step has to know of the world, fetched before it (decision 4): the tenant's lease, and, only where a revision has
 * moved since the run last looked, the principal's authority and the registry. Answers are remembered per isolate by
 * revision, so a governed call normally costs no request at all here.
 */
import { D1AuthorityStore } from "#adapters/d1/d1-authority-store.ts";
import { D1ToolCatalog } from "#adapters/d1/d1-tool-catalog.ts";
import type { BreakerView } from "#core/invoke/gate-keys.ts";
import { LEASE_TTL_MS } from "#core/limits.ts";
import type { Lease } from "#core/ports.ts";
import type { Authority } from "#core/principal.ts";
import type { ToolVersion } from "#core/registry/descriptor.ts";
import { pinsBeyond, refersTo } from "#core/registry/tool-reference.ts";
import type { RunState, World } from "#core/run/state.ts";
import type { TenantControlApi } from "#objects/tenant-control/api.ts";

type Catalog = Pick<World, "pinned"> & { readonly tools: readonly ToolVersion[] };
type Remembered<T> = { readonly rev: number; readonly value: T };

/** By tenant: revisions only grow, so one entry each is enough. */
const catalogs = new Map<string, Remembered<Catalog>>();
const authorities = new Map<string, Remembered<Authority | null>>();
/** What a tenant's control said last, for all runs of the isolate. */
const leases = new Map<string, Lease>();
const REMEMBERED_MAX = 1_000;

export class Gatherer {
	readonly #env: Env;
	readonly #tenant_id: string;

	constructor(env: Env, tenant_id: string) {
		this.#env = env;
		this.#tenant_id = tenant_id;
	}

	/**
	 * `fresh` asks control anew: where a person acts (create, decide, edit) the request is worth it, and they see at once
	 * what was published or revoked a moment before. Never throws: what cannot be had is a null lease, and the machine decides what may go on without one. */
	async world(state: RunState | null, principal_id: string, held: Authority, fresh = false): Promise<World> {
		const lease = await this.#lease(fresh);
		if (lease === null) return { lease: null, authority: held, tools: null };
		try {
			const exposure = state?.exposure ?? null;
			const authority =
				held.policy_rev === lease.policy_rev ? held : await this.#authority(principal_id, lease.policy_rev);
			const stands = exposure?.registry_rev === lease.registry_rev && exposure.policy_rev === lease.policy_rev;
			return { lease, authority, ...(stands ? { tools: null } : await this.#catalog(lease.registry_rev)) };
		} catch {
			// D1 is away just when a revision moved: as good as no word from control.
			return { lease: null, authority: held, tools: null };
		}
	}

	/** A gate told this isolate what its breaker is before control did. */
	breakerSeen(tool_id: string, breaker: BreakerView): void {
		const held = leases.get(this.#tenant_id);
		if (held === undefined) return;
		const others = held.open_breakers.filter((open) => open.tool_id !== tool_id);
		const open_breakers = breaker.state === "closed" ? others : [...others, { tool_id, until: breaker.until ?? 0 }];
		leases.set(this.#tenant_id, { ...held, open_breakers });
	}

	async #lease(fresh: boolean): Promise<Lease | null> {
		const held = leases.get(this.#tenant_id);
		// Asked for anew a little before it ends, so that a step never finds it just over.
		if (!fresh && held !== undefined && Date.now() - held.issued_at < LEASE_TTL_MS * 0.8) return held;
		const asked_at = Date.now();
		try {
			const lease = await (this.#env.TENANT_CONTROL.getByName(this.#tenant_id) as unknown as TenantControlApi).lease({
				v: 1,
				tenant_id: this.#tenant_id,
			});
			const mine: Lease = { ...lease, issued_at: asked_at };
			remember(leases, this.#tenant_id, mine);
			return mine;
		} catch {
			return null;
		}
	}

	async #authority(principal_id: string, rev: number): Promise<Authority | null> {
		const key = `${this.#tenant_id}\n${principal_id}`;
		const found = authorities.get(key);
		if (found?.rev === rev) return found.value;
		const value = (await new D1AuthorityStore(this.#env.DB).resolve(this.#tenant_id, principal_id, rev)) ?? null;
		remember(authorities, key, { rev, value });
		return value;
	}

	async #catalog(rev: number): Promise<Catalog> {
		const found = catalogs.get(this.#tenant_id);
		if (found?.rev === rev) return found.value;
		const catalog = new D1ToolCatalog(this.#env.DB);
		const tools = await catalog.listOnline(this.#tenant_id);
		const pinned = await Promise.all(
			pinsBeyond(tools).map(async (wanted) => {
				const versions = await catalog.versions(this.#tenant_id, wanted.tool_id);
				return (
					versions.filter(({ status, descriptor }) => status === "online" && refersTo(wanted, descriptor))[0] ?? []
				);
			}),
		);
		const value: Catalog = { tools, pinned: pinned.flat() };
		remember(catalogs, this.#tenant_id, { rev, value });
		return value;
	}
}

function remember<T>(cache: Map<string, T>, key: string, value: T): void {
	if (cache.size >= REMEMBERED_MAX) cache.clear();
	cache.set(key, value);
}
