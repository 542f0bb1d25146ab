/**
 * Judges where a tool's request may go, by address and name alone (K1, first SSRF layer; decision 36). It parses no URL:
 * the shell hands over what the WHATWG parser made of the text, because only the parser that will also send the request
 * knows its host. It resolves nothing: DNS rebinding is beyond it, which `docs/decisions/0020-egress.md` answers.
 * Called by normalize for URL arguments, at registration, and by the egress before every hop.
 */
import ipaddr from "ipaddr.js";
import { URL_MAX_CHARS } from "../limits.ts";
import { INSIDE_V4, INTERNAL_SUFFIXES, REBINDING_SUFFIXES, REFUSED_PORTS } from "./address-guard-lists.ts";

/** A WHATWG-parsed URL as plain data. `port` is empty for the scheme's default; `raw` is the text as it was written. */
export type UrlParts = {
	readonly protocol: string;
	readonly hostname: string;
	readonly port: string;
	readonly username: string;
	readonly password: string;
	readonly raw: string;
};

/** Parses like the WHATWG URL parser, or undefined where that throws. `adapters/http/url.ts` has the real one. */
export type ParseUrl = (raw: string) => UrlParts | undefined;

export type AddressRules = {
	/** Belay's own public hosts (`host`: every port) and listening addresses (`host:port`): always denied. */
	readonly own_hosts: readonly string[];
	/** Development only: literal `host:port` of private upstreams, reached over http. Empty in a deployed build. */
	readonly exemptions: readonly string[];
};

/** Frozen literals, for evidence. What a planner reads is one coarse sentence. */
export type AddressReason =
	| "not_a_url"
	| "too_long"
	| "confusing_text"
	| "scheme"
	| "credentials"
	| "own_host"
	| "private_address"
	| "internal_name"
	| "rebinding_name"
	| "port";
export type AddressVerdict = { readonly ok: true } | { readonly ok: false; readonly reason: AddressReason };

/** Redirects are judged by these: the development exemption is never reached by redirect (decision 36). */
export function redirectRules(rules: AddressRules): AddressRules {
	return { own_hosts: rules.own_hosts, exemptions: [] };
}

/** Whether a tool may send to this URL. Refuses what two parsers could read differently before it looks at the host. */
export function judgeUrl(parts: UrlParts, rules: AddressRules): AddressVerdict {
	if (parts.raw.length > URL_MAX_CHARS) return no("too_long");
	if (parts.protocol !== "http:" && parts.protocol !== "https:") return no("scheme");
	if (parts.username !== "" || parts.password !== "") return no("credentials");
	const confusing = judgeText(parts.raw);
	if (confusing !== undefined) return no(confusing);

	const host = plainHost(parts.hostname);
	const port = parts.port === "" ? (parts.protocol === "http:" ? 80 : 443) : Number(parts.port);
	const inside = judgeHost(host);
	if (isOwn(host, port, inside !== undefined, rules.own_hosts)) return no("own_host");
	if (isExempt(parts, rules)) return { ok: true };
	if (inside !== undefined) return no(inside);
	return REFUSED_PORTS.has(port) ? no("port") : { ok: true };
}

/** Whether it is reached over http only because it is a development upstream. */
export function isExempt({ protocol, hostname, port }: UrlParts, rules: AddressRules): boolean {
	return protocol === "http:" && rules.exemptions.includes(`${plainHost(hostname)}:${port === "" ? "80" : port}`);
}

/** Whether a name resolved to an address that tools may reach: the text of one A or AAAA record. */
export function isPublicAddress(address: string): boolean {
	return address.includes(":") ? isPublicV6(address.toLowerCase()) : isPublicV4(address);
}

/** Lowercase, without the trailing dot that makes `localhost.` another string and the same host. */
function plainHost(hostname: string): string {
	return hostname.toLowerCase().replace(/\.$/, "");
}

const no = (reason: AddressReason): AddressVerdict => ({ ok: false, reason });

/**
 * The text itself: the WHATWG parser drops tabs and newlines, takes a backslash for a slash and forgives missing
 * slashes, so a checker, a proxy or a person reading an approval would see another host than the one that is called.
 */
function judgeText(raw: string): AddressReason | undefined {
	// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this line refuses
	if (/[\u0000-\u0020\u007f-\u00a0\\\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/.test(raw)) return "confusing_text";
	const authority = /^https?:\/\/([^/?#]+)/i.exec(raw)?.[1];
	if (authority === undefined || !raw.isWellFormed()) return "confusing_text";
	// `@` also stands for an empty user name, which the parsed URL no longer shows; `%` hides host characters.
	if (authority.includes("@")) return "credentials";
	return /[%<>^|]/.test(authority) ? "confusing_text" : undefined;
}

/** Why a host is inside a network, or undefined for a public one. */
function judgeHost(host: string): "private_address" | "internal_name" | "rebinding_name" | "not_a_url" | undefined {
	if (host.startsWith("[")) return isPublicV6(host.slice(1, -1)) ? undefined : "private_address";
	if (/^[0-9.]+$/.test(host)) return isPublicV4(host) ? undefined : "private_address";
	if (!/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/.test(host) || host.length > 253) return "not_a_url";
	// A single label is completed by the resolver's search list: `metadata`, `intranet`, `instance-data`, `ip6-localhost`.
	if (!host.includes(".") || endsWithName(host, INTERNAL_SUFFIXES)) return "internal_name";
	return endsWithName(host, REBINDING_SUFFIXES) ? "rebinding_name" : undefined;
}

function endsWithName(host: string, suffixes: readonly string[]): boolean {
	return suffixes.some((suffix) => host === suffix || host.endsWith(`.${suffix}`));
}

function isPublicV4(host: string): boolean {
	if (!ipaddr.IPv4.isValidFourPartDecimal(host) || INSIDE_V4.includes(host)) return false;
	return ipaddr.IPv4.parse(host).range() === "unicast";
}

/** Global unicast is 2000::/3 and nothing else (IANA): mapped, NAT64, site-local, ULA and the unassigned rest fall out at once. */
function isPublicV6(address: string): boolean {
	if (address.includes("%") || !ipaddr.IPv6.isValid(address)) return false;
	const parsed = ipaddr.IPv6.parse(address);
	const first = parsed.parts[0] ?? 0;
	return first >= 0x2000 && first <= 0x3fff && parsed.range() === "unicast";
}

/**
 * Belay's own doors: a tool that calls them would act with whatever the caller smuggles along. A listening address on
 * loopback has many spellings (127.0.0.1, localhost, [::1], 0.0.0.0), so inside a network the port alone decides.
 */
function isOwn(host: string, port: number, inside: boolean, ownHosts: readonly string[]): boolean {
	return ownHosts.some((entry) => {
		const own = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry.toLowerCase());
		const ownHost = plainHost(own?.[1] ?? "");
		const ownPort = own?.[2] === undefined ? undefined : Number(own[2]);
		if (ownHost === "") return false;
		if (ownHost === host) return ownPort === undefined || ownPort === port;
		return inside && ownPort === port && judgeHost(ownHost) !== undefined;
	});
}
