/**
 * Security headers of every answer. A page that brings its own content policy keeps it: the approval pages allow exactly
 * their own style sheet. Answers of the API are not stored by anybody unless a route says otherwise. The headers are said
 * before the answer is made, so that it is made once: set afterwards, as `hono/secure-headers` does, they cost as much as
 * judging the call.
 */
import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../env.ts";

/** JSON needs nothing; the documentation page has one inline style sheet and takes no foreign text. */
const POLICY =
	"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const HEADERS: readonly (readonly [name: string, value: string])[] = [
	["content-security-policy", POLICY],
	["cache-control", "no-store"],
	["x-content-type-options", "nosniff"],
	["x-frame-options", "DENY"],
	["referrer-policy", "no-referrer"],
	["strict-transport-security", "max-age=31536000; includeSubDomains"],
	["cross-origin-resource-policy", "same-origin"],
	["cross-origin-opener-policy", "same-origin"],
];

export const hardened = createMiddleware<AppEnv>(async (c, next) => {
	for (const [name, value] of HEADERS) c.header(name, value);
	await next();
	// An answer that was not made through the context (a stream, an error page) has none of them yet.
	const { headers } = c.res;
	if (headers.has("x-content-type-options")) return;
	for (const [name, value] of HEADERS) if (!headers.has(name)) headers.set(name, value);
});
