/** What a piece of evidence proves and what it does not (E1). Belay never says that a task is done. */
import type { ToolDescriptor } from "../registry/descriptor.ts";
import type { EvidenceOutcome } from "./record.ts";

export type Statement = { readonly proves: readonly string[]; readonly does_not_prove: readonly string[] };

const NOT_THE_GOAL = "that the goal of the run is reached";

/** Of a call that a replay gave its recorded end, whatever that was. */
export const RECORDED: Statement = {
	proves: [
		"a recording holds this end of a call with exactly this frozen input",
		"the tool was not invoked by this run",
	],
	does_not_prove: ["that the tool would answer the same today", NOT_THE_GOAL],
};

/**
 * Of a call that goes to the caller, who runs its own functions. What a planner was told is proven, and that the caller said
 * it; nothing that the caller says it did (decision 39).
 */
export function callerStatement(outcome: EvidenceOutcome): Statement {
	switch (outcome) {
		case "waiting":
			return {
				proves: ["this exact call was handed to the caller, whose function it is", "nothing was invoked here"],
				does_not_prove: ["that the caller runs it"],
			};
		case "answered":
		case "success":
			return {
				proves: ["the caller gave the recorded answer to this exact call", "nothing was invoked here"],
				does_not_prove: ["that the caller ran anything", "that the answer is true", NOT_THE_GOAL],
			};
		case "unknown":
			return {
				proves: ["this exact call was handed to the caller, and no answer was taken", "nothing was invoked here"],
				does_not_prove: ["that the caller ran it", "that it did not"],
			};
		default:
			return statement(outcome, null);
	}
}

/** `subject` is null for a call whose tool could not be resolved. */
export function statement(outcome: EvidenceOutcome, subject: ToolDescriptor | null): Statement {
	switch (outcome) {
		case "success":
			return {
				proves: ["the tool was invoked with exactly this frozen input", "the tool answered with the recorded result"],
				does_not_prove: [
					subject?.effect === "read"
						? "that the data were true or complete"
						: "that the effect is visible to its recipient",
					NOT_THE_GOAL,
				],
			};
		case "failed":
			return {
				proves: ["the tool was invoked with exactly this frozen input", "it answered with the recorded fault"],
				does_not_prove: ["that a later attempt would fail", NOT_THE_GOAL],
			};
		case "timeout":
			return {
				proves: ["the tool was invoked and did not answer in time"],
				does_not_prove: ["that the tool did nothing", NOT_THE_GOAL],
			};
		case "unknown":
			return {
				proves: ["the call was dispatched with exactly this frozen input"],
				does_not_prove: ["that the effect happened", "that it did not happen"],
			};
		case "denied":
			return {
				proves: ["a person decided against this exact call, or let it expire", "the tool was not invoked"],
				does_not_prove: [NOT_THE_GOAL],
			};
		case "answered":
			return callerStatement(outcome);
		case "refused":
			return { proves: ["the call was refused before any invocation"], does_not_prove: [NOT_THE_GOAL] };
		case "waiting":
			return {
				proves: ["this exact call was put before an approver", "the tool has not been invoked"],
				does_not_prove: ["what the approver will decide"],
			};
	}
}
