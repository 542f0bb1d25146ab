/** What a step is given of the world (core/run/kit.ts), made from the object's bindings: the one place where clock and chance enter. */
import { sha256 } from "#adapters/digest.ts";
import { addressRules, isDevelopment } from "#adapters/http/address-rules.ts";
import { parseUrl } from "#adapters/http/url.ts";
import { randomBytes } from "#adapters/random.ts";
import { judgeUrl } from "#core/normalize/address-guard.ts";
import type { Kit } from "#core/run/kit.ts";
import { definition } from "./definitions.ts";
import { toldOf } from "./record.ts";
import { tenantKeys } from "./signing.ts";
import type { RunStore } from "./store.ts";

/** One per store: a step must not pay for it. */
const pasts = new WeakMap<RunStore, Kit["past"]>();
function pastOf(store: RunStore): Kit["past"] {
	const known = pasts.get(store);
	if (known !== undefined) return known;
	const past: Kit["past"] = {
		callsOf: (turn) => store.callsOf(turn),
		messages: () => store.messages(),
		told: (n) => toldOf(store.script(n)),
	};
	pasts.set(store, past);
	return past;
}

export function makeKit(
	env: Env,
	own: Pick<Kit, "boot_id" | "takePlace"> & { readonly tenant_id: string; readonly store: RunStore },
): Kit {
	const { tenant_id, store, ...rest } = own;
	const keys = tenantKeys(env.BELAY_MASTER_SECRET, tenant_id);
	return {
		...rest,
		now: Date.now(),
		random: randomBytes,
		digest: sha256,
		sign: keys.sign,
		tool: (definition_hash) => definition(store, definition_hash),
		past: pastOf(store),
		judgeUrl: (url) => {
			const parts = parseUrl(url);
			if (parts === undefined) return { ok: false, reason: "not_a_url" };
			return judgeUrl(
				parts,
				addressRules({ public_url: env.BELAY_PUBLIC_URL, dev_upstreams: env.BELAY_DEV_UPSTREAMS }),
			);
		},
		tenant_salt: keys.salt,
		environment: isDevelopment() ? "development" : "production",
	};
}
