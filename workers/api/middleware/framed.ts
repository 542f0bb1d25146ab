/**
 * What every answer carries: its trace id, and the security headers. A page that brings its own content policy keeps it: the
 * approval pages allow exactly their own style sheet. Answers of the API are not stored by anybody unless a route says
 * otherwise. A valid W3C `traceparent` is taken over; a malformed one is ignored, as that standard asks. Runs first.
 */
import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { randomBytes } from "#adapters/random.ts";
import { traceId, traceIdOf } from "#core/ids.ts";
import type { AppEnv } from "../env.ts";

/** JSON needs nothing; the documentation page has one inline style sheet and takes no foreign text. */
const POLICY =
	"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const HEADERS: Readonly<Record<string, string>> = {
	"content-security-policy": POLICY,
	"cache-control": "no-store",
	"x-content-type-options": "nosniff",
	"x-frame-options": "DENY",
	"referrer-policy": "no-referrer",
	"strict-transport-security": "max-age=31536000; includeSubDomains",
	"cross-origin-resource-policy": "same-origin",
	"cross-origin-opener-policy": "same-origin",
};

export const framed = createMiddleware<AppEnv>(async (c, next) => {
	const id = traceIdOf(c.req.header("traceparent")) ?? traceId(randomBytes);
	c.set("trace_id", id);
	await next();
	const { headers } = c.res;
	if (!headers.has("trace-id")) headers.set("trace-id", id);
	// Only `answerText` says this one, and says all of them; a route that sets some keeps its own.
	if (headers.has("strict-transport-security")) return;
	for (const [name, value] of Object.entries(HEADERS)) if (!headers.has(name)) headers.set(name, value);
});

const JSON_HEADERS = new Headers({ ...HEADERS, "content-type": "application/json" });

/** A 200 with JSON text and all its headers at once: said one by one afterwards they cost as much as judging the call. */
export function answerText(c: Context<AppEnv>, json: string): Response {
	const response = new Response(json, { headers: JSON_HEADERS });
	response.headers.set("trace-id", c.get("trace_id"));
	return response;
}
