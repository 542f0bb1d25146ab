/**
 * What a run recorded, in the form in which another run plays it again (L5, decision 38): each decision as the planner made
 * it, how each of its calls ended, and what the user said behind it. It reads; it judges and invokes nothing. Called by the
 * object of the recorded run; what it makes is stored as the script of the new one.
 */

import type { StoredMessage } from "../planner/conversation.ts";
import type { WireDecision } from "../planner/decision.ts";
import type { CallRecord } from "./state.ts";
import type { CallState } from "./view.ts";
import { askedBy, isAnswer } from "./wordless.ts";

/** How one call of a recorded decision ended. */
export type RecordedCall = {
	/** In the recorded run. */
	readonly tool_call_id: string;
	readonly tool_id: string;
	/** Of what the planner asked for, also where a person edited it before it ran. */
	readonly input_hash: string | null;
	readonly state: CallState;
	readonly result: unknown;
	readonly error: CallRecord["error"];
	readonly notes: readonly string[];
	/** What rules call its result (`taint-of.ts`); null where nobody but Belay speaks, absent in an older recording. */
	readonly taint_label?: string | null;
};

/** One decision of a recording. */
export type RecordedTurn = {
	readonly decision: WireDecision;
	/** One per tool call of the decision, in its order. */
	readonly calls: readonly (RecordedCall | null)[];
	/** What the user said before the next decision. */
	readonly said: readonly string[];
	/** Of a replay's recording: what the planner that decided all of this was told of the calls, when `calls` is not that. */
	readonly told?: readonly (RecordedCall | null)[];
};

/** How a run plays a recording. */
export type Replay = {
	/** The recorded run. */
	readonly run_id: string;
	readonly mode: "recorded" | "live";
	/** Its decisions were a script's: placeholders mean what they say. In a model's they are text that it wrote, and stay text. */
	readonly placeholders: boolean;
};

/** In the notes of a call that a person edited, behind their name, and of every replay of it: its end is that of other arguments. */
export const EDITED = "edited the arguments before approval; this is what was put forward instead";

/** Arguments that never were an object: no text that parses may stand for them, or a live replay would act on it. */
const UNREADABLE = "{";

/**
 * @param message the assistant's, as the run stored it
 * @param calls of its turn, in any order
 * @param labelOf what rules call a call's result
 */
export function recordedTurn(
	message: StoredMessage,
	calls: readonly CallRecord[],
	said: readonly string[],
	labelOf: (call: CallRecord) => string | null,
): RecordedTurn {
	const known = new Map(calls.map((call) => [call.tool_call_id, call]));
	const asked = askedBy(message, calls);
	const decision: WireDecision = {
		content: message.content,
		...(asked.length === 0
			? {}
			: {
					tool_calls: asked.map(({ tool_call_id, provider_call_id, function_name }) => ({
						id: provider_call_id,
						type: "function" as const,
						function: { name: function_name, arguments: argumentsOf(known.get(tool_call_id)) },
					})),
				}),
		// Why it was cut is not on record; that nothing of it may run is.
		...(message.cut === true ? { finish_reason: "cut_off" } : {}),
	};
	return { decision, calls: asked.map(({ tool_call_id }) => recordedCall(known, tool_call_id, labelOf)), said };
}

/** The planner's own text; null where it sent none, which stands for `{}`. */
function argumentsOf(call: CallRecord | undefined): string | null {
	if (call === undefined) return UNREADABLE;
	return call.arguments_text ?? (call.arguments === null ? UNREADABLE : null);
}

/** An edited call lives on under another id, and the last of them has the end. */
function recordedCall(
	known: ReadonlyMap<string, CallRecord>,
	tool_call_id: string,
	labelOf: (call: CallRecord) => string | null,
): RecordedCall | null {
	const asked = known.get(tool_call_id);
	if (asked === undefined) return null;
	let last = asked;
	for (let at = 0; last.superseded_by !== null && at < known.size; at++) last = known.get(last.superseded_by) ?? last;
	const { state, result, error, notes } = last;
	return {
		tool_call_id: last.tool_call_id,
		tool_id: asked.tool_id,
		input_hash: asked.input_hash,
		state,
		result,
		error,
		notes,
		taint_label: labelOf(last),
	};
}

/**
 * The decisions among a run's messages, each with what was said before the next one; what was said before all of them goes with
 * the first. Behind an answer that no decision follows nothing is kept (words before it, an outcome that was found out later): said
 * in the replay, it would ask for one more decision.
 *
 * @param messages in their order, as `withWordless` answers them
 */
export function decisionsOf(messages: readonly StoredMessage[]): { message: StoredMessage; said: string[] }[] {
	const found: { message: StoredMessage; said: string[] }[] = [];
	const early: string[] = [];
	for (const message of messages) {
		// Turn 0 is what the run was created with.
		if (message.turn === 0) continue;
		if (message.role === "assistant") found.push({ message, said: [] });
		else if (message.role === "user") (found.at(-1)?.said ?? early).push(message.content ?? "");
	}
	found[0]?.said.unshift(...early);
	const last = found.at(-1);
	if (last !== undefined && isAnswer(last.message)) last.said.splice(0);
	return found;
}
