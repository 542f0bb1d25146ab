/**
 * The way from a route to its tenant's control object (decision 12). Its calls are repeatable, so each is asked once more
 * on a fresh stub when the object was reset; then 503. Called by authentication and by every administrative write.
 */
import type { TenantControlApi } from "#objects/tenant-control/api.ts";
import type { Env } from "./env.ts";
import { keyCache } from "./middleware/key-cache.ts";
import { problem } from "./problem.ts";

const RETRY_AFTER_S = 2;

export async function controlOf<T>(
	env: Env,
	tenantId: string,
	ask: (control: TenantControlApi) => Promise<T>,
): Promise<T> {
	for (let attempt = 1; ; attempt++) {
		try {
			return await ask(env.TENANT_CONTROL.getByName(tenantId) as unknown as TenantControlApi);
		} catch (error) {
			if (attempt === 1) continue;
			console.error(
				JSON.stringify({
					level: "warn",
					what: "tenant control unreachable",
					error: error instanceof Error ? error.name : "",
				}),
			);
			throw problem("control_unavailable", "the tenant's control object cannot be reached just now; try again", {
				retry_after_s: RETRY_AFTER_S,
			});
		}
	}
}

/** Tells runs (through their lease) and this isolate that rules or tools changed in D1. */
export async function bump(env: Env, tenantId: string, what: "policy" | "registry"): Promise<void> {
	keyCache.clear();
	await controlOf(env, tenantId, (control) => control.bump({ v: 1, tenant_id: tenantId, what }));
}
