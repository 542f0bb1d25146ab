/**
 * A decision without words of a planner outside: its calls say all of it, so it is kept as a number among the run's messages and
 * nothing else. Every governed call of such a planner is spared a row. A recording puts these decisions back in their places.
 */
import type { StoredCall, StoredMessage } from "../planner/conversation.ts";
import type { PlannerDecision } from "../ports.ts";
import type { CallRecord, PlannerKind } from "./state.ts";

/** `cut`: nothing of it runs, which its calls do not say. */
export function isWordless(planner: PlannerKind, decision: PlannerDecision, cut: boolean): boolean {
	const { content, reasoning_content = null } = decision;
	return planner === "external" && content === null && reasoning_content === null && !cut;
}

/**
 * A run's messages, the decisions that kept none among them.
 *
 * @param stored in their order; the first is what the run was created with
 * @param called the turns that have calls, ascending
 */
export function withWordless(stored: readonly StoredMessage[], called: readonly number[]): StoredMessage[] {
	const told = new Set(stored.flatMap(({ turn, tool_calls }) => (tool_calls === undefined ? [] : [turn])));
	const missing = called.filter((turn) => !told.has(turn));
	const whole: StoredMessage[] = [];
	let n = stored[0]?.n ?? 1;
	const put = (turn: number | undefined): void => {
		if (turn !== undefined) whole.push({ n, turn, role: "assistant", content: null });
		n += 1;
	};
	for (const message of stored) {
		while (n < message.n) put(missing.shift());
		whole.push(message);
		n += 1;
	}
	while (missing.length > 0) put(missing.shift());
	return whole;
}

/** An answer has words, if only the empty ones. */
export const isAnswer = ({ content, tool_calls = [] }: StoredMessage): boolean =>
	content !== null && tool_calls.length === 0;

/** What a decision asked for: as its message says, or as the calls of its turn do, in the planner's order. */
export function askedBy({ content, tool_calls }: StoredMessage, calls: readonly CallRecord[]): readonly StoredCall[] {
	if (tool_calls !== undefined) return tool_calls;
	if (content !== null) return [];
	const edits = new Set(calls.map((call) => call.superseded_by));
	return calls
		.filter((call) => call.parent_call_id === null && !edits.has(call.tool_call_id))
		.sort((a, b) => a.ordinal - b.ordinal)
		.map(storedCall);
}

export const storedCall = (call: CallRecord): StoredCall => ({
	tool_call_id: call.tool_call_id,
	provider_call_id: call.provider_call_id,
	function_name: call.function_name,
	// What did not parse is never replayed as an argument string (T03).
	arguments_text: call.arguments_text ?? "{}",
});
