/**
 * Bounds how often a planner may get the same tool wrong (V4, T13): three refusals in a row per run and tool. The first
 * come back with what to repair, an identical failure says that it is identical, the third says in plain words that this
 * is the end and what to do instead, and one more ends the run. A valid call of the tool begins anew.
 * Small plain data that the run stores with itself; it refuses nothing by itself.
 * Called by core/run where a call is refused, and where one has passed normalize.
 */
import type { FieldError, RefusalReason } from "../refusal.ts";

/** V4. */
const REFUSALS_MAX = 3;
/** Tools kept in mind; a planner that fails with more of them in turns is bounded by its turns. */
const TOOLS_MAX = 32;
const TOOL_CHARS = 200;
const FAILURE_CHARS = 400;

/**
 * What another attempt could have repaired. A denial, a halt or a policy is not the planner's mistake. A blocked call is
 * counted although no repair is wanted: trying it in ever new forms has to end as well.
 */
const COUNTED: ReadonlySet<RefusalReason> = new Set<RefusalReason>([
	"unknown_tool",
	"arguments_not_json",
	"integer_out_of_range",
	"validation_failed",
	"semantic_failed",
	"security_blocked",
	"truncated_output",
]);

export type RepairGuardState = {
	readonly v: 1;
	/** The one refused last stands last. */
	readonly tools: readonly {
		readonly tool: string;
		/** Refusals in a row, several of one turn counted once. */
		readonly refusals: number;
		/** Turn of the last one. */
		readonly turn: number;
		/** Reason and fields of the last one, without values. */
		readonly failure: string;
	}[];
};
export const EMPTY_REPAIR_GUARD: RepairGuardState = { v: 1, tools: [] };

export type RefusedCall = {
	/** The name that the planner called: an unknown tool has no id. */
	readonly function_name: string;
	readonly turn: number;
	readonly reason: RefusalReason;
	readonly errors: readonly FieldError[];
	/** Function name of the declared fallback, where the planner may call it this turn. */
	readonly fallback: string | null;
};
export type RepairVerdict =
	/** Back to the planner; `errors` are the call's own, the escalation before them. */
	| { readonly kind: "repair"; readonly attempt: number; readonly errors: readonly FieldError[] }
	/** The third: the refusal's reason becomes `budget_exhausted`, its errors these. */
	| { readonly kind: "give_up"; readonly reason: "budget_exhausted"; readonly errors: readonly FieldError[] }
	/** It went on all the same: the run ends as failed, never as completed (T13). */
	| { readonly kind: "stop"; readonly code: "repair_limit"; readonly message: string };

/** Takes one refusal into account and says what becomes of it. */
export function refusedCall(
	state: RepairGuardState,
	call: RefusedCall,
): { readonly state: RepairGuardState; readonly verdict: RepairVerdict } {
	if (!COUNTED.has(call.reason)) return { state, verdict: { kind: "repair", attempt: 0, errors: call.errors } };
	const tool = call.function_name.slice(0, TOOL_CHARS);
	const before = state.tools.find((one) => one.tool === tool);
	const failure = failureOf(call);
	// Parallel calls of one turn were made before any of them was answered: no repair was ignored.
	const sameTurn = before?.turn === call.turn;
	const refusals = Math.max(1, (before?.refusals ?? 0) + (sameTurn ? 0 : 1));
	const rest = state.tools.filter((one) => one.tool !== tool);
	const next: RepairGuardState = {
		v: 1,
		tools: [...rest, { tool, refusals, turn: call.turn, failure }].slice(-TOOLS_MAX),
	};
	if (refusals > REFUSALS_MAX) {
		const message = `the run was stopped: ${refusals} calls of \`${tool.slice(0, 64)}\` in a row were refused, and it went on after it was told to stop; nothing of them ran`;
		return { state: next, verdict: { kind: "stop", code: "repair_limit", message } };
	}
	if (refusals === REFUSALS_MAX) {
		return { state: next, verdict: { kind: "give_up", reason: "budget_exhausted", errors: [limitReached(call)] } };
	}
	const repeated = before !== undefined && !sameTurn && before.failure === failure;
	const errors = repeated ? [sameAgain(call, REFUSALS_MAX - refusals), ...call.errors] : call.errors;
	return { state: next, verdict: { kind: "repair", attempt: refusals, errors } };
}

/** A call of the tool has passed normalize: what was wrong before is repaired. */
export function validCall(state: RepairGuardState, function_name: string): RepairGuardState {
	const tool = function_name.slice(0, TOOL_CHARS);
	return state.tools.some((one) => one.tool === tool)
		? { v: 1, tools: state.tools.filter((one) => one.tool !== tool) }
		: state;
}

/** What was wrong, and where; never what was sent. */
function failureOf({ reason, errors }: RefusedCall): string {
	const fields = errors.map(({ issue, field }) => `${issue} ${field}`).sort();
	return [reason, ...fields].join("|").slice(0, FAILURE_CHARS);
}

function sameAgain({ errors, reason }: RefusedCall, left: number): FieldError {
	const fields = [...new Set(errors.map(({ field }) => (field === "" ? "the whole call" : `\`${field}\``)))];
	return {
		error: "this call fails in exactly the same way as the one before: nothing was repaired",
		field: "",
		issue: "schema_violation",
		expected: `a call that differs in ${fields.slice(0, 5).join(", ") || "what was wrong"}`,
		hint:
			// V3: a blocked call is not repaired by another form of it.
			reason === "security_blocked"
				? "it is blocked; do not try it in another form, tell the user plainly"
				: `read the errors below and change what they name; ${left} more ${left === 1 ? "attempt" : "attempts"}, or tell the user what you need to know`,
	};
}

function limitReached({ function_name, fallback }: RefusedCall): FieldError {
	return {
		error: `${REFUSALS_MAX} calls of this tool in a row were refused; none of them ran`,
		field: "",
		issue: "schema_violation",
		expected: "no further call of this tool with these arguments",
		hint:
			fallback === null || fallback === function_name
				? "do not call it again; tell the user plainly that this could not be done, and what is missing"
				: `call \`${fallback}\` instead, or tell the user plainly that this could not be done, and what is missing`,
	};
}
