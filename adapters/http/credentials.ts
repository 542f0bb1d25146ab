/**
 * Turns an implementation's `auth` into the headers and query parameters of one request. Opens the secret for this tool
 * and this host only, and tells the scrubber before anything is sent. It keeps nothing. Called by the http invoker.
 */
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { Invocation, SecretVault } from "#core/ports.ts";
import type { HttpAuth } from "#core/registry/descriptor.ts";
import type { Deadline } from "./deadline.ts";
import type { OAuthTokens } from "./oauth-tokens.ts";
import type { Scrubber } from "./scrubber.ts";

export type Credential = {
	readonly headers: readonly (readonly [string, string])[];
	readonly query: readonly (readonly [string, string])[];
	/** Called when the upstream says 401: a kept token is not tried again. */
	readonly rejected: () => void;
};
export type CredentialAnswer =
	| { readonly ok: true; readonly credential: Credential }
	| { readonly ok: false; readonly outcome: InvokeOutcome };

export type CredentialDeps = Parameters<OAuthTokens["get"]>[1] & {
	readonly vault: SecretVault;
	readonly tokens: OAuthTokens;
	readonly deadline: Deadline;
	readonly scrubber: Scrubber;
};

/** `host`: where the request goes, `host[:port]`. */
export async function resolveCredential(
	auth: HttpAuth,
	host: string,
	invocation: Invocation,
	deps: CredentialDeps,
): Promise<CredentialAnswer> {
	if (auth.type === "none") return credential([], []);
	const opened = await openSecret(auth.secret, host, invocation, deps);
	if (!opened.ok) return opened;
	const { value } = opened;
	switch (auth.type) {
		case "api_key":
			return auth.in === "query" ? credential([], [[auth.name, value]]) : credential([[auth.name, value]], []);
		case "bearer":
			return credential([["authorization", `Bearer ${value}`]], []);
		case "basic": {
			const pair = Buffer.from(value, "utf8").toString("base64");
			deps.scrubber.add(value.slice(value.indexOf(":") + 1));
			return credential([["authorization", `Basic ${pair}`]], []);
		}
		case "oauth2_client":
			return oauthCredential(auth, opened, invocation, deps);
	}
}

/** The client secret goes to the token endpoint and its token to the API, so the secret must name both hosts. */
async function oauthCredential(
	auth: Extract<HttpAuth, { type: "oauth2_client" }>,
	opened: { value: string; version: number },
	invocation: Invocation,
	deps: CredentialDeps,
): Promise<CredentialAnswer> {
	const there = await openSecret(auth.secret, new URL(auth.token_url).host, invocation, deps);
	if (!there.ok) return there;
	const request = {
		tenant_id: invocation.tenant_id,
		secret_name: auth.secret,
		secret_version: opened.version,
		token_url: auth.token_url,
		client_id: auth.client_id,
		client_secret: opened.value,
		scope: auth.scope,
	};
	const answer = await deps.tokens.get(request, deps);
	if (!answer.ok) return answer;
	deps.scrubber.add(answer.token);
	return credential([["authorization", `Bearer ${answer.token}`]], [], answer.forget);
}

async function openSecret(
	name: string,
	host: string,
	invocation: Invocation,
	deps: CredentialDeps,
): Promise<{ ok: true; value: string; version: number } | { ok: false; outcome: InvokeOutcome }> {
	const use = { tool_id: invocation.descriptor.tool_id, host };
	const opened = await deps.deadline.race(deps.vault.open(invocation.tenant_id, name, use));
	if (!opened.ok) {
		return {
			ok: false,
			outcome: failed("not_configured", `secret \`${name}\` does not exist or is not meant for this tool and host`),
		};
	}
	deps.scrubber.add(opened.value);
	// A line break pasted along with a key would begin a header of its own.
	if (!/^[\x20-\x7e]+$/.test(opened.value)) {
		return {
			ok: false,
			outcome: failed("not_configured", `secret \`${name}\` holds something else than printable ASCII`),
		};
	}
	return opened;
}

function credential(
	headers: Credential["headers"],
	query: Credential["query"],
	rejected: () => void = () => undefined,
): CredentialAnswer {
	return { ok: true, credential: { headers, query, rejected } };
}
