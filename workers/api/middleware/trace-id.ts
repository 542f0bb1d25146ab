/**
 * Gives every request one trace id and every answer the `trace-id` header, problems included. A valid W3C `traceparent`
 * is taken over; a malformed one is ignored, as that standard asks. Runs first.
 */
import { createMiddleware } from "hono/factory";
import { traceId, traceIdOf } from "#core/ids.ts";
import type { AppEnv } from "../env.ts";
import { randomBytes } from "../random.ts";

export const traced = createMiddleware<AppEnv>(async (c, next) => {
	const id = traceIdOf(c.req.header("traceparent")) ?? traceId(randomBytes);
	c.set("trace_id", id);
	c.header("trace-id", id);
	await next();
	if (!c.res.headers.has("trace-id")) c.res.headers.set("trace-id", id);
});
