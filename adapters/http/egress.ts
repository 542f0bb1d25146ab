/**
 * The only way out: sends one request and follows its redirects by hand, each hop judged like the first (S01). It holds
 * no secret of its own, reads no body and retries nothing. Called by the http invoker, the token client and the webhook
 * channel; nothing else in the service calls `fetch` for a tool.
 */
import { HTTP_REDIRECTS_MAX } from "#core/limits.ts";
import { type AddressRules, isExempt, judgeUrl, redirectRules, type UrlParts } from "#core/normalize/address-guard.ts";
import { allowsHost } from "#core/normalize/host-pattern.ts";
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { Deadline } from "./deadline.ts";
import { networkFault, type Progress, securityBlocked } from "./fault.ts";
import type { Place, Resolve } from "./resolver.ts";
import type { Scrubber } from "./scrubber.ts";
import { parseUrl } from "./url.ts";

/** The world's `fetch`, injected. In a Worker: `(request) => fetch(request)`. */
export type Fetch = (request: Request) => Promise<Response>;

export type EgressRequest = {
	readonly url: string;
	readonly method: string;
	/** All headers, credentials included. At a change of origin only the harmless ones go on. */
	readonly headers: Headers;
	readonly body: string | undefined;
	/** Whether the tool may act on the world (decides what a lost connection means). */
	readonly writes: boolean;
	readonly redirects: "follow" | "refuse";
};

/** `acted`: an earlier hop took the write before it redirected, so a later 4xx does not mean that nothing happened. */
export type Arrival = {
	readonly response: Response;
	readonly url: URL;
	readonly redirects: number;
	readonly acted: boolean;
};
export type EgressAnswer =
	| { readonly ok: true; readonly arrival: Arrival }
	| { readonly ok: false; readonly outcome: InvokeOutcome };

const REDIRECT_STATUS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** What may cross to another origin; every other header was meant for the first one. */
const HARMLESS_HEADERS: ReadonlySet<string> = new Set([
	"accept",
	"accept-language",
	"content-type",
	"traceparent",
	"user-agent",
]);
/** One sentence for every refused hop: which addresses exist inside is not for the planner to learn. */
const REDIRECT_REFUSED = "the upstream redirected to where tools may not follow";

export async function send(
	request: EgressRequest,
	deps: {
		readonly fetch: Fetch;
		readonly rules: AddressRules;
		readonly deadline: Deadline;
		readonly scrubber: Scrubber;
		readonly progress: Progress;
		/** Asks where names lead, before every hop; absent where no resolver is configured. */
		readonly resolve?: Resolve | undefined;
		/** The only hosts that this request and its redirects may go to; absent: any public one. */
		readonly allowed_hosts?: readonly string[] | undefined;
	},
): Promise<EgressAnswer> {
	const { fetch, deadline, scrubber, progress } = deps;
	let { url: target, method, body } = request;
	let headers = request.headers;
	let acted = false;
	for (let hop = 0; ; hop++) {
		const parts = parseUrl(target);
		const rules = hop === 0 ? deps.rules : redirectRules(deps.rules);
		// The tool's own list comes first: what it leaves out is not even asked of a resolver.
		const listed = deps.allowed_hosts === undefined || allowsHost(deps.allowed_hosts, hostOf(target));
		const allowed = parts !== undefined && listed && judgeUrl(parts, rules).ok;
		const place = allowed ? await placeOf(parts, rules, deps) : "inside";
		if (!allowed || place === "inside")
			return no(hop === 0 ? securityBlocked("the url is not one that tools may reach") : refused(acted));
		if (place === "unknown") return no(networkFault(deadline, progress, request.writes));

		let response: Response;
		try {
			const outgoing = new Request(target, {
				method,
				headers,
				body: body ?? null,
				redirect: "manual",
				signal: deadline.signal,
			});
			if (deadline.stopped !== undefined) return no(networkFault(deadline, progress, request.writes));
			progress.sent = true;
			response = await deadline.race(fetch(outgoing));
		} catch {
			return no(networkFault(deadline, progress, request.writes));
		}
		const from = new URL(target);
		if (!REDIRECT_STATUS.has(response.status))
			return { ok: true, arrival: { response, url: from, redirects: hop, acted } };

		const location = response.headers.get("location");
		response.body?.cancel().catch(() => undefined);
		// 307 and 308 ask for the same request elsewhere: this hop did not take it. The others may have acted first.
		if (request.writes && response.status < 307) acted = true;
		if (request.redirects === "refuse" || hop >= HTTP_REDIRECTS_MAX) return no(refused(acted));
		const next = resolve(location, from);
		if (next === undefined) return no(refused(acted));
		const becomesGet = response.status === 303 ? method !== "HEAD" : response.status < 303 && method === "POST";
		if (becomesGet) {
			method = "GET";
			body = undefined;
			headers = without(headers, (name) => name === "content-type");
		}
		if (next.origin !== from.origin) {
			// A person approved this write towards this host; and a Location may carry the key of a query along.
			if ((method !== "GET" && method !== "HEAD") || scrubber.holds(next.href)) return no(refused(acted));
			headers = without(headers, (name) => !HARMLESS_HEADERS.has(name));
		}
		target = next.href;
	}
}

const hostOf = (target: string): string => (URL.canParse(target) ? new URL(target).host : "");

/** Where a name leads. An address literal has been judged as it stands, a development upstream is named by the operator. */
async function placeOf(
	parts: UrlParts,
	rules: AddressRules,
	{ resolve: ask, deadline }: { readonly resolve?: Resolve | undefined; readonly deadline: Deadline },
): Promise<Place> {
	if (ask === undefined || isExempt(parts, rules) || /^\[|^[0-9.]+$/.test(parts.hostname)) return "public";
	return await ask(parts.hostname, deadline);
}

function resolve(location: string | null, base: URL): URL | undefined {
	// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this line refuses
	if (location === null || /[\u0000-\u001f\\]/.test(location) || !URL.canParse(location, base.href)) return undefined;
	const next = new URL(location, base);
	next.hash = "";
	return next;
}

function without(headers: Headers, drop: (name: string) => boolean): Headers {
	return new Headers([...headers].filter(([name]) => !drop(name)));
}

function refused(acted: boolean): InvokeOutcome {
	return failed("redirect_refused", REDIRECT_REFUSED, { effect: acted ? "possible" : "none" });
}

const no = (outcome: InvokeOutcome): EgressAnswer => ({ ok: false, outcome });
