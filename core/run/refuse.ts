/** The end of a call that is never invoked: the coarse reason for the planner, the rich one for the evidence. */
import type { FieldError, Refusal, RefusalReason } from "../refusal.ts";
import type { Draft } from "./draft.ts";
import { evidenceOf } from "./evidence-of.ts";
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
	const refusal: Refusal = {
		stage: reason === "unknown_tool" ? "exposure" : stage,
		reason,
		blocked,
		errors: [...errors],
	};
	const refused: CallRecord = { ...call, state: "REFUSED", refusal };
	const recorded = evidenceOf(draft, refused, "refused", {
		reason: rich ?? reason,
		permission_decision: "deny",
		security_flags: blocked ? [reason] : [],
	});
	const told: CallRecord = { ...refused, evidence_id: recorded.evidence_id };
	draft.call(told);
	return told;
}

/** One thing to repair, in the form every refusal has (V4). */
export function field(pointer: string, issue: FieldError["issue"], expected: string, hint: string): FieldError {
	return { error: issue.replaceAll("_", " "), field: pointer, issue, expected, hint };
}
