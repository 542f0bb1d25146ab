/**
 * Security headers of every answer. A page that brings its own content policy keeps it: the approval pages allow exactly
 * their own style sheet. Answers of the API are not stored by anybody unless a route says otherwise.
 */
import { createMiddleware } from "hono/factory";
import { secureHeaders } from "hono/secure-headers";
import type { AppEnv } from "../env.ts";

const common = secureHeaders({
	crossOriginResourcePolicy: "same-origin",
	referrerPolicy: "no-referrer",
	xFrameOptions: "DENY",
	strictTransportSecurity: "max-age=31536000; includeSubDomains",
});
/** JSON needs nothing; the documentation page has one inline style sheet and takes no foreign text. */
const POLICY =
	"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

export const hardened = createMiddleware<AppEnv>(async (c, next) => {
	await common(c, next);
	const { headers } = c.res;
	if (!headers.has("content-security-policy")) headers.set("content-security-policy", POLICY);
	if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
});
