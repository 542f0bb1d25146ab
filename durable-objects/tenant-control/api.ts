/** What the rest of Belay asks of a tenant's control object (decision 12). */
import type { Lease } from "#core/ports.ts";

export interface TenantControlApi {
	/** What holds now. Costs one Durable Object request per run and LEASE_TTL_MS. */
	lease(ask: { v: 1; tenant_id: string }): Promise<Lease>;
	/** Says that the registry or a policy (roles, bindings, keys) changed in D1. Runs see it within LEASE_TTL_MS. */
	bump(ask: { v: 1; tenant_id: string; what: "policy" | "registry" }): Promise<Lease>;
	revoke(ask: { v: 1; tenant_id: string; principal_id: string }): Promise<Lease>;
	/** Opens or ends a halt of the tenant or of one tool. */
	halt(ask: { v: 1; tenant_id: string; scope: string; on: boolean; reason: string; by: string }): Promise<Lease>;
}
