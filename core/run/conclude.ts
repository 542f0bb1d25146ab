/**
 * An attempt has its outcome: the same call is tried again, or it ends, or what became of it is unknown. What follows from
 * an end (a stand-in, the next call, the turn) is `advance`'s.
 */
import { classify } from "../invoke/classify.ts";
import { repeatable } from "../invoke/repeatable.ts";
import { nextTry } from "../invoke/retry.ts";
import type { InvokeOutcome } from "../outcome.ts";
import type { Draft } from "./draft.ts";
import { evidenceOf } from "./evidence-of.ts";
import { isOut } from "./flight.ts";
import { leaveGate, leaveUnasked } from "./gate.ts";
import type { CallRecord } from "./state.ts";
import { FINISHED } from "./view.ts";
import { wait } from "./wait.ts";

/** How often a repeatable call is dispatched again after its object died under it. */
const RECOVERIES_MAX = 3;

/** The request, or a redirect of it, was not let out: a sign of an attack by the caller or by the upstream. */
const STOPPED_ON_ITS_WAY: ReadonlySet<string> = new Set(["security_blocked", "redirect_refused"]);

/** Writes the end of one attempt, and with it the call's, unless what it was is tried again (I2). */
export function conclude(draft: Draft, call: CallRecord, outcome: InvokeOutcome): void {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	const duration_ms = durationOf(draft, call);
	if (isOut(call.state)) {
		draft.dueDone("watchdog", call.tool_call_id);
		if (call.state === "DISPATCHED" && !call.running_logged) draft.callState(call, "RUNNING");
		const attempt = call.attempts.length;
		const next = FINISHED.has(draft.run.status)
			? { again: false as const }
			: nextTry({ outcome, descriptor, attempt, turn_left_ms: draft.turnLeft(), random: () => unit(draft) });
		if (next.again) {
			tryAgain(draft, call, outcome, duration_ms, next.wait_ms);
			return;
		}
	}
	end(draft, call, outcome, duration_ms);
}

/** The same frozen call once more: PENDING with a durable timer, its grant spent already, judged again when it starts. */
function tryAgain(draft: Draft, call: CallRecord, outcome: InvokeOutcome, duration_ms: number, wait_ms: number): void {
	if (call.gate === "passed") leaveGate(draft, call, outcome, true);
	const retry_at = draft.kit.now + wait_ms;
	const again: CallRecord = {
		...call,
		state: "PENDING",
		gate: "none",
		pass_out: call.pass_out || call.gate === "passed",
		retry_at,
		attempts: closeAttempt(call, outcome, duration_ms),
	};
	draft.call(again);
	wait(draft, again, "retry", retry_at);
}

function end(draft: Draft, call: CallRecord, outcome: InvokeOutcome, duration_ms: number): void {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	const known = withPast(call, outcome);
	const { state, evidence, error } = classify(known, descriptor);
	if (call.gate === "passed") leaveGate(draft, call, known, false);
	else leaveUnasked(draft, call);
	const ended: CallRecord = {
		...call,
		state,
		attempts: isOut(call.state) ? closeAttempt(call, outcome, duration_ms) : call.attempts,
		error,
		gate: "none",
		pass_out: false,
		waiting: null,
		retry_at: null,
		running_logged: true,
		result: outcome.kind === "success" ? outcome.result : null,
		notes: outcome.kind === "success" ? [...call.notes, ...outcome.notes] : call.notes,
	};
	const recorded = evidenceOf(draft, ended, evidence, {
		reason: error?.message ?? null,
		facts: outcome.kind === "success" ? outcome.facts : [],
		artifacts: outcome.kind === "success" ? (outcome.artifacts ?? []) : [],
		permission_decision: "allow",
		duration_ms,
		security_flags: outcome.kind === "failed" && STOPPED_ON_ITS_WAY.has(outcome.code) ? ["egress"] : [],
	});
	const told: CallRecord = { ...ended, evidence_id: recorded.evidence_id };
	draft.call(told);
	if (outcome.kind === "success" && descriptor.invalidates.length > 0)
		draft.effect({ kind: "invalidate", tool_ids: descriptor.invalidates });
	if (state !== "COMPLETED") draft.ended.push(told.tool_call_id);
}

/** What an earlier attempt may have done is not undone by a later one that certainly did nothing. */
function withPast(call: CallRecord, outcome: InvokeOutcome): InvokeOutcome {
	if (outcome.kind === "success" || outcome.effect === "possible") return outcome;
	const past = isOut(call.state) ? call.attempts.slice(0, -1) : call.attempts;
	const mayHaveActed = past.some(({ http_status }) => http_status === null || http_status >= 500);
	return mayHaveActed ? { ...outcome, effect: "possible" } : outcome;
}

const durationOf = (draft: Draft, call: CallRecord): number => {
	const started = call.attempts.at(-1)?.started_at;
	return started === undefined ? 0 : draft.kit.now - Date.parse(started);
};

/** A number in [0, 1) from the run's own randomness. */
function unit(draft: Draft): number {
	const [a = 0, b = 0] = draft.kit.random(2);
	return (a * 256 + b) / 65_536;
}

function closeAttempt(call: CallRecord, outcome: InvokeOutcome, duration_ms: number): CallRecord["attempts"] {
	const error = outcome.kind === "failed" ? outcome.code : outcome.kind === "timeout" ? outcome.phase : null;
	const http_status = outcome.kind === "timeout" ? null : (outcome.http_status ?? null);
	return call.attempts.map((attempt, index) =>
		index === call.attempts.length - 1
			? { ...attempt, duration_ms, outcome: outcome.kind, error, http_status }
			: attempt,
	);
}

/**
 * The object died with this attempt in flight (another boot, or the watchdog found it lost). What may be repeated is
 * dispatched again at once, judged anew; what may not is unknown, and said so (I9): no side effect is silently repeated.
 */
export function recover(draft: Draft, call: CallRecord): void {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	const interrupted = {
		kind: "failed",
		code: "interrupted",
		message: "the attempt was interrupted",
		retryable: false,
	} as const;
	const lost: InvokeOutcome = { ...interrupted, effect: descriptor.effect === "read" ? "none" : "possible" };
	if (
		FINISHED.has(draft.run.status) ||
		repeatable(descriptor) === "no" ||
		call.attempts.length > RECOVERIES_MAX ||
		draft.turnLeft() === 0
	) {
		conclude(draft, call, lost);
		return;
	}
	draft.dueDone("watchdog", call.tool_call_id);
	// Its pass is still out under this call's name; entering again is repeatable and holds it longer.
	draft.call({
		...call,
		state: "PENDING",
		gate: "none",
		pass_out: call.pass_out || call.gate === "passed",
		attempts: closeAttempt(call, lost, durationOf(draft, call)),
	});
}
