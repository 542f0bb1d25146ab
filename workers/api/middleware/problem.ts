/**
 * Renders every failure as `application/problem+json`: problems that were thrown, Hono's own exceptions, and anything
 * unforeseen as a bare 500. Error messages from inside (SQL, bound parameters, stacks) reach the log only.
 */
import type { Context, ErrorHandler } from "hono";
import { HTTPException } from "hono/http-exception";
import { D1Unavailable } from "#adapters/d1/d1-unavailable.ts";
import { randomBytes } from "#adapters/random.ts";
import { traceId } from "#core/ids.ts";
import type { AppEnv } from "../env.ts";
import { ApiProblem, PROBLEMS, type ProblemCode, problem, problemBody } from "../problem.ts";

export const onError: ErrorHandler<AppEnv> = (error, c) => respond(c, asProblem(error, c.get("trace_id")));

/** A problem as a response. */
export function respond(c: Context<AppEnv>, found: ApiProblem): Response {
	// a failure before the first middleware has no trace id yet
	const id = c.get("trace_id") ?? traceId(randomBytes);
	const headers = new Headers(found.more.headers);
	headers.set("content-type", "application/problem+json");
	headers.set("cache-control", "no-store");
	headers.set("trace-id", id);
	if (found.more.retry_after_s !== undefined)
		headers.set("retry-after", String(Math.max(1, Math.ceil(found.more.retry_after_s))));
	return new Response(JSON.stringify(problemBody(found, id)), { status: found.status, headers });
}

function asProblem(error: unknown, traceId: string): ApiProblem {
	if (error instanceof ApiProblem) return error;
	if (error instanceof D1Unavailable)
		return problem("store_unavailable", "the store cannot be reached just now; try again", { retry_after_s: 2 });
	if (error instanceof HTTPException) {
		const code = (Object.keys(PROBLEMS) as ProblemCode[]).find((one) => PROBLEMS[one][0] === error.status);
		// the exception's own message may quote the request; the code says enough
		if (code !== undefined && code !== "internal") return problem(code, PROBLEMS[code][1].toLowerCase());
	}
	console.error(JSON.stringify({ level: "error", trace_id: traceId, error: describe(error) }));
	return problem("internal", "something went wrong on our side; quote the trace id when you report it");
}

/** Name and place of an unforeseen error for the log; not its message, which may carry bound parameters. */
function describe(error: unknown): string {
	if (!(error instanceof Error)) return typeof error;
	const places = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
	return [error.name, ...places.slice(0, 8).map((line) => line.trim())].join(" | ");
}
