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

/** Of a call that was given what is stored already: a cached result, that of an equal call, or a snapshot. */
export const STORED: Statement = {
	proves: [
		"the recorded result was stored before and was given as the answer to this exact call",
		"this answer came without an invocation of the tool",
	],
	does_not_prove: ["that the tool would answer the same now", NOT_THE_GOAL],
};

/** Of a call whose end is another tool's: a declared stand-in, whose own record says what it did. */
export const STOOD_IN: Statement = {
	proves: ["another tool's recorded result stands in for this call's own"],
	does_not_prove: ["that this call's tool would have answered the same", NOT_THE_GOAL],
};

/** Of a call of unknown outcome, after a person or a status tool has said what became of it. */
export const STATED: Statement = {
	proves: ["the recorded word on what became of this exact call was given"],
	does_not_prove: ["that this word is true", NOT_THE_GOAL],
};

/** Of a call that ended well or badly without an attempt of its own: at its tool's gate, for example. */
export function uninvoked(outcome: EvidenceOutcome): Statement | null {
	switch (outcome) {
		case "failed":
		case "timeout":
			return {
				proves: ["the call ended before any invocation, for the recorded reason"],
				does_not_prove: ["that a later call would fail", NOT_THE_GOAL],
			};
		case "unknown":
			return {
				proves: ["the outcome of an equal call is unknown", "the tool was not invoked for this call"],
				does_not_prove: ["that the effect happened", "that it did not happen"],
			};
		default:
			return null;
	}
}

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
