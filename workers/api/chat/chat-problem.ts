/**
 * Problems of the chat route in the shape that OpenAI clients read: `{error: {message, type, param, code}}`. The code is the
 * problem's own. The client's library repeats a failed request by itself on 408, 409, 429 and 5xx; here a repeat may start a
 * second run, which may act a second time, so every answer says whether one is safe (`x-should-retry`).
 */
import type { ErrorHandler } from "hono";
import * as z from "zod";
import type { JsonObject } from "#core/json.ts";
import type { FieldError } from "#core/refusal.ts";
import type { AppEnv } from "../env.ts";
import { onError } from "../middleware/problem.ts";
import type { ApiProblem } from "../problem.ts";

/** Nothing was begun when these were said. */
const NOTHING_DONE: ReadonlySet<string> = new Set(["rate_limited", "store_unavailable", "control_unavailable"]);

type Problem = {
	readonly status: number;
	readonly code: string;
	readonly detail: string;
	readonly errors?: readonly FieldError[];
};

/** The form of this route's errors, for the document. */
export const chatError = z.object({
	error: z.object({
		message: z.string(),
		type: z.enum([
			"authentication_error",
			"permission_error",
			"rate_limit_error",
			"server_error",
			"invalid_request_error",
		]),
		param: z.string().nullable().describe("the field to mend, as `messages.0.content`"),
		code: z.string().describe("a problem's code, see `/docs#problems`"),
	}),
});

/** The route's own error handler: headers as everywhere, another body. */
export const onChatError: ErrorHandler<AppEnv> = async (error, c) => {
	const answer = await onError(error, c);
	const problem = (await answer.json()) as Problem;
	const headers = new Headers(answer.headers);
	headers.set("content-type", "application/json; charset=utf-8");
	const run_id = c.get("run_id");
	if (run_id !== undefined) headers.set("belay-run-id", run_id);
	// With an Idempotency-Key, or as answers to calls, a repeat is the same request, whatever became of the first.
	const same = c.req.header("idempotency-key") !== undefined || c.get("repeatable") === true;
	headers.set("x-should-retry", String((same && problem.code === "run_unavailable") || NOTHING_DONE.has(problem.code)));
	return new Response(JSON.stringify(errorBody(problem)), { status: answer.status, headers });
};

/** What goes into a stream that has begun: its client throws it like an answered error. */
export function errorOf({ status, code, message, more }: ApiProblem): JsonObject {
	return errorBody({ status, code, detail: message, ...(more.errors === undefined ? {} : { errors: more.errors }) });
}

function errorBody({ status, code, detail, errors }: Problem): JsonObject {
	const [first] = errors ?? [];
	const expected = first === undefined || first.expected === "" ? "" : ` (expected: ${first.expected})`;
	return { error: { message: `${detail}${expected}`, type: typeOf(status), param: paramOf(first?.field), code } };
}

function typeOf(status: number): string {
	if (status === 401) return "authentication_error";
	if (status === 403) return "permission_error";
	if (status === 429) return "rate_limit_error";
	return status >= 500 ? "server_error" : "invalid_request_error";
}

/** `/messages/0/content` -> `messages.0.content`; `header:x` stays. */
function paramOf(field: string | undefined): string | null {
	if (field === undefined || field === "") return null;
	return field.startsWith("/")
		? field.slice(1).replaceAll("/", ".").replaceAll("~1", "/").replaceAll("~0", "~")
		: field;
}
