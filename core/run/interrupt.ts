/** What stops a run or a part of it: a person, the turn's or session's clock, or a life of the object that ended. */

import { WATCHDOG_GRACE_MS } from "../limits.ts";
import { advance } from "./advance.ts";
import { conclude, recover } from "./conclude.ts";
import type { Draft } from "./draft.ts";
import { drop, dropCall } from "./drop.ts";
import type { StepProblem } from "./effect.ts";
import type { CallCancelled, Cancelled, Resumed } from "./event.ts";
import { isOut } from "./flight.ts";
import { followUps } from "./follow-up.ts";
import { askAgain } from "./gate.ts";
import type { World } from "./state.ts";
import { openTurn, plan, rest } from "./turn.ts";
import { FINISHED } from "./view.ts";

/** Attempts of a planner whose object died before they give up. */
const PLANS_MAX = 4;

export function cancelled(draft: Draft, event: Cancelled): StepProblem | null {
	if (FINISHED.has(draft.run.status))
		return { status: 409, code: "run_finished", detail: `the run is ${draft.run.status} already` };
	rest(draft, "cancelled", { code: "cancelled", message: `cancelled by ${event.by}` });
	return null;
}

/** A call that has not been given to the world yet can be taken back; one that has cannot. */
export function callCancelled(draft: Draft, event: CallCancelled): StepProblem | null {
	const call = draft.calls.get(event.tool_call_id);
	if (call === undefined) return { status: 404, code: "not_found", detail: "no such call in the open turn" };
	const { state } = draft.calls.get(call.child?.tool_call_id ?? "") ?? call;
	if (isOut(state) || (call.state !== "PENDING" && call.state !== "AWAITING_APPROVAL")) {
		return { status: 409, code: "call_started", detail: `the call is ${state} and cannot be taken back` };
	}
	dropCall(draft, call, "run_cancelled", `cancelled by ${event.by}`);
	advance(draft, event.world);
	return null;
}

/**
 * The turn's or the session's time is spent (I4). The turn ends with what it has: calls in flight are timed out, calls
 * waiting for a slot are refused, approvals stay. The session's end saves a break point that can be resumed.
 */
export function clockRanOut(draft: Draft, world: World): void {
	if (draft.run.clocks.since === null) return;
	const session = draft.sessionLeft() === 0;
	if (!session && draft.turnLeft() > 0) {
		draft.due("clock", "", draft.kit.now + Math.min(draft.turnLeft(), draft.sessionLeft()));
		return;
	}
	const out = [...draft.calls.values()].filter((call) => isOut(call.state));
	if (out.length > 0) draft.effect({ kind: "abort", tool_call_ids: out.map((call) => call.tool_call_id) });
	for (const call of out) {
		const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
		conclude(draft, call, {
			kind: "timeout",
			phase: "wall",
			effect: descriptor.effect === "read" ? "none" : "possible",
		});
	}
	drop(draft, "budget_exhausted", session ? "the session's time was spent" : "the turn's time was spent", ["PENDING"]);
	// What a tool says of an unknown outcome holds here too: it may stop the run, or keep the turn for a person.
	followUps(draft, world);
	if (FINISHED.has(draft.run.status)) return;
	if (session) {
		rest(draft, "suspended", {
			code: "session_timeout",
			message: "the session's time is spent; resume to go on from here",
		});
	} else if (draft.run.turn_open) {
		advance(draft, world);
	} else {
		rest(draft, "failed", { code: "planner_timeout", message: "the planner did not answer within the turn" });
	}
}

export function resumed(draft: Draft, event: Resumed): StepProblem | null {
	if (draft.run.status !== "suspended")
		return {
			status: 409,
			code: "not_suspended",
			detail: `only a suspended run can be resumed; it is ${draft.run.status}`,
		};
	draft.set({ error: null, clocks: { ...draft.run.clocks, session_spent_ms: 0, turn_spent_ms: 0 } });
	const { turn, closed_turn } = draft.run;
	if (closed_turn !== turn && [...draft.calls.values()].some((call) => call.turn === turn)) {
		draft.status("executing", { turn_open: true });
		advance(draft, event.world);
	} else {
		for (const content of draft.run.queued) draft.message({ turn: draft.run.turn, role: "user", content });
		draft.set({ queued: [] });
		openTurn(draft, event.world);
	}
	return null;
}

/** A new life of the object: attempts of another boot are orphans, and a plan in flight died with it (decision 5). */
export function booted(draft: Draft, world: World): void {
	const { turn } = draft.run;
	const orphans = [...draft.calls.values()].filter((call) => isOut(call.state) && call.boot_id !== draft.kit.boot_id);
	for (const call of orphans) recover(draft, call);
	const asking = [...draft.calls.values()].filter((call) => call.state === "PENDING" && call.gate === "asked");
	for (const call of asking) askAgain(draft, call);
	if (orphans.length > 0 || asking.length > 0) {
		advance(draft, world);
	}
	// A turn that was opened just now has asked its planner already.
	if (draft.run.status !== "planning" || draft.run.turn !== turn) return;
	// Asked now, it is not asked once more by the timer of its next try.
	draft.dueDone("plan", "");
	if (draft.run.plan_attempts < PLANS_MAX) plan(draft);
	else rest(draft, "failed", { code: "planner_unavailable", message: "the planner's answer was lost several times" });
}

/** The watchdog found an attempt that nobody reported on. */
export function watchdog(draft: Draft, tool_call_id: string, world: World): void {
	const call = draft.calls.get(tool_call_id);
	if (call === undefined || !isOut(call.state)) return;
	const bites_at = (call.deadline_at ?? 0) + WATCHDOG_GRACE_MS;
	if (call.boot_id !== draft.kit.boot_id) {
		recover(draft, call);
	} else if (bites_at > draft.kit.now) {
		// The alarm read the timer of an earlier attempt; this one has time left.
		draft.due("watchdog", tool_call_id, bites_at);
		return;
	} else {
		const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
		draft.effect({ kind: "abort", tool_call_ids: [tool_call_id] });
		conclude(draft, call, {
			kind: "timeout",
			phase: "wall",
			effect: descriptor.effect === "read" ? "none" : "possible",
		});
	}
	advance(draft, world);
}
