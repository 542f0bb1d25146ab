/** The end of a call that is never invoked: the coarse reason for the planner, the rich one for the evidence. */
import { refusedCall } from "../planner/repair-guard.ts";
import { judgeTool } from "../policy/permits.ts";
import type { FieldError, Refusal, RefusalReason } from "../refusal.ts";
import { readReference, refersTo } from "../registry/tool-reference.ts";
import type { Draft } from "./draft.ts";
import { evidenceOf } from "./evidence-of.ts";
import { isModel } from "./is-model.ts";
import type { CallRecord } from "./state.ts";

/** Ends a call before any invocation. `rich` is for the evidence only: the planner and a prober get the coarse reason. */
export function refuse(
	draft: Draft,
	call: CallRecord,
	stage: string,
	reason: RefusalReason,
	errors: readonly FieldError[],
	rich?: string,
	blocked = false,
): CallRecord {
	const told_of = bounded(draft, call, reason, errors);
	const refusal: Refusal = {
		stage: reason === "unknown_tool" ? "exposure" : stage,
		blocked,
		...told_of,
	};
	const refused: CallRecord = { ...call, state: "REFUSED", refusal };
	const recorded = evidenceOf(draft, refused, "refused", {
		reason: rich ?? reason,
		// Only policy decides about permission: arguments that do not fit were never put before it.
		permission_decision: stage === "policy" || reason === "unknown_tool" ? "deny" : null,
		security_flags: blocked ? [reason] : [],
	});
	const told: CallRecord = { ...refused, evidence_id: recorded.evidence_id };
	draft.call(told);
	return told;
}

/** V4: a model gets three tries at a tool; then it is told in plain words, and at last the run is stopped. */
function bounded(
	draft: Draft,
	call: CallRecord,
	reason: RefusalReason,
	errors: readonly FieldError[],
): Pick<Refusal, "reason" | "errors"> {
	const { run } = draft;
	const own = { reason, errors: [...errors] };
	if (!isModel(run.planner.kind) || call.parent_call_id !== null) return own;
	const { function_name, turn } = call;
	const fallback = fallbackOf(draft, call);
	const { state, verdict } = refusedCall(run.repair_guard, { function_name, turn, reason, errors, fallback });
	draft.set({ repair_guard: state });
	if (verdict.kind === "repair") return { reason, errors: [...verdict.errors] };
	if (verdict.kind === "give_up") return { reason: verdict.reason, errors: [...verdict.errors] };
	draft.set({ repair_stop: { code: verdict.code, message: verdict.message } });
	return { reason: "budget_exhausted", errors: own.errors };
}

/**
 * What the planner may call in the tool's place: only what it is offered this turn and may still call, so that a refusal
 * names nobody a tool that is not theirs. A call whose tool was not resolved has none.
 */
function fallbackOf(draft: Draft, { definition_hash }: CallRecord): string | null {
	if (definition_hash === null) return null;
	const { fallback } = draft.kit.tool(definition_hash).version.descriptor;
	if (typeof fallback !== "object") return null;
	const wanted = readReference(fallback.tool_id);
	const offered = draft.exposure?.tools.find(({ tool_id }) => tool_id === wanted.tool_id);
	if (offered === undefined) return null;
	const { descriptor } = draft.kit.tool(offered.definition_hash).version;
	if (!refersTo(wanted, descriptor)) return null;
	return judgeTool(draft.run.authority, descriptor).decision === "deny" ? null : offered.function_name;
}

/** T03: a response that was cut off runs nothing, complete as a call in it may look. */
export function refuseCut(draft: Draft, call: CallRecord): CallRecord {
	const hint = "the response ended by its length limit and nothing of it ran; send the call again, smaller";
	return refuse(draft, call, "normalize", "truncated_output", [field("", "cut_off", "a complete response", hint)]);
}

/** One thing to repair, in the form every refusal has (V4). */
export function field(pointer: string, issue: FieldError["issue"], expected: string, hint: string): FieldError {
	return { error: issue.replaceAll("_", " "), field: pointer, issue, expected, hint };
}
