/**
 * A human's word on one frozen call: approve, deny, edit, or none in time. The first word counts; every later one gets the
 * winner's. Grants are found by approval id and must name tool, call and hash: never by tool name, never "what is pending".
 */

import { toolCallId } from "../ids.ts";
import type { JsonObject } from "../json.ts";
import { TOOL_TIMEOUT_MIN_MS } from "../limits.ts";
import { judgeTool, permits } from "../policy/permits.ts";
import type { Caller } from "../principal.ts";
import type { FieldError } from "../refusal.ts";
import type { CompiledTool } from "../registry/compile.ts";
import { judgeArguments } from "./admit.ts";
import { advance } from "./advance.ts";
import { Draft } from "./draft.ts";
import type { StepProblem } from "./effect.ts";
import type { ApprovalDecided, ApprovalEdited } from "./event.ts";
import { evidenceOf } from "./evidence-of.ts";
import { standingOf } from "./expiry.ts";
import { EDITED } from "./recording.ts";
import { refuse } from "./refuse.ts";
import { start } from "./start.ts";
import type { ApprovalRecord, CallRecord, World } from "./state.ts";
import { rest } from "./turn.ts";

const problem = (status: number, code: string, detail: string, extra?: JsonObject): StepProblem =>
	extra === undefined ? { status, code, detail } : { status, code, detail, extra };

export function approvalDecided(draft: Draft, event: ApprovalDecided): StepProblem | null {
	const approval = draft.approvals.get(event.approval_id) ?? event.approval;
	if (approval === null) return problem(404, "not_found", "no such approval");
	const refused = mayDecide(event.by, approval) ?? standing(draft, approval, event.world);
	if (refused !== null) return refused;
	if (
		approval.tool_id !== event.tool_id ||
		approval.tool_call_id !== event.tool_call_id ||
		approval.input_hash !== event.input_hash
	) {
		return problem(
			409,
			"approval_mismatch",
			"tool_id, tool_call_id and input_hash must all be those of the approval; nothing was decided",
		);
	}
	const call = draft.calls.get(approval.tool_call_id);
	if (call?.state !== "AWAITING_APPROVAL")
		return problem(409, "approval_superseded", "the call does not wait for a decision any more");
	const decision = {
		by: event.by.name,
		principal_id: event.by.principal_id,
		decision: event.decision,
		reason: event.reason,
		at: draft.at,
		via: event.via,
	};
	const decided: ApprovalRecord = {
		...approval,
		status: event.decision === "approve" ? "approved" : "denied",
		decisions: [...approval.decisions, decision],
	};
	draft.approval(decided, "approval.decided");
	if (event.decision === "deny") {
		deny(draft, call, "DENIED", {
			code: "denied",
			message: event.reason ?? "denied without a reason",
			retryable: false,
		});
		advance(draft, event.world);
		return null;
	}
	beginAnew(draft);
	const pending: CallRecord = { ...call, state: "PENDING" };
	draft.call(pending);
	if (suspendedForTime(draft)) return null;
	start(draft, pending, event.world);
	const after = draft.calls.get(call.tool_call_id);
	advance(draft, event.world);
	if (after?.state !== "REFUSED") return null;
	const detail = `the approval came too late: ${after.refusal?.reason ?? "refused"} when it was judged again; nothing was executed`;
	return problem(409, "approval_superseded", detail);
}

/**
 * The clock of a turn that rested for this word begins anew with it: approved in its last millisecond, the call would be
 * cut at once and a write's outcome be unknown; after it, nothing of what was approved could start at all.
 */
function beginAnew(draft: Draft): void {
	const { clocks, status } = draft.run;
	if (status === "awaiting_approval" || status === "awaiting_caller")
		draft.set({ clocks: { ...clocks, turn_spent_ms: 0 } });
}

/** No time to act in: the break point comes now, with a grant unspent; what may run starts on resume. */
function suspendedForTime(draft: Draft): boolean {
	if (draft.sessionLeft() >= TOOL_TIMEOUT_MIN_MS) return false;
	rest(draft, "suspended", {
		code: "session_timeout",
		message: "the session's time is spent; resume to go on from here",
	});
	return true;
}

/** A denial is final in this run: the same tool with the same input is refused when it is asked again (decision 14). */
function deny(
	draft: Draft,
	call: CallRecord,
	state: "DENIED" | "EXPIRED",
	error: NonNullable<CallRecord["error"]>,
): void {
	const ended: CallRecord = { ...call, state, error };
	const recorded = evidenceOf(draft, ended, "denied", { reason: error.message, permission_decision: "deny" });
	draft.call({ ...ended, evidence_id: recorded.evidence_id });
	if (state === "DENIED" && call.input_hash !== null) {
		const { tool_id, input_hash } = call;
		const known = draft.run.denied.some((one) => one.tool_id === tool_id && one.input_hash === input_hash);
		if (!known) draft.set({ denied: [...draft.run.denied, { tool_id, input_hash }] });
	}
}

/** Decision 18: only a user decides, whatever the roles; and only with the permission for the tool's domain. */
function mayDecide(by: Caller, approval: ApprovalRecord): StepProblem | null {
	if (by.kind !== "user") return problem(403, "forbidden", "only a person may decide an approval");
	if (permits(by.authority.permissions, `approval:decide:${approval.domain}`)) return null;
	return problem(403, "forbidden", `deciding needs the permission \`approval:decide:${approval.domain}\``);
}

