/**
 * What the world answered to one attempt. Every invoker of every kind returns one of these and throws nothing: a thrown
 * error is mapped by the choke point to `failed` with `effect: possible`.
 */
import type { Json } from "./json.ts";

/** Whether the attempt may have acted on the world. `possible` for an unkeyed write means OUTCOME_UNKNOWN (decision 31). */
export type PossibleEffect = "none" | "possible";

/** Frozen literals of `error.code` on a call. */
export const FAULT_CODES = [
	"http_error",
	"rate_limited",
	"connection_lost",
	"timeout",
	"redirect_refused",
	"security_blocked",
	"invalid_arguments",
	"response_too_large",
	"invalid_response",
	"code_error",
	"cpu_exceeded",
	"wall_exceeded",
	"oom",
	"instruction_limit",
	"not_configured",
	"dataset_error",
	"delivery_failed",
	"circuit_open",
	"outcome_unknown",
	"interrupted",
	"internal",
] as const;
export type FaultCode = (typeof FAULT_CODES)[number];

export type InvokeOutcome =
	| {
			readonly kind: "success";
			readonly result: Json;
			/** Short, true statements for the evidence: `3 rows`, `HTTP 200 from api.example.com`. Never secrets. */
			readonly facts: readonly string[];
			/** Told to the planner beside the data: truncations, big integers turned to strings. */
			readonly notes: readonly string[];
			/** Artifacts that hold what was too large to keep with the call. */
			readonly artifacts?: readonly string[];
			readonly http_status?: number;
	  }
	| {
			readonly kind: "failed";
			readonly code: FaultCode;
			/** Safe for the planner and the user: no internals, no secrets, no private addresses. */
			readonly message: string;
			/** More for the planner: a code error's type, line and snippet. */
			readonly detail?: Json;
			readonly effect: PossibleEffect;
			readonly retryable: boolean;
			readonly http_status?: number;
			readonly retry_after_ms?: number;
	  }
	| { readonly kind: "timeout"; readonly phase: "headers" | "body" | "wall"; readonly effect: PossibleEffect };

export type Success = Extract<InvokeOutcome, { kind: "success" }>;
export type Failed = Extract<InvokeOutcome, { kind: "failed" }>;

export function failed(
	code: FaultCode,
	message: string,
	more: Partial<Omit<Failed, "kind" | "code" | "message">> = {},
): Failed {
	return { kind: "failed", code, message, effect: "none", retryable: false, ...more };
}
