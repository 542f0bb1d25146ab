/**
 * Consume-and-start (decisions 4, 12, 13): taking the grant and moving the call to DISPATCHED is one step, and everything
 * that permitted the call is judged again in it. Nothing is awaited between the judgement and the row. A call that
 * declares a gate asks it first, and is judged again when the gate has answered.
 */
import { retryTimeout } from "../invoke/retry.ts";
import { CALLS_IN_FLIGHT_MAX, TOOL_TIMEOUT_DEFAULT_MS, WATCHDOG_GRACE_MS } from "../limits.ts";
import { attemptCost, charge, countCall } from "./budget.ts";
import type { Draft } from "./draft.ts";
import { countOut } from "./flight.ts";
import { enterGate, leaveUnasked, needsOf, withGoodPass } from "./gate.ts";
import { giveUp } from "./give-up.ts";
import { concurrencyOf, judgeAgain } from "./judge-again.ts";
import { refuse } from "./refuse.ts";
import type { ApprovalRecord, CallRecord, World } from "./state.ts";
import { wait } from "./wait.ts";

/** A call that waits for a place is woken when one is free; this is for a wake-up that was lost. */
const PLACE_RECHECK_MS = 5_000;

const GATE_WAITS: ReadonlySet<string> = new Set(["rate_limit", "paused", "claim"]);

/** Starts every pending call that has a slot and may start now; in the planner's order. */
export function startPending(draft: Draft, world: World): void {
	for (const call of [...draft.calls.values()].sort((a, b) => a.ordinal - b.ordinal)) {
		if (call.state === "PENDING") start(draft, call, world);
	}
}

/** Leaves the call PENDING when it has to wait (a timer looks again), REFUSED when it may not run any more. */
export function start(draft: Draft, call: CallRecord, world: World): void {
	// A suspended run starts nothing, not even what a person approves meanwhile: it goes out when the run is resumed.
	if (draft.run.status === "suspended" || call.child !== null || call.gate === "asked") return;
	const not_before = notBefore(call);
	if (not_before > draft.kit.now) {
		// A timer that rang early or twice is gone: it is set again.
		draft.due("start", call.tool_call_id, not_before);
		return;
	}
	// The clock's timer ends this turn. Begun now, an attempt would be cut at once and a write's outcome be unknown; and a pass
	// at the gate is held no longer than the turn.
	if (draft.turnLeft() === 0) return;
	if (countOut(draft.calls.values()) >= CALLS_IN_FLIGHT_MAX) return;
	const approval = call.approval_id === null ? undefined : draft.approvals.get(call.approval_id);
	const judgement = judgeAgain(draft, call, approval, world);
	if (!judgement.ok && "wait_ms" in judgement) {
		wait(draft, call, judgement.reason, draft.kit.now + judgement.wait_ms);
		return;
	}
	if (!judgement.ok) {
		if (approval !== undefined && approval.status !== "consumed")
			draft.approval({ ...approval, status: "superseded" }, "approval.decided");
		if (call.attempts.length > 0) {
			giveUp(draft, call, judgement.rich);
			return;
		}
		leaveUnasked(draft, call);
		const refused: CallRecord = { ...call, gate: "none", pass_out: false, waiting: null };
		const { refused: reason, error, rich } = judgement;
		const stage = reason === "budget_exhausted" ? "invoke" : "policy";
		refuse(draft, refused, stage, reason, error === undefined ? [] : [error], rich);
		return;
	}
	const ready = withGoodPass(draft, call, draft.kit.now + attemptLimit(draft, call));
	const needs = needsOf(draft, ready, world);
	if (needs !== null && ready.gate === "none") {
		enterGate(draft, ready, needs);
		return;
	}
	const concurrency = concurrencyOf(draft.kit.tool(call.definition_hash ?? "").version.descriptor);
	if (concurrency !== null && !draft.kit.takePlace(concurrency, call.tool_call_id)) {
		wait(draft, ready, "concurrency", draft.kit.now + PLACE_RECHECK_MS);
		return;
	}
	dispatch(draft, ready, approval);
}

/** How long the next attempt may take, ms. */
function attemptLimit(draft: Draft, call: CallRecord): number {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	return retryTimeout(descriptor.timeout_ms ?? TOOL_TIMEOUT_DEFAULT_MS, call.attempts.length + 1, draft.turnLeft());
}

/**
 * A back-off, or what the gate said, holds until its time: asked again at once, a gate would be asked as fast as it answers.
 * Other waits may end early (a place is free, control is back, a halt was lifted).
 */
function notBefore({ retry_at, waiting }: CallRecord): number {
	const told = waiting !== null && GATE_WAITS.has(waiting.reason) ? Date.parse(waiting.until) : 0;
	return Math.max(retry_at ?? 0, told);
}

/** Takes the grant: from here on it opens nothing else. */
export function consume(draft: Draft, approval: ApprovalRecord | undefined): void {
	if (approval?.status === "approved") draft.approval({ ...approval, status: "consumed" }, "approval.decided");
}

function dispatch(draft: Draft, call: CallRecord, approval: ApprovalRecord | undefined): void {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	const n = call.attempts.length + 1;
	const timeout_ms = attemptLimit(draft, call);
	consume(draft, approval);
	// Each attempt is a request that may be charged for, so each counts (retries and recoveries too).
	charge(draft, attemptCost(descriptor));
	if (n === 1) countCall(draft);
	const deadline_at = draft.kit.now + timeout_ms;
	const last = call.attempts.at(-1);
	const waited_ms =
		call.retry_at === null || last === undefined
			? 0
			: call.retry_at - Date.parse(last.started_at) - (last.duration_ms ?? 0);
	const started: CallRecord = {
		...call,
		state: "DISPATCHED",
		boot_id: draft.kit.boot_id,
		deadline_at,
		running_logged: false,
		retry_at: null,
		waiting: null,
		attempts: [
			...call.attempts,
			{
				n,
				started_at: draft.at,
				duration_ms: null,
				outcome: null,
				error: null,
				http_status: null,
				waited_ms: Math.max(0, waited_ms),
			},
		],
	};
	draft.call(started);
	draft.dueDone("start", call.tool_call_id);
	draft.due("watchdog", call.tool_call_id, deadline_at + WATCHDOG_GRACE_MS);
	draft.effect({ kind: "invoke", call: started, attempt: n, timeout_ms });
}
