/** Everything that permitted a call, looked at once more in the step that starts it. Asks nobody; changes nothing. */
import { judgeApproval } from "../approval/ask.ts";
import { matches } from "../approval/grant.ts";
import type { ConcurrencyClass } from "../invoke/fair-queue.ts";
import { HALT_RECHECK_MS, LEASE_TTL_MS } from "../limits.ts";
import { judgeCall, judgeTool } from "../policy/permits.ts";
import type { FieldError, RefusalReason } from "../refusal.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";
import { resolveReference } from "../registry/tool-reference.ts";
import { unaffordable } from "./budget.ts";
import type { Draft } from "./draft.ts";
import { standingOf } from "./expiry.ts";
import { judgeReplay } from "./replay.ts";
import type { ApprovalRecord, CallRecord, World } from "./state.ts";
import { scopeOfCall } from "./taint-of.ts";

/** How soon a start that control could not confirm is tried again, ms. */
const CONTROL_RETRY_MS = 1_000;

export type Judgement =
	| { readonly ok: true }
	| { readonly ok: false; readonly wait_ms: number; readonly reason: "control" | "halt" }
	| { readonly ok: false; readonly refused: RefusalReason; readonly rich: string; readonly error?: FieldError };

export function judgeAgain(
	draft: Draft,
	call: CallRecord,
	approval: ApprovalRecord | undefined,
	world: World,
): Judgement {
	const { lease } = world;
	const tool = draft.kit.tool(call.definition_hash ?? "");
	const { descriptor } = tool.version;
	const fresh = lease !== null && draft.kit.now - lease.issued_at <= LEASE_TTL_MS;
	if (!fresh && (call.approval_id !== null || descriptor.effect !== "read"))
		return { ok: false, wait_ms: CONTROL_RETRY_MS, reason: "control" };
	if (lease !== null) {
		if (lease.halts.some((halt) => halt.scope === "tenant" || halt.scope === `tool:${call.tool_id}`)) {
			return { ok: false, wait_ms: HALT_RECHECK_MS, reason: "halt" };
		}
		if (lease.revoked_principals.includes(draft.run.principal.principal_id))
			return no("policy_denied", "the principal was revoked");
		if (world.authority === null) return no("policy_denied", "the principal has no authority any more");
	}
	if (world.tools !== null) {
		const now = resolveReference(nameOf(draft, call), world);
		if (now === undefined) return no("definition_changed", "the tool was taken offline");
		if (now.definition_hash !== call.definition_hash) return no("definition_changed", "the tool was published anew");
	}
	const authority = world.authority ?? draft.run.authority;
	const args = call.frozen ?? {};
	const scope = scopeOfCall(draft, call, tool, args);
	if (judgeTool(authority, descriptor).decision === "deny") return no("policy_denied", "the permission was withdrawn");
	const verdict = judgeCall(authority, descriptor, args, scope);
	if (verdict.decision === "deny") return no("policy_denied", verdict.reason);
	// Calls beside this one may have spent what it was admitted on.
	const short = unaffordable(draft, descriptor, call.attempts.length > 0);
	if (short !== null) return { ...no("budget_exhausted", short.error), error: short };
	const asks =
		verdict.decision === "ask" ||
		judgeApproval(tool, args, scope).decision === "ask" ||
		judgeReplay(draft.run, descriptor).length > 0;
	return asks ? judgeGrant(draft, call, approval, world) : { ok: true };
}

/** What the call was resolved by: of a fallback what its tool is declared as, which may pin a major. */
function nameOf(draft: Draft, call: CallRecord): string {
	const parent = draft.calls.get(call.parent_call_id ?? "");
	if (parent?.child?.kind !== "fallback") return call.tool_id;
	const { fallback } = draft.kit.tool(parent.definition_hash ?? "").version.descriptor;
	return typeof fallback === "object" ? fallback.tool_id : call.tool_id;
}

/** A1: all three identifiers, unexpired, decided by a human, and not spent on another start. */
function judgeGrant(draft: Draft, call: CallRecord, approval: ApprovalRecord | undefined, world: World): Judgement {
	if (approval === undefined) return no("policy_denied", "policy asks for an approval that was never given");
	const spentHere = approval.status === "consumed" && call.attempts.length > 0;
	if (approval.status !== "approved" && !spentHere) return no("policy_denied", `the approval is ${approval.status}`);
	if (!spentHere && standingOf(draft, approval, world).late)
		return no("policy_denied", "the approval expired before the start");
	const grant = {
		approval_id: approval.approval_id,
		tool_id: approval.tool_id,
		tool_call_id: approval.tool_call_id,
		input_hash: approval.input_hash,
		expires_at: approval.expires_at_ms,
	};
	const bound = { tool_id: call.tool_id, tool_call_id: call.tool_call_id, input_hash: call.input_hash ?? "" };
	// A spent grant is this call's own: its retries and its recovery are the same invocation, however long they take.
	return matches(grant, bound) ? { ok: true } : no("policy_denied", "the approval is for another call");
}

const no = (refused: RefusalReason, rich: string) => ({ ok: false, refused, rich }) as const;

/** I8: which of the shared places a tool uses; what runs inside Belay uses none. */
export function concurrencyOf(descriptor: ToolDescriptor): ConcurrencyClass | null {
	switch (descriptor.implementation.kind) {
		case "http":
		case "notify":
			return "api";
		case "sql":
		case "retrieval":
			return "database";
		default:
			return null;
	}
}
