/**
 * A run that plays a recording (L5, decision 38). Every call of it walks the stages like any other, with the replayer's
 * permissions and today's policy. `recorded` ends there: what may be called gets the recorded end, and nothing is invoked, so
 * nobody is asked either. `live` goes on to the world, and every call that could change something asks a person first,
 * whatever policy or an approval of the recorded run says. Called by `admit.ts` and `judge-again.ts`.
 */
import type { EvidenceOutcome } from "../evidence/record.ts";
import { readArguments } from "../planner/arguments.ts";
import { ask, type Verdict } from "../policy/verdict.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";
import { callerInputHash, isCallerToolId } from "./caller-call.ts";
import type { Draft } from "./draft.ts";
import { evidenceOf } from "./evidence-of.ts";
import { EDITED, type RecordedCall } from "./recording.ts";
import { field, refuse, refuseCut } from "./refuse.ts";
import type { CallRecord, RunRecord } from "./state.ts";
import type { CallState } from "./view.ts";

const NOTHING: readonly Verdict[] = [];
const ASKS: readonly Verdict[] = [
	ask("a live replay asks before every call that is not a read", ["replay:write_asks"]),
];

/** What a live replay adds to the verdicts on a call. */
export function judgeReplay(run: RunRecord, descriptor: ToolDescriptor): readonly Verdict[] {
	return run.replay?.mode === "live" && descriptor.effect !== "read" ? ASKS : NOTHING;
}

/** Ends that a recording can give. Anything else was never a call that ended, or is for today's rules to say. */
const ENDS: Partial<Record<CallState, EvidenceOutcome>> = {
	COMPLETED: "success",
	FAILED: "failed",
	TIMEOUT: "timeout",
	OUTCOME_UNKNOWN: "unknown",
	DENIED: "denied",
	EXPIRED: "denied",
};

/** Gives a frozen, permitted call its recorded end: only to exactly the call that was recorded, by tool, definition and arguments. */
export function endAsRecorded(
	draft: Draft,
	call: CallRecord,
	recorded: RecordedCall | null,
	decision: Verdict["decision"] | null,
): CallRecord {
	const outcome = recorded === null ? undefined : ENDS[recorded.state];
	if (
		recorded === null ||
		outcome === undefined ||
		recorded.tool_id !== call.tool_id ||
		recorded.input_hash !== call.input_hash
	)
		return notRecorded(
			draft,
			call,
			recorded === null ? "not in the recording" : `recorded as ${recorded.state}, or with another definition or input`,
		);
	const { state, error } = recorded;
	const from = `call ${recorded.tool_call_id} of the recorded run`;
	const ended: CallRecord = {
		...call,
		state,
		error,
		source: "recorded",
		result: recorded.result,
		notes: [...new Set([...call.notes, ...recorded.notes, `the recorded end of ${from}; nothing was invoked`])],
		data_source: "recording",
		data_freshness: "recorded",
	};
	// What the recording says of a caller's function is that it was answered, as it was then.
	const said = outcome === "success" && isCallerToolId(call.tool_id) ? "answered" : outcome;
	const { evidence_id } = evidenceOf(draft, ended, said, {
		reason: `the recorded end of ${from}`,
		facts: [`the recorded end of ${from}; the tool was not invoked`],
		permission_decision: decision,
	});
	const told: CallRecord = { ...ended, evidence_id };
	draft.call(told);
	return told;
}

/**
 * Decision 14 holds in the replay as it did in the recorded run: from the next decision on, since twins of a denied call stood
 * beside it. What was denied of an edited call is the edit, not what the planner had asked for; an equal call of the edit was
 * refused then and has no recorded end.
 */
export function denyAsRecorded(draft: Draft, calls: readonly CallRecord[]): void {
	const denied = calls.flatMap(({ state, source, tool_id, input_hash, notes }) =>
		state === "DENIED" && source === "recorded" && input_hash !== null && !notes.some((note) => note.endsWith(EDITED))
			? [{ tool_id, input_hash }]
			: [],
	);
	if (denied.length > 0) draft.set({ denied: [...draft.run.denied, ...denied] });
}

/**
 * A call of a function of the recorded run's caller. Nobody here runs it, so the recorded answer is all there is, in a live
 * replay as well; and what was meant for the caller is never handed to a governed tool that has the name today.
 */
export function replayCallerCall(
	draft: Draft,
	call: CallRecord,
	recorded: RecordedCall,
	text: string | null,
	cut: boolean,
): CallRecord {
	const named: CallRecord = { ...call, tool_id: recorded.tool_id };
	if (cut) return refuseCut(draft, named);
	const read = readArguments(text);
	if (!read.ok) return refuse(draft, named, "normalize", read.reason, read.errors);
	const { value } = read;
	const input_hash = callerInputHash(draft.kit, call.function_name, value);
	const frozen: CallRecord = { ...named, arguments: value, arguments_text: text, frozen: value, input_hash };
	return endAsRecorded(draft, frozen, recorded, null);
}

/** Nothing of the recording is exactly this call. */
export function notRecorded(draft: Draft, call: CallRecord, why: string): CallRecord {
	const hint = "the recording holds no end of exactly this call; see the recorded run for what was called";
	const expected = "a call that was recorded with the same definition and arguments";
	return refuse(draft, call, "invoke", "not_recorded", [field("", "semantic_violation", expected, hint)], why);
}
