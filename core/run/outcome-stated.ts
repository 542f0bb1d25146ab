/** A person says what became of a call whose outcome is unknown (decision 31). Their word is evidence, and named as theirs. */
import { STATED } from "../evidence/statement.ts";
import { advance } from "./advance.ts";
import type { Draft } from "./draft.ts";
import type { StepProblem } from "./effect.ts";
import type { OutcomeStated } from "./event.ts";
import { evidenceOf } from "./evidence-of.ts";
import type { CallRecord, World } from "./state.ts";

/** What became of them is nothing that a person here can say: the evidence would have it that a caller or a recording said so. */
const WHOSE = {
	caller: "it was the caller's own to run, and only the caller answers for it",
	recorded: "its end is that of the recorded run; state the outcome there",
} as const;

export function outcomeStated(draft: Draft, event: OutcomeStated): StepProblem | null {
	const call = draft.calls.get(event.call.tool_call_id) ?? event.call;
	if (event.by.kind !== "user") return { status: 403, code: "forbidden", detail: "only a person may state an outcome" };
	if (call.source === "caller" || call.source === "recorded")
		return { status: 403, code: "forbidden", detail: `this run did not invoke the call: ${WHOSE[call.source]}` };
	if (call.state !== "OUTCOME_UNKNOWN") {
		return {
			status: 409,
			code: "outcome_known",
			detail: `the call is ${call.state}; only an unknown outcome can be stated`,
		};
	}
	const happened = event.outcome === "happened";
	const note = `${event.by.name} states that this call ${happened ? "took effect" : "did not take effect"}: ${event.reason}`;
	const ended: CallRecord = {
		...call,
		state: happened ? "COMPLETED" : "FAILED",
		result: happened ? event.result : null,
		error: happened ? null : { code: "not_happened", message: note, retryable: true },
		unsettled: false,
		notes: [...call.notes, note],
	};
	const recorded = evidenceOf(draft, ended, happened ? "success" : "failed", {
		reason: note,
		permission_decision: "allow",
		said: STATED,
	});
	draft.call({ ...ended, evidence_id: recorded.evidence_id });
	if (call.unsettled) {
		// The turn was kept open for this word: its own tool message carries it.
		draft.dueDone("unsettled", call.tool_call_id);
		advance(draft, event.world);
		return null;
	}
	const content = `the outcome of the earlier call ${call.tool_call_id} of \`${call.function_name}\` is known now: ${note}`;
	if (draft.run.turn_open || draft.run.status === "planning") draft.set({ queued: [...draft.run.queued, content] });
	else draft.message({ turn: draft.run.turn, role: "user", content });
	return null;
}

/** Nobody said what became of it in time: the turn goes on with what is known, which is that it is unknown. */
export function reportUnsettled(draft: Draft, tool_call_id: string, world: World): void {
	const call = draft.calls.get(tool_call_id);
	if (call?.unsettled !== true) return;
	draft.call({ ...call, unsettled: false });
	advance(draft, world);
}
