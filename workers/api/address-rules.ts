/**
 * Which addresses are refused where URLs are registered: what every request of a tool is refused (decision 36), and the
 * host that this very request came to, which is Belay's own whatever the configuration says.
 */
import { addressRules } from "#adapters/http/address-rules.ts";
import type { AddressRules } from "#core/normalize/address-guard.ts";
import type { Ctx } from "./noun.ts";

export function registrationRules(c: Ctx): AddressRules {
	const rules = addressRules({ public_url: c.env.BELAY_PUBLIC_URL, dev_upstreams: c.env.BELAY_DEV_UPSTREAMS });
	return { ...rules, own_hosts: [...new Set([...rules.own_hosts, new URL(c.req.url).host])] };
}
