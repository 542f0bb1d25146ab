/** Calls that will not run after all: the run was stopped, or its time is spent. Each gets an end that says so. */

import type { Draft } from "./draft.ts";
import { leaveUnasked } from "./gate.ts";
import { giveUp } from "./give-up.ts";
import { refuse } from "./refuse.ts";
import type { CallRecord } from "./state.ts";

/** Takes back what has not been given to the world: nothing of it runs any more. */
export function drop(
	draft: Draft,
	reason: "run_cancelled" | "budget_exhausted",
	rich: string,
	states: readonly string[] = ["PENDING", "AWAITING_APPROVAL"],
): void {
	for (const id of [...draft.calls.keys()]) {
		const call = draft.calls.get(id);
		if (call !== undefined && states.includes(call.state) && !restsWith(draft, call, states))
			dropCall(draft, call, reason, rich);
	}
}

/** It waits for a stand-in that stays: ended alone, what a person then approves would act for a call that is no more. */
function restsWith(draft: Draft, call: CallRecord, states: readonly string[]): boolean {
	const child = draft.calls.get(call.child?.tool_call_id ?? "");
	return child?.state === "AWAITING_APPROVAL" && !states.includes(child.state);
}

export function dropCall(
	draft: Draft,
	call: CallRecord,
	reason: "run_cancelled" | "budget_exhausted",
	rich: string,
): void {
	if (call.child !== null) {
		// Its own end is on record already; what was to stand in for it does not any more.
		draft.call({ ...call, state: call.child.kind === "reconcile" ? "OUTCOME_UNKNOWN" : "FAILED", waiting: null });
		const child = draft.calls.get(call.child.tool_call_id);
		if (child?.state === "PENDING" || child?.state === "AWAITING_APPROVAL") dropCall(draft, child, reason, rich);
		return;
	}
	if (call.attempts.length > 0) {
		giveUp(draft, call, rich);
		return;
	}
	const approval = call.approval_id === null ? undefined : draft.approvals.get(call.approval_id);
	if (approval?.status === "pending" || approval?.status === "approved")
		draft.approval({ ...approval, status: "superseded" }, "approval.decided");
	draft.dueDone("start", call.tool_call_id);
	leaveUnasked(draft, call);
	refuse(draft, { ...call, gate: "none", pass_out: false }, "invoke", reason, [], rich);
}
