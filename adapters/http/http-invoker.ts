/**
 * Invokes tools of kind `http`: fills the request, guards it, adds the credential, sends it, reads the answer. It decides
 * no permission (that has been judged), repeats nothing (the run machine does) and never throws. Only the choke point
 * calls it.
 */
import { wellFormed } from "#core/json.ts";
import type { AddressRules } from "#core/normalize/address-guard.ts";
import { checkHttpImplementation, type HttpImplementation } from "#core/normalize/url-rules.ts";
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { CancelSignal, Clock, Invocation, SecretVault, ToolInvoker } from "#core/ports.ts";
import { resolveCredential } from "./credentials.ts";
import { Deadline } from "./deadline.ts";
import { type Fetch, send } from "./egress.ts";
import { networkFault, type Progress, securityBlocked } from "./fault.ts";
import { addQuery, fillRequest } from "./fill-request.ts";
import { httpResult } from "./http-result.ts";
import { OAuthTokens } from "./oauth-tokens.ts";
import type { Resolve } from "./resolver.ts";
import { Scrubber } from "./scrubber.ts";
import { traceparent } from "./traceparent.ts";
import { parseUrl } from "./url.ts";

export type HttpInvokerDeps = {
	/** In a Worker `(request) => fetch(request)`: the bare global loses its `this` when it is stored. */
	readonly fetch: Fetch;
	readonly vault: SecretVault;
	readonly rules: AddressRules;
	readonly clock: Clock;
	/** Where a resolver is configured: asked before every hop. */
	readonly resolve?: Resolve | undefined;
};

export class HttpInvoker implements ToolInvoker {
	readonly #deps: HttpInvokerDeps;
	readonly #tokens: OAuthTokens;

	/** One per isolate or object: it keeps access tokens, by tenant, until they end. */
	constructor(deps: HttpInvokerDeps) {
		this.#deps = deps;
		this.#tokens = new OAuthTokens(deps.clock);
	}

	async invoke(invocation: Invocation, signal: CancelSignal): Promise<InvokeOutcome> {
		const { implementation } = invocation.descriptor;
		if (implementation.kind !== "http") return failed("internal", "this tool is not an http tool");
		const deadline = new Deadline(invocation.timeout_ms, signal);
		const progress: Progress = { phase: "headers", sent: false };
		try {
			return await this.#invoke(invocation, implementation, deadline, progress);
		} catch {
			// Whatever it was (a vault that is away, a header that does not parse), its text may hold a secret.
			const writes = mayWrite(invocation, implementation);
			if (deadline.stopped !== undefined) return networkFault(deadline, progress, writes);
			return failed("internal", "the request could not be made", {
				effect: progress.sent && writes ? "possible" : "none",
			});
		} finally {
			deadline.dispose();
		}
	}

	async #invoke(
		invocation: Invocation,
		implementation: HttpImplementation,
		deadline: Deadline,
		progress: Progress,
	): Promise<InvokeOutcome> {
		const { fetch, rules, vault, clock, resolve } = this.#deps;
		// Judged at registration too; again here, because rules (own hosts, lists) may be stricter by now.
		const wrong = checkHttpImplementation(implementation, { rules, parseUrl })[0];
		if (wrong !== undefined) return securityBlocked(wrong.error);
		const auth = implementation.auth ?? { type: "none" as const };
		const reserved = auth.type === "api_key" && auth.in === "query" ? [auth.name] : [];
		const filled = fillRequest(implementation, invocation.arguments, rules, reserved);
		if (!filled.ok) return failed(filled.code, filled.message);

		const { url, headers, body } = filled.request;
		const scrubber = new Scrubber();
		const guard = { fetch, rules, deadline, scrubber, resolve };
		const answer = await resolveCredential(auth, url.host, invocation, { ...guard, vault, tokens: this.#tokens });
		if (!answer.ok) return answer.outcome;
		const { credential } = answer;
		addQuery(url, credential.query);
		for (const [name, value] of credential.headers) headers.set(name, value);
		const trace = traceparent(invocation);
		if (trace !== undefined) headers.set("traceparent", trace);
		if (invocation.idempotency_key !== null) headers.set("idempotency-key", wellFormed(invocation.idempotency_key));

		const writes = mayWrite(invocation, implementation);
		const request = {
			url: url.href,
			method: implementation.method,
			headers,
			body,
			writes,
			redirects: "follow" as const,
		};
		const { allowed_hosts } = implementation;
		const sent = await send(request, { ...guard, progress, allowed_hosts });
		if (!sent.ok) return sent.outcome;
		if (sent.arrival.response.status === 401) credential.rejected();
		return await httpResult(sent.arrival, { deadline, scrubber, progress, writes, now: clock() });
	}
}

/** A declared read may POST (a query language), but no declaration makes PUT, PATCH or DELETE harmless. */
function mayWrite(invocation: Invocation, implementation: HttpImplementation): boolean {
	return invocation.descriptor.effect !== "read" || ["PUT", "PATCH", "DELETE"].includes(implementation.method);
}
