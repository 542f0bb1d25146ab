/** The address rules of this deployment (decision 36). Called where tools are registered and where they are invoked. */
import type { AddressRules } from "#core/normalize/address-guard.ts";

/** Set by `--define BELAY_DEV:true` in the development build only; a deployed build does not have the name at all. */
declare const BELAY_DEV: boolean | undefined;

export const isDevelopment = (): boolean => typeof BELAY_DEV !== "undefined" && BELAY_DEV === true;

/**
 * `public_url` is where people reach Belay: tools never do. `dev_upstreams` lists `host:port` pairs that development
 * runs may reach although they are private; outside the development build the list is ignored, whatever the variable says.
 */
export function addressRules(config: {
	readonly public_url: string;
	readonly dev_upstreams: string | undefined;
}): AddressRules {
	const own_hosts = URL.canParse(config.public_url) ? [new URL(config.public_url).host] : [];
	const named = (config.dev_upstreams ?? "").split(",").map((one) => one.trim());
	return { own_hosts, exemptions: isDevelopment() ? named.filter((one) => one !== "") : [] };
}
