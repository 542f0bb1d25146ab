/**
 * Asks a resolver over HTTPS (DNS JSON) where a name leads, so that a public name whose owner points it inside is refused before
 * anything is sent (S01). Whoever sends the request resolves again: this makes rebinding a race that is lost more often than
 * not, and no more. It keeps no answers, since a kept one is what rebinding lives on. Called by the egress, where configured.
 */
import { own, parseJson } from "#core/json.ts";
import { DNS_ANSWER_MAX_BYTES, DNS_ANSWER_MAX_RECORDS } from "#core/limits.ts";
import { isPublicAddress } from "#core/normalize/address-guard.ts";
import type { Deadline } from "./deadline.ts";
import { readBody } from "./read-body.ts";

/** `inside`: some address of the name is one that no tool may reach. `unknown`: nobody could say, so nothing is sent. */
export type Place = "public" | "inside" | "unknown";
export type Resolve = (host: string, deadline: Deadline) => Promise<Place>;

const A = 1;
const AAAA = 28;

/**
 * `endpoint`: an `https` address that answers `application/dns-json`, without a query; empty: names are not resolved here.
 * An endpoint that is none never says `public`: a typing error must not switch the check off.
 */
export function resolverOf(endpoint: string | undefined, fetch: (request: Request) => Promise<Response>) {
	if (endpoint === undefined || endpoint === "") return undefined;
	const resolve: Resolve = async (host, deadline) => {
		if (!/^https:\/\/[^?#]+$/.test(endpoint) || !URL.canParse(endpoint)) return "unknown";
		const found = await Promise.all([A, AAAA].map((type) => ask(endpoint, host, type, fetch, deadline)));
		const addresses: string[] = [];
		for (const one of found) {
			if (one === undefined) return "unknown";
			addresses.push(...one);
		}
		if (addresses.some((address) => !isPublicAddress(address))) return "inside";
		return addresses.length === 0 ? "unknown" : "public";
	};
	return resolve;
}

/** The name's addresses of one type, none where it has none; undefined when the answer cannot be had or read. */
async function ask(
	endpoint: string,
	host: string,
	type: number,
	fetch: (request: Request) => Promise<Response>,
	deadline: Deadline,
): Promise<string[] | undefined> {
	const query = new URLSearchParams({ name: host, type: type === A ? "A" : "AAAA" });
	const headers = { accept: "application/dns-json" };
	try {
		const outgoing = new Request(`${endpoint}?${query}`, { headers, redirect: "manual", signal: deadline.signal });
		const response = await deadline.race(fetch(outgoing));
		const { bytes, cut } = await readBody(response, DNS_ANSWER_MAX_BYTES, deadline);
		if (response.status !== 200 || cut) return undefined;
		const parsed = parseJson(new TextDecoder().decode(bytes));
		if (!parsed.ok || own(parsed.value, "Status") !== 0) return undefined;
		// cut answers may lack the one address that matters
		if (own(parsed.value, "TC") === true) return undefined;
		const records = own(parsed.value, "Answer") ?? [];
		if (!Array.isArray(records) || records.length > DNS_ANSWER_MAX_RECORDS) return undefined;
		return records.filter((record) => own(record, "type") === type).map((record) => String(own(record, "data")));
	} catch {
		return undefined;
	}
}
