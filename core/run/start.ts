/**
 * Consume-and-start (decisions 4, 12, 13): taking the grant and moving the call to DISPATCHED is one step, and everything
 * that permitted the call is judged again in it. Nothing is awaited between the judgement and the row.
 */
import { matches } from "../approval/grant.ts";
import { judgeApproval } from "../approval/ask.ts";
import { attemptLimit } from "../invoke/attempt-limit.ts";
import { CALLS_IN_FLIGHT_MAX, HALT_RECHECK_MS, LEASE_TTL_MS, WATCHDOG_GRACE_MS } from "../limits.ts";
import { judgeCall, judgeTool } from "../policy/permits.ts";
import type { RefusalReason } from "../refusal.ts";
import { refuse } from "./admit.ts";
import type { Draft } from "./draft.ts";
import { countOut } from "./flight.ts";
import { scopeOf } from "./scope.ts";
import type { ApprovalRecord, CallRecord, World } from "./state.ts";

/** How soon a start that control could not confirm is tried again, ms. */
const CONTROL_RETRY_MS = 1_000;

/** Starts every pending call that has a slot and may start now; in the planner's order. */
export function startPending(draft: Draft, world: World): void {
	for (const call of [...draft.calls.values()].sort((a, b) => a.ordinal - b.ordinal)) {
		if (call.state === "PENDING") start(draft, call, world);
	}
}

type Judgement =
	| { readonly ok: true }
	| { readonly ok: false; readonly wait_ms: number }
	| { readonly ok: false; readonly refused: RefusalReason; readonly rich: string };

/** Leaves the call PENDING when it has to wait (a timer looks again), REFUSED when it may not run any more. */
export function start(draft: Draft, call: CallRecord, world: World): void {
	// A suspended run starts nothing, not even what a person approves meanwhile: it goes out when the run is resumed.
	if (draft.run.status === "suspended" || countOut(draft.calls.values()) >= CALLS_IN_FLIGHT_MAX) return;
	const approval = call.approval_id === null ? undefined : draft.approvals.get(call.approval_id);
	const judgement = judgeAgain(draft, call, approval, world);
	if (judgement.ok) {
		dispatch(draft, call, approval);
	} else if ("wait_ms" in judgement) {
		draft.due("start", call.tool_call_id, draft.kit.now + judgement.wait_ms);
	} else {
		if (approval !== undefined && approval.status !== "consumed") draft.approval({ ...approval, status: "superseded" }, "approval.decided");
		refuse(draft, call, "policy", judgement.refused, [], judgement.rich);
	}
}

function judgeAgain(draft: Draft, call: CallRecord, approval: ApprovalRecord | undefined, world: World): Judgement {
	const { lease } = world;
	const tool = draft.kit.tool(call.definition_hash ?? "");
	const { descriptor } = tool.version;
	const fresh = lease !== null && draft.kit.now - lease.issued_at <= LEASE_TTL_MS;
	if (!fresh && (call.approval_id !== null || descriptor.effect !== "read")) return { ok: false, wait_ms: CONTROL_RETRY_MS };
	if (lease !== null) {
		if (lease.halts.some((halt) => halt.scope === "tenant" || halt.scope === `tool:${call.tool_id}`)) {
			return { ok: false, wait_ms: HALT_RECHECK_MS };
		}
		if (lease.revoked_principals.includes(draft.run.principal.principal_id)) return no("policy_denied", "the principal was revoked");
		if (world.authority === null) return no("policy_denied", "the principal has no authority any more");
	}
	if (world.tools !== null) {
		const now = world.tools.find((version) => version.descriptor.tool_id === call.tool_id);
		if (now === undefined) return no("definition_changed", "the tool was taken offline");
		if (now.definition_hash !== call.definition_hash) return no("definition_changed", "the tool was published anew");
	}
	const authority = world.authority ?? draft.run.authority;
	const args = call.frozen ?? {};
	const scope = scopeOf(draft, args);
	if (judgeTool(authority, descriptor).decision === "deny") return no("policy_denied", "the permission was withdrawn");
	const verdict = judgeCall(authority, descriptor, args, scope);
	if (verdict.decision === "deny") return no("policy_denied", verdict.reason);
	const asks = verdict.decision === "ask" || judgeApproval(tool, args, scope).decision === "ask";
	return asks ? judgeGrant(draft, call, approval) : { ok: true };
}

/** A1: all three identifiers, unexpired, decided by a human, and not spent on another start. */
function judgeGrant(draft: Draft, call: CallRecord, approval: ApprovalRecord | undefined): Judgement {
	if (approval === undefined) return no("policy_denied", "policy asks for an approval that was never given");
	const spentHere = approval.status === "consumed" && call.attempts.length > 0;
	if (approval.status !== "approved" && !spentHere) return no("policy_denied", `the approval is ${approval.status}`);
	if (!spentHere && approval.expires_at_ms <= draft.kit.now) return no("policy_denied", "the approval expired before the start");
	const grant = {
		approval_id: approval.approval_id,
		tool_id: approval.tool_id,
		tool_call_id: approval.tool_call_id,
		input_hash: approval.input_hash,
		expires_at: approval.expires_at_ms,
	};
	const bound = { tool_id: call.tool_id, tool_call_id: call.tool_call_id, input_hash: call.input_hash ?? "" };
	return matches(grant, bound) ? { ok: true } : no("policy_denied", "the approval is for another call");
}

const no = (refused: RefusalReason, rich: string): Judgement => ({ ok: false, refused, rich });

function dispatch(draft: Draft, call: CallRecord, approval: ApprovalRecord | undefined): void {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	const timeout_ms = attemptLimit(descriptor, draft.turnLeft());
	const n = call.attempts.length + 1;
	if (approval?.status === "approved") draft.approval({ ...approval, status: "consumed" }, "approval.decided");
	const deadline_at = draft.kit.now + timeout_ms;
	const started: CallRecord = {
		...call,
		state: "DISPATCHED",
		boot_id: draft.kit.boot_id,
		deadline_at,
		running_logged: false,
		attempts: [
			...call.attempts,
			{ n, started_at: draft.at, duration_ms: null, outcome: null, error: null, http_status: null, waited_ms: 0 },
		],
	};
	draft.call(started);
	draft.due("watchdog", call.tool_call_id, deadline_at + WATCHDOG_GRACE_MS);
	draft.effect({ kind: "invoke", call: started, attempt: n, timeout_ms });
}
