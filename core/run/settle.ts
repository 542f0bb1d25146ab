/** An attempt has its outcome: the call ends (or is unknown), its evidence is sealed, and the turn is looked at again. */
import { classify } from "../invoke/classify.ts";
import { repeatable } from "../invoke/repeatable.ts";
import type { InvokeOutcome } from "../outcome.ts";
import type { Json } from "../json.ts";
import type { Draft } from "./draft.ts";
import type { Settled, Running } from "./event.ts";
import { evidenceOf } from "./evidence-of.ts";
import { isOut } from "./flight.ts";
import { start, startPending } from "./start.ts";
import type { CallRecord, World } from "./state.ts";
import { settleTurn } from "./turn.ts";

/** How often a repeatable call is dispatched again after its object died under it. */
const RECOVERIES_MAX = 3;

/** A late or doubled report (an attempt that is not the present one) changes nothing. */
export function settled(draft: Draft, event: Settled): void {
	const call = draft.calls.get(event.tool_call_id);
	if (call === undefined || !isOut(call.state) || call.attempts.length !== event.attempt) return;
	conclude(draft, call, event.outcome);
	startPending(draft, event.world);
	settleTurn(draft, event.world);
}

export function running(draft: Draft, event: Running): void {
	const call = draft.calls.get(event.tool_call_id);
	if (call?.state !== "DISPATCHED" || call.attempts.length !== event.attempt) return;
	draft.call({ ...call, state: "RUNNING", running_logged: true });
}

/** Writes the end of one attempt, and with it the call's. */
export function conclude(draft: Draft, call: CallRecord, outcome: InvokeOutcome): void {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	const { state, evidence, error } = classify(outcome, descriptor);
	if (call.state === "DISPATCHED" && !call.running_logged) draft.callState(call, "RUNNING");
	const duration_ms = draft.kit.now - Date.parse(call.attempts.at(-1)?.started_at ?? draft.at);
	const attempts = closeAttempt(call, outcome, duration_ms);
	const ended: CallRecord = {
		...call,
		state,
		attempts,
		error,
		running_logged: true,
		result: outcome.kind === "success" ? outcome.result : null,
		notes: outcome.kind === "success" ? [...call.notes, ...outcome.notes] : call.notes,
	};
	const recorded = evidenceOf(draft, ended, evidence, {
		reason: error?.message ?? null,
		facts: outcome.kind === "success" ? outcome.facts : [],
		permission_decision: "allow",
		duration_ms,
		security_flags: outcome.kind === "failed" && outcome.code === "security_blocked" ? ["egress"] : [],
	});
	draft.dueDone("watchdog", call.tool_call_id);
	draft.call({ ...ended, evidence_id: recorded.evidence_id });
}

function closeAttempt(call: CallRecord, outcome: InvokeOutcome, duration_ms: number): CallRecord["attempts"] {
	const error = outcome.kind === "failed" ? outcome.code : outcome.kind === "timeout" ? outcome.phase : null;
	const http_status = outcome.kind === "timeout" ? null : (outcome.http_status ?? null);
	return call.attempts.map((attempt, index) =>
		index === call.attempts.length - 1 ? { ...attempt, duration_ms, outcome: outcome.kind, error, http_status } : attempt,
	);
}

/**
 * The object died with this attempt in flight (another boot, or the watchdog found it lost). What may be repeated is
 * dispatched again, judged anew; what may not is unknown, and said so (I9): a side effect is never silently repeated.
 */
export function recover(draft: Draft, call: CallRecord, world: World): void {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	const interrupted = { kind: "failed", code: "interrupted", message: "the attempt was interrupted", retryable: true } as const;
	const lost: InvokeOutcome = { ...interrupted, effect: descriptor.effect === "read" ? "none" : "possible" };
	if (repeatable(descriptor) === "no" || call.attempts.length > RECOVERIES_MAX || draft.turnLeft() === 0) {
		conclude(draft, call, lost);
		return;
	}
	const again: CallRecord = { ...call, state: "PENDING", attempts: closeAttempt(call, lost, 0) };
	draft.dueDone("watchdog", call.tool_call_id);
	draft.call(again);
	start(draft, again, world);
}

/** The result as a planner's placeholder may read it. */
export const resultOf = (call: CallRecord): Json => (call.result ?? null) as Json;
