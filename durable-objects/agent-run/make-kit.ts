/** What a step is given of the world (core/run/kit.ts), made from the object's bindings: the one place where clock and chance enter. */
import { addressRules, isDevelopment } from "#adapters/http/address-rules.ts";
import { parseUrl } from "#adapters/http/url.ts";
import type { RandomBytes } from "#core/ids.ts";
import { judgeUrl } from "#core/normalize/address-guard.ts";
import type { Kit } from "#core/run/kit.ts";
import { definition } from "./definitions.ts";
import { sha256, tenantKeys } from "./signing.ts";
import type { RunStore } from "./store.ts";

export const random: RandomBytes = (n) => crypto.getRandomValues(new Uint8Array(n));

export function makeKit(
	env: Env,
	own: Pick<Kit, "boot_id" | "takePlace"> & { readonly tenant_id: string; readonly store: RunStore },
): Kit {
	const { tenant_id, store, ...rest } = own;
	const keys = tenantKeys(env.BELAY_MASTER_SECRET, tenant_id);
	const rules = addressRules({ public_url: env.BELAY_PUBLIC_URL, dev_upstreams: env.BELAY_DEV_UPSTREAMS });
	return {
		...rest,
		now: Date.now(),
		random,
		digest: sha256,
		sign: keys.sign,
		tool: (definition_hash) => definition(store, definition_hash),
		past: store,
		judgeUrl: (url) => {
			const parts = parseUrl(url);
			return parts === undefined ? { ok: false, reason: "not_a_url" } : judgeUrl(parts, rules);
		},
		tenant_salt: keys.salt,
		environment: isDevelopment() ? "development" : "production",
	};
}
