/**
 * Problems as the outside sees them (RFC 9457). `code` is a frozen literal that clients branch on; `detail` is one safe
 * line. What went wrong inside never enters a problem: it goes to the log under the same trace id. Thrown by every route
 * and middleware, rendered by `middleware/problem.ts` alone.
 */
import type { JsonObject } from "#core/json.ts";
import type { FieldError } from "#core/refusal.ts";

/** Frozen (pinned by a test): code -> [status, title]. What a run's object answers is listed too; a newer one may say more. */
export const PROBLEMS = {
	malformed_body: [400, "Malformed request body"],
	unauthorized: [401, "Authentication required"],
	forbidden: [403, "Not permitted"],
	csrf_failed: [403, "The form is not this page's"],
	not_found: [404, "Not found"],
	method_not_allowed: [405, "Method not allowed"],
	session_taken: [409, "The session cannot be used"],
	idempotency_conflict: [409, "The Idempotency-Key was used for another request"],
	turn_open: [409, "The turn is still open"],
	not_external: [409, "The run has a planner of its own"],
	not_awaiting_decision: [409, "The run takes no decision now"],
	not_replayable: [409, "The run cannot be replayed"],
	not_suspended: [409, "The run is not suspended"],
	run_finished: [409, "The run is over"],
	too_many_messages: [409, "Too many messages wait"],
	call_started: [409, "The call cannot be taken back"],
	outcome_known: [409, "The outcome is known"],
	approval_mismatch: [409, "The decision does not match the frozen call"],
	approval_superseded: [409, "The approval no longer holds"],
	already_decided: [409, "Already decided"],
	caller_call_closed: [409, "The call takes no other answer"],
	version_conflict: [409, "It exists with other content"],
	incompatible_change: [409, "An incompatible change needs a new major version"],
	in_use: [409, "Still in use"],
	approval_expired: [410, "The approval has expired"],
	link_used: [410, "The link was used"],
	link_expired: [410, "The link has expired"],
	body_too_large: [413, "Request body too large"],
	unsupported_media_type: [415, "Unsupported media type"],
	invalid_request: [422, "Understood, but not valid"],
	empty_decision: [422, "A decision without content or tool calls"],
	caller_tools_unsupported: [422, "Not taken from a caller"],
	caller_tool_collision: [422, "A governed function has that name"],
	caller_calls_unanswered: [422, "Some calls have no answer"],
	unknown_tool_call: [422, "Not a call that was handed to the caller"],
	rate_limited: [429, "Too many requests"],
	internal: [500, "Internal error"],
	run_unavailable: [503, "The run cannot be reached"],
	store_unavailable: [503, "The store cannot be reached"],
	control_unavailable: [503, "The tenant's control cannot be reached"],
	planner_unavailable: [503, "The planner is not available"],
	delivery_failed: [503, "The message could not be handed over"],
} as const satisfies Record<string, readonly [number, string]>;
export type ProblemCode = keyof typeof PROBLEMS;

export type ProblemMore = {
	readonly errors?: readonly FieldError[];
	readonly retry_after_s?: number;
	/** More members of the body, e.g. the winner's decision of `already_decided`. */
	readonly extra?: JsonObject;
	readonly headers?: Readonly<Record<string, string>>;
};

/** Ends a request with a problem. `message` is the `detail`: safe to show, one line, no value that may be secret. */
export class ApiProblem extends Error {
	override readonly name = "ApiProblem";
	readonly status: number;
	readonly code: string;
	readonly more: ProblemMore;

	constructor(status: number, code: string, detail: string, more: ProblemMore = {}) {
		super(detail);
		this.status = status;
		this.code = code;
		this.more = more;
	}
}

/** A problem of Belay's own list, with the status that belongs to its code. */
export function problem(code: ProblemCode, detail: string, more: ProblemMore = {}): ApiProblem {
	return new ApiProblem(PROBLEMS[code][0], code, detail, more);
}

/** One answer for absent, foreign, malformed and retired ids: a prober learns nothing from the difference. */
export const notFound = (): ApiProblem => problem("not_found", "no such object");

/** 422 with the fields to mend. */
export function invalid(errors: readonly FieldError[]): ApiProblem {
	const [first] = errors;
	const many = errors.length > 1 ? ` (and ${errors.length - 1} more)` : "";
	return problem("invalid_request", first === undefined ? "the request is not valid" : `${first.error}${many}`, {
		errors,
	});
}

/** 422 for a single field. `field` is a JSON Pointer into the body, or `header:<name>` / `query:<name>`. */
export function invalidField(
	field: string,
	issue: FieldError["issue"],
	error: string,
	expected: string,
	hint = "",
): ApiProblem {
	return invalid([{ error, field, issue, expected, hint }]);
}

const TITLES = new Map<string, string>(Object.entries(PROBLEMS).map(([code, [, title]]) => [code, title]));

/** The body of a problem answer. `type` is relative to the service: its documentation page explains each code. */
export function problemBody(found: ApiProblem, traceId: string): JsonObject {
	const { errors, extra } = found.more;
	return {
		...extra,
		type: `/docs#problem-${found.code}`,
		title: TITLES.get(found.code) ?? found.code.replaceAll("_", " "),
		status: found.status,
		code: found.code,
		detail: found.message,
		...(errors === undefined ? {} : { errors: errors.map((one) => ({ ...one })) }),
		trace_id: traceId,
	};
}
