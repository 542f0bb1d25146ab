/**
 * A run that plays a recording (L5, decision 38). Every call of it walks the stages like any other, with the replayer's
 * permissions and today's policy. `recorded` ends there: what may be called gets the recorded end, and nothing is invoked, so
 * nobody is asked either. `live` goes on to the world, and every call that could change something asks a person first,
 * whatever policy or an approval of the recorded run says. Called by `admit.ts` and `judge-again.ts`.
 */
import type { EvidenceOutcome } from "../evidence/record.ts";
import { ask, type Verdict } from "../policy/verdict.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";
import type { Draft } from "./draft.ts";
import { evidenceOf } from "./evidence-of.ts";
import type { RecordedCall } from "./recording.ts";
import { field, refuse } from "./refuse.ts";
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
	decision: Verdict["decision"],
): CallRecord {
	const outcome = recorded === null ? undefined : ENDS[recorded.state];
	if (
		recorded === null ||
		outcome === undefined ||
		recorded.tool_id !== call.tool_id ||
		recorded.input_hash !== call.input_hash
	) {
		const hint = "the recording holds no end of exactly this call; a live replay would call the tool";
		return refuse(
			draft,
			call,
			"invoke",
			"not_recorded",
			[field("", "semantic_violation", "a call that was recorded with the same definition and arguments", hint)],
			recorded === null ? "not in the recording" : `recorded as ${recorded.state}, or with another definition or input`,
		);
	}
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
	const { evidence_id } = evidenceOf(draft, ended, outcome, {
		reason: `the recorded end of ${from}`,
		facts: [`the recorded end of ${from}; the tool was not invoked`],
		permission_decision: decision,
	});
	const told: CallRecord = { ...ended, evidence_id };
	draft.call(told);
	// Decision 14 holds in the replay as it did in the recorded run.
	if (state === "DENIED" && call.input_hash !== null) {
		const { tool_id, input_hash } = call;
		draft.set({ denied: [...draft.run.denied, { tool_id, input_hash }] });
	}
	return told;
}
