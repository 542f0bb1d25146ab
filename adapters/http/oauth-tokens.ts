/**
 * Access tokens by client credentials (RFC 6749, 4.4), kept in this isolate until shortly before they end. The token
 * endpoint stands under the same guard as every tool and is never followed elsewhere. Holds token text only, never a
 * promise: one request's I/O must not be awaited by another. Called by `credentials.ts`.
 */
import { own, parseJson } from "#core/json.ts";
import { HTTP_ERROR_BODY_MAX_BYTES, TOKEN_EARLY_MS, TOKEN_UNSTATED_TTL_MS, TOKENS_CACHED_MAX } from "#core/limits.ts";
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { Clock } from "#core/ports.ts";
import { send } from "./egress.ts";
import { networkFault } from "./fault.ts";
import { readBody } from "./read-body.ts";
import { retryAfterMs } from "./retry-after.ts";

export type TokenRequest = {
	readonly tenant_id: string;
	readonly secret_name: string;
	readonly secret_version: number;
	readonly token_url: string;
	readonly client_id: string;
	readonly client_secret: string;
	readonly scope: string | undefined;
};
export type TokenAnswer =
	| { readonly ok: true; readonly token: string; readonly forget: () => void }
	| { readonly ok: false; readonly outcome: InvokeOutcome };

type SendDeps = Omit<Parameters<typeof send>[1], "progress">;

export class OAuthTokens {
	readonly #clock: Clock;
	readonly #kept = new Map<string, { readonly token: string; readonly until: number }>();

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	async get(request: TokenRequest, deps: SendDeps): Promise<TokenAnswer> {
		// The version is part of the name: after a rotation no token of the old secret is used.
		const { tenant_id, secret_name, secret_version, token_url, client_id, scope = "" } = request;
		const key = JSON.stringify([tenant_id, secret_name, secret_version, token_url, client_id, scope]);
		const forget = () => void this.#kept.delete(key);
		const kept = this.#kept.get(key);
		if (kept !== undefined && kept.until > this.#clock()) return { ok: true, token: kept.token, forget };
		const answer = await this.#ask(request, deps);
		if (!answer.ok) return answer;
		this.#keep(key, answer.token, answer.expires_in);
		return { ok: true, token: answer.token, forget };
	}

	#keep(key: string, token: string, expires_in: number | undefined): void {
		const lasts = expires_in === undefined ? TOKEN_UNSTATED_TTL_MS : expires_in * 1_000 - TOKEN_EARLY_MS;
		this.#kept.delete(key);
		if (lasts <= 0) return;
		if (this.#kept.size >= TOKENS_CACHED_MAX) this.#kept.delete(this.#kept.keys().next().value ?? "");
		this.#kept.set(key, { token, until: this.#clock() + lasts });
	}

	async #ask(
		request: TokenRequest,
		deps: SendDeps,
	): Promise<{ ok: true; token: string; expires_in: number | undefined } | { ok: false; outcome: InvokeOutcome }> {
		const form = new URLSearchParams({
			grant_type: "client_credentials",
			...(request.scope === undefined ? {} : { scope: request.scope }),
		});
		const pair = `${formEncode(request.client_id)}:${formEncode(request.client_secret)}`;
		const basic = Buffer.from(pair).toString("base64");
		deps.scrubber.add(pair);
		const headers = new Headers({
			accept: "application/json",
			authorization: `Basic ${basic}`,
			"content-type": "application/x-www-form-urlencoded",
			"user-agent": "belay",
		});
		// Asking for a token acts on nothing, so whatever happens here leaves the call without effect.
		const progress = { phase: "headers" as const, sent: false };
		const outgoing = {
			url: request.token_url,
			method: "POST",
			headers,
			body: form.toString(),
			writes: false,
			redirects: "refuse" as const,
		};
		const answer = await send(outgoing, { ...deps, progress });
		if (!answer.ok) return answer;
		const { response } = answer.arrival;
		if (!response.ok) {
			response.body?.cancel().catch(() => undefined);
			return { ok: false, outcome: refusedToken(response, this.#clock()) };
		}
		try {
			const { bytes } = await readBody(response, HTTP_ERROR_BODY_MAX_BYTES, deps.deadline);
			const parsed = parseJson(new TextDecoder().decode(bytes));
			const token = parsed.ok ? own(parsed.value, "access_token") : undefined;
			if (typeof token !== "string" || !/^[\x21-\x7e]{1,8192}$/.test(token)) {
				return {
					ok: false,
					outcome: failed("invalid_response", "the token endpoint answered without an access token"),
				};
			}
			const expires = parsed.ok ? own(parsed.value, "expires_in") : undefined;
			return { ok: true, token, expires_in: typeof expires === "number" ? expires : undefined };
		} catch {
			return { ok: false, outcome: networkFault(deps.deadline, { phase: "body", sent: true }, false) };
		}
	}
}

function refusedToken(response: Response, now: number): InvokeOutcome {
	const wait = retryAfterMs(response.headers.get("retry-after"), now);
	return failed(
		response.status === 429 ? "rate_limited" : "http_error",
		`the token endpoint answered ${response.status}`,
		{
			retryable: response.status === 429 || response.status >= 500,
			...(wait === undefined ? {} : { retry_after_ms: wait }),
		},
	);
}

/** RFC 6749, 2.3.1: both halves are form-encoded before they are joined. */
function formEncode(text: string): string {
	return new URLSearchParams([["", text]]).toString().slice(1);
}
