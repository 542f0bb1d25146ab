/**
 * The one URL parser: WHATWG, the same that sends the request, so the guard never judges another host than the one
 * that is called. It judges nothing itself. Called by registration, by normalize and by the egress.
 */
import type { UrlParts } from "#core/normalize/address-guard.ts";

/** The parts of an absolute URL, or undefined when it does not parse. */
export function parseUrl(raw: string): UrlParts | undefined {
	if (!URL.canParse(raw)) return undefined;
	const { protocol, hostname, port, username, password } = new URL(raw);
	return { protocol, hostname, port, username, password, raw };
}