/** Whether the approval can still be decided. One that has run out of time is closed here, not left to its timer. */
function standing(draft: Draft, approval: ApprovalRecord, world: World): StepProblem | null {
	const { status, decisions, approval_id } = approval;
	const late = status === "pending" && standingOf(draft, approval, world).late;
	if (late) expire(draft, approval_id, world);
	if (late || status === "expired")
		return problem(410, "approval_expired", "the approval expired before anybody decided");
	if (status === "pending") return null;
	const winner = decisions.at(-1);
	if (winner === undefined || status === "superseded") {
		return problem(409, "approval_superseded", "the approval was superseded; look at the run for what took its place");
	}
	const extra = { approval_id, status, decision: winner.decision, decided_by: winner.by, decided_at: winner.at };
	return problem(409, "already_decided", `already decided: ${winner.decision} by ${winner.by}`, extra);
}

/** Nobody decided in time. */
export function expire(draft: Draft, approval_id: string, world: World): void {
	const approval = draft.approvals.get(approval_id);
	if (approval?.status !== "pending") return;
	const { late, again_at } = standingOf(draft, approval, world);
	if (!late) {
		draft.due("approval_expiry", approval_id, again_at);
		return;
	}
	draft.approval({ ...approval, status: "expired" }, "approval.decided");
	const call = draft.calls.get(approval.tool_call_id);
	if (call?.state !== "AWAITING_APPROVAL") return;
	deny(draft, call, "EXPIRED", {
		code: "approval_expired",
		message: "nobody decided in time; the call was not executed",
		retryable: false,
	});
	advance(draft, world);
}

/**
 * A3: edited arguments are a new frozen call with its own hash, judged from the start; the old approval is spent. Arguments
 * that are no valid call of the tool are the editor's to mend: nothing changes. What policy refuses is recorded as put forward.
 */
export function approvalEdited(draft: Draft, event: ApprovalEdited): StepProblem | null {
	const approval = draft.approvals.get(event.approval_id) ?? event.approval;
	if (approval === null) return problem(404, "not_found", "no such approval");
	const refused = mayDecide(event.by, approval) ?? standing(draft, approval, event.world);
	if (refused !== null) return refused;
	const call = draft.calls.get(approval.tool_call_id);
	if (call?.state !== "AWAITING_APPROVAL")
		return problem(409, "approval_superseded", "the call does not wait for a decision any more");
	const tool = draft.kit.tool(approval.definition_hash);
	const note = `${event.by.name} ${EDITED}`;
	const tool_call_id = toolCallId(draft.part, draft.kit.random);
	const successor: CallRecord = {
		...call,
		tool_call_id,
		arguments: event.arguments,
		approval_id: null,
		input_hash: null,
		frozen: null,
		notes: [],
	};
	const errors = faults(draft, successor, tool, event);
	if (errors.length > 0) {
		const detail = "the arguments are no valid call of the tool; nothing was changed and the approval stays pending";
		return { ...problem(422, "invalid_request", detail), errors };
	}
	draft.checks = event.checks;
	const judged = judgeArguments(
		draft,
		{ ...successor, n: draft.nextCall() },
		tool,
		event.arguments,
		judgeTool(draft.run.authority, tool.version.descriptor),
		event.world,
	);
	draft.call({ ...judged, notes: [...judged.notes, note] });
	draft.approval({ ...approval, status: "superseded" }, "approval.decided");
	const edited: CallRecord = { ...call, superseded_by: tool_call_id };
	refuse(draft, edited, "approval", "superseded", [], `${event.by.name} edited the arguments: see ${tool_call_id}`);
	// Whom the call stood in for waits for its successor.
	const parent = draft.calls.get(call.parent_call_id ?? "");
	if (parent?.child?.tool_call_id === call.tool_call_id)
		draft.call({ ...parent, child: { ...parent.child, tool_call_id } });
	// What policy lets pass as edited starts now, like what was approved.
	if (judged.state === "PENDING") {
		beginAnew(draft);
		if (suspendedForTime(draft)) return null;
	}
	advance(draft, event.world);
	return null;
}

/**
 * What is wrong with the arguments that a person puts forward, as fields of the request. Judged on a copy of which nothing is
 * kept; told as a person is told, not as a model at its third try. Permission, policy and past denials are not told of here.
 */
function faults(draft: Draft, successor: CallRecord, tool: CompiledTool, event: ApprovalEdited): FieldError[] {
	const { run, exposure, calls, approvals, kit } = draft;
	const copy = { run: { ...run, planner: { ...run.planner, kind: "external" as const } }, exposure, calls, approvals };
	// A trial takes nobody's place in a line, and no randomness that names something.
	const trial = new Draft(copy, { ...kit, random: (n) => new Uint8Array(n), takePlace: () => false });
	trial.checks = event.checks;
	const permitted = judgeTool(run.authority, tool.version.descriptor);
	const { refusal } = judgeArguments(trial, successor, tool, event.arguments, permitted, event.world);
	draft.unchecked.push(...trial.unchecked);
	if (refusal?.stage !== "normalize") return [];
	return refusal.errors.map((error) => ({ ...error, field: `/arguments${error.field}` }));
}
