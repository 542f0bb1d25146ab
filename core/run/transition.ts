/**
 * The AgentRun machine: one event in, the next state, the rows to save and the effects to perform out. Pure: it awaits
 * nothing, reads no clock and makes no randomness. A refused event changes nothing but what it says in `problem`.
 */
import { invariant, unreachable } from "../invariant.ts";
import { advance } from "./advance.ts";
import { answered, callerExpired } from "./answered.ts";
import { created, said, unborn } from "./begin.ts";
import { approvalDecided, approvalEdited, expire } from "./decide.ts";
import { Draft } from "./draft.ts";
import type { Effect, Row, StepProblem } from "./effect.ts";
import type { Due, RunEvent } from "./event.ts";
import { askAgain, leaveRang } from "./gate.ts";
import { gated } from "./gated.ts";
import { booted, callCancelled, cancelled, clockRanOut, resumed, watchdog } from "./interrupt.ts";
import type { Kit } from "./kit.ts";
import { outcomeStated, reportUnsettled } from "./outcome-stated.ts";
import { planFailed, planned } from "./planned.ts";
import { running, settled } from "./settle.ts";
import { start } from "./start.ts";
import type { RunState } from "./state.ts";
import { plan } from "./turn.ts";

export type Step = {
	/** Null only when a run was refused before it began. */
	readonly state: RunState | null;
	readonly rows: readonly Row[];
	readonly effects: readonly Effect[];
	/** What to tell who asked; rows may still have to be saved (an approval that was superseded by being judged again). */
	readonly problem: StepProblem | null;
};

export function transition(state: RunState | null, event: RunEvent, kit: Kit): Step {
	invariant((state === null) === (event.kind === "created"), "a run is created once, first");
	const before = event.kind === "created" ? unborn(event, kit) : (state as RunState);
	const draft = new Draft(before, kit);
	const problem = step(draft, event);
	if (event.kind === "created" && problem !== null) return { state: null, rows: [], effects: [], problem };
	const { seq } = draft;
	// Nothing was logged and nothing asked for: nothing is written either.
	const finished = draft.finish();
	const idle = seq === before.run.seq && finished.effects.length === 0 && finished.rows.length === 1 && !draft.touched;
	return idle ? { state: before, rows: [], effects: [], problem } : { ...finished, problem };
}

function step(draft: Draft, event: RunEvent): StepProblem | null {
	switch (event.kind) {
		case "created":
			return created(draft, event);
		case "planned":
			return planned(draft, event);
		case "plan_failed":
			planFailed(draft, event);
			return null;
		case "running":
			running(draft, event);
			return null;
		case "settled":
			settled(draft, event);
			return null;
		case "gated":
			gated(draft, event);
			return null;
		case "left":
			if (event.settle !== "keep") draft.dueDone("leave", event.tool_call_id);
			return null;
		case "approval_decided":
			return approvalDecided(draft, event);
		case "approval_edited":
			return approvalEdited(draft, event);
		case "said":
			return said(draft, event);
		case "answered":
			return answered(draft, event);
		case "cancelled":
			return cancelled(draft, event);
		case "call_cancelled":
			return callCancelled(draft, event);
		case "resumed":
			return resumed(draft, event);
		case "outcome_stated":
			return outcomeStated(draft, event);
		case "booted":
			booted(draft, event.world);
			return null;
		case "due":
			due(draft, event);
			return null;
		default:
			return unreachable(event);
	}
}

function due(draft: Draft, event: Due): void {
	draft.dueDone(event.what, event.ref);
	switch (event.what) {
		case "approval_expiry":
			expire(draft, event.ref, event.world);
			return;
		case "watchdog":
			watchdog(draft, event.ref, event.world);
			return;
		case "clock":
			clockRanOut(draft, event.world);
			return;
		case "start": {
			const call = draft.calls.get(event.ref);
			// The alarm read this timer before the call went out and came back: the one that stands now is the back-off's.
			if (call?.state === "PENDING" && call.retry_at !== null && call.retry_at > draft.kit.now)
				draft.due("start", event.ref, call.retry_at);
			else if (call?.state === "PENDING") start(draft, askAgain(draft, call), event.world);
			advance(draft, event.world);
			return;
		}
		case "leave":
			if (event.call !== null) leaveRang(draft, event.call);
			return;
		case "unsettled":
			reportUnsettled(draft, event.ref, event.world);
			return;
		case "caller":
			callerExpired(draft);
			return;
		case "plan":
			if (draft.run.status === "planning") plan(draft);
			return;
		default:
			unreachable(event);
	}
}
