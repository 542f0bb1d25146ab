/**
 * Turns what a model provider answered into a planner fault: whether asking again can help, and a message that is safe
 * to store and to show. Never carries the key, the request or more of the body than one short masked line.
 * Called by the OpenAI planner.
 */
import { maskText } from "#core/data/mask.ts";
import { own } from "#core/json.ts";
import type { PlannerFault } from "#core/ports.ts";

const MESSAGE_MAX_CHARS = 200;
/** A provider that asks for more is taken at this word: the run has its own clocks. */
const RETRY_AFTER_MAX_MS = 600_000;

/** @param body the parsed error body, `{error: {message, type, code}}` or its inner object */
export function statusFault(status: number, body: unknown, headers: Headers, key: string): PlannerFault {
	const said = providerMessage(body, key);
	const rejected = (message: string): PlannerFault => ({ code: "planner_rejected", message, retryable: false });
	// The 401 texts of providers repeat parts of the key.
	if (status === 401 || status === 403) return rejected(`the planner's provider refused the key (${status})`);
	if (status === 402 || errorCode(body) === "insufficient_quota")
		return rejected(`the planner's account has no balance (${status})`);
	if (status === 429)
		return {
			code: "planner_error",
			message: "the planner's provider limits the rate (429)",
			retryable: true,
			retry_after_ms: retryAfter(headers),
		};
	if (status === 408 || status === 409 || status >= 500) {
		return {
			code: "planner_error",
			message: `the planner's provider failed (${status})${said}`,
			retryable: true,
			retry_after_ms: retryAfter(headers),
		};
	}
	if (status >= 300 && status < 400)
		return rejected(`the planner's provider redirects (${status}): set its final address`);
	return rejected(`the planner's provider refused the request (${status})${said}`);
}

/** An error object inside a stream that began with 200. Nothing of the turn has run, so asking again is safe. */
export function streamFault(error: unknown, key: string): PlannerFault {
	const code = errorCode(error);
	if (code === "insufficient_quota")
		return { code: "planner_rejected", message: "the planner's account has no balance", retryable: false };
	const refused =
		own(error, "type") === "invalid_request_error" || own(own(error, "error"), "type") === "invalid_request_error";
	return {
		code: refused ? "planner_rejected" : "planner_error",
		message: `the planner's provider broke off${providerMessage(error, key)}`,
		retryable: !refused,
	};
}

function errorCode(body: unknown): unknown {
	return own(own(body, "error"), "code") ?? own(body, "code");
}

function providerMessage(body: unknown, key: string): string {
	const inner = own(body, "error");
	const message = own(inner, "message") ?? own(body, "message") ?? inner;
	if (typeof message !== "string" || message.trim() === "") return "";
	const line = message
		.replaceAll(key, "***")
		.replace(/\s+/g, " ")
		.slice(0, 4 * MESSAGE_MAX_CHARS);
	return `: ${maskText(line).slice(0, MESSAGE_MAX_CHARS).toWellFormed()}`;
}

/** `Retry-After` in seconds or as an HTTP date; undefined where the provider says nothing usable. */
function retryAfter(headers: Headers, now: number = Date.now()): number | undefined {
	const text = headers.get("retry-after")?.trim() ?? "";
	const wait = /^\d{1,9}(?:\.\d{1,3})?$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
	return Number.isNaN(wait) ? undefined : Math.min(Math.max(0, Math.ceil(wait)), RETRY_AFTER_MAX_MS);
}
