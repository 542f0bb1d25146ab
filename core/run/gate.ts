/**
 * A call at its tool's gate (decisions 16, 30, 34): permission, policy and approval come first, then the gate says go, not
 * now, not at all, or that the answer is there already. Calls that declare nothing never come here.
 */

import type { Stored } from "../invoke/gate-answer.ts";
import { breakerOnly, type GateNeeds, gateNeeds, gateOutcome } from "../invoke/gate-keys.ts";
import type { Json } from "../json.ts";
import { GATE_HOLD_GRACE_MS, GATE_LEAVES_MAX, GATE_RETRY_MAX_MS, GATE_RETRY_MS } from "../limits.ts";
import type { InvokeOutcome } from "../outcome.ts";
import type { Draft } from "./draft.ts";
import type { CallRecord, World } from "./state.ts";
import { LIVE } from "./view.ts";

/** What the call declares, or, where only its breaker is known not to be closed, that. Null: no hop. */
export function needsOf(draft: Draft, call: CallRecord, world: World): GateNeeds | null {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	const declared = declaredNeeds(draft, call);
	if (declared !== null) return declared;
	const known = world.lease?.open_breakers.some((breaker) => breaker.tool_id === call.tool_id) === true;
	return known ? breakerOnly(descriptor) : null;
}

function declaredNeeds(draft: Draft, call: CallRecord): GateNeeds | null {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	const { run } = draft;
	const asked = {
		arguments: call.frozen ?? {},
		session_id: run.session_id,
		principal_id: run.principal.principal_id,
		definition_hash: call.definition_hash ?? "",
		data_scope: run.authority.data_scope,
	};
	const needs = gateNeeds(descriptor, asked, draft.kit.digest);
	// What became of a call is asked anew: an old `not happened` would have the write done twice.
	const parent = draft.calls.get(call.parent_call_id ?? "");
	return needs !== null && parent?.child?.kind === "reconcile" ? { ...needs, cache: null, snapshot: null } : needs;
}

export function enterGate(draft: Draft, call: CallRecord, needs: GateNeeds): void {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	const asked: CallRecord = { ...call, waiting: null, gate: "asked" };
	draft.call(asked);
	draft.due("start", call.tool_call_id, draft.kit.now + GATE_RETRY_MS);
	const hold_ms = Math.max(draft.turnLeft(), descriptor.timeout_ms ?? 0) + GATE_HOLD_GRACE_MS;
	draft.effect({ kind: "enter", call: asked, needs, hold_ms });
}

/** The gate was asked and the answer was lost with the object, or never came. */
export function askAgain(draft: Draft, call: CallRecord): CallRecord {
	if (call.gate !== "asked") return call;
	const again: CallRecord = { ...call, gate: "none", pass_out: true };
	draft.call(again);
	return again;
}

/**
 * A pass covers an attempt that ends while the gate still holds it. One that waited with it in hand (a halt, a place) for too
 * long asks again: its claim may be another call's by now, and both would act.
 */
export function withGoodPass(draft: Draft, call: CallRecord, ends_at: number): CallRecord {
	if (call.gate !== "passed" || ends_at <= (call.pass_until ?? Number.POSITIVE_INFINITY)) return call;
	const again: CallRecord = { ...call, gate: "none", pass_out: true, pass_until: null };
	draft.call(again);
	return again;
}

/**
 * A call that ends without having used the gate's answer: a pass in hand goes back at once and says nothing of the tool.
 * What else may be out under its name is given back by the timer, when an `enter` on its way must have arrived: told
 * sooner, the gate could hear the end before the beginning and keep the claim of a call that is over.
 */
export function leaveUnasked(draft: Draft, call: CallRecord): void {
	if (call.gate === "passed") leave(draft, call, "not_asked", "free", null, null);
	else if (call.gate === "asked" || call.pass_out) draft.due("leave", call.tool_call_id, draft.kit.now + GATE_RETRY_MS);
}

/** The timer of what is owed rang. Each time is counted with the call, whose turn may be long closed. */
export function leaveRang(draft: Draft, stored: CallRecord): void {
	const call = draft.calls.get(stored.tool_call_id) ?? stored;
	const counted: CallRecord = { ...call, leaves: (call.leaves ?? 0) + 1 };
	if (leaveAgain(draft, counted)) draft.keep(counted);
}

/**
 * The gate may not have heard of this call's end: the object died, or the gate was away. Telling it twice changes nothing.
 * False when there is no end to tell of.
 */
export function leaveAgain(draft: Draft, call: CallRecord): boolean {
	const { state, result, notes, tool_call_id, child } = call;
	// One with a stand-in has ended itself: only its turn waits.
	if (LIVE.has(state) && child === null) return false;
	// What the tool itself said, whoever's place the call took: a stand-in that acted has acted.
	const last = call.attempts.at(-1);
	if (last?.outcome === "success") {
		const at = Date.parse(last.started_at) + (last.duration_ms ?? 0);
		const stored: Stored = { result: (result ?? null) as Json, notes, at, tool_call_id };
		leave(draft, call, "success", "done", stored, null);
		return true;
	}
	// A status tool or a person may have said since that it happened: then the key is not free either.
	// Not so where another tool's result stands in for a call that failed; a stand-in's own end is like any other.
	const replaced = call.parent_call_id === null && call.source === "fallback";
	const happened = state === "COMPLETED" && !replaced && call.attempts.length > 0;
	const unknown = state === "OUTCOME_UNKNOWN" || child?.kind === "reconcile" || happened;
	leave(draft, call, "not_asked", unknown ? "unknown" : "free", null, null);
	return true;
}

/** Tells the gate how a passed attempt ended. `again`: this call will try once more and keeps its claim. */
export function leaveGate(draft: Draft, call: CallRecord, outcome: InvokeOutcome, again: boolean): void {
	const pause_ms =
		outcome.kind === "failed" && (outcome.code === "rate_limited" || outcome.http_status === 429)
			? (outcome.retry_after_ms ?? null)
			: null;
	const settle = again
		? "keep"
		: outcome.kind === "success"
			? "done"
			: outcome.effect === "possible"
				? "unknown"
				: "free";
	const stored: Stored | null =
		outcome.kind === "success"
			? { result: outcome.result, notes: outcome.notes, at: draft.kit.now, tool_call_id: call.tool_call_id }
			: null;
	leave(draft, call, gateOutcome(outcome), settle, stored, pause_ms);
}

function leave(
	draft: Draft,
	call: CallRecord,
	outcome: ReturnType<typeof gateOutcome>,
	settle: "done" | "unknown" | "free" | "keep",
	stored: Stored | null,
	pause_ms: number | null,
): void {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	const needs = declaredNeeds(draft, call) ?? breakerOnly(descriptor);
	const { tool_id, tool_call_id } = call;
	// Told again by a timer in storage until the gate has taken it, or has let it go by itself: a claim must not be left hanging.
	// Between two attempts nothing is owed: the next one holds the same claim again.
	const { leaves = 0 } = call;
	const again_ms = Math.min(GATE_RETRY_MS * 2 ** leaves, GATE_RETRY_MAX_MS);
	if (settle !== "keep" && leaves < GATE_LEAVES_MAX) draft.due("leave", tool_call_id, draft.kit.now + again_ms);
	draft.effect({ kind: "leave", tool_id, tool_call_id, needs, outcome, settle, stored, pause_ms });
}
