/**
 * Builds what a managed planner is sent from the messages that a run has stored. Providers refuse a request whose calls
 * and results do not pair, whose arguments are cut JSON, or whose text is not well-formed, and then refuse every later
 * one as well; so nothing of that kind leaves here. Called by core/run before each turn.
 */
import { wellFormed } from "../json.ts";
import type { PlannerMessage } from "../ports.ts";
import { readArguments } from "./arguments.ts";
import { spotlight, spotlightRules } from "./spotlight.ts";
import { SYSTEM_PROMPT } from "./system-prompt.ts";
import { toolMessage } from "./tool-message.ts";

/** One message as a run stores it; `n` is its order in the run. */
export type StoredMessage = {
	readonly n: number;
	readonly turn: number;
	readonly role: "system" | "user" | "assistant" | "tool";
	readonly content: string | null;
	readonly reasoning_content?: string | null | undefined;
	readonly tool_calls?: readonly StoredCall[] | undefined;
	/** The turn did not end by itself: its arguments may be cut although they parse, and are not replayed (T03). */
	readonly cut?: boolean | undefined;
	/** Belay's id of the call that a `tool` message answers. */
	readonly tool_call_id?: string | undefined;
};
export type StoredCall = {
	readonly tool_call_id: string;
	readonly provider_call_id: string;
	readonly function_name: string;
	/** As the planner sent it. */
	readonly arguments_text: string | null;
};

/**
 * @param goal the first user message, before all stored ones; null when a stored message says it
 * @param stored in any order; the last of several tool messages for one call counts
 * @param mark of `spotlightMark`: results are marked with it, and the model is told; null where the run does not ask for it
 */
export function conversation(
	goal: string | null,
	stored: readonly StoredMessage[],
	mark: string | null = null,
): PlannerMessage[] {
	const ordered = [...stored].sort((a, b) => a.n - b.n);
	const results = new Map<string, string>();
	for (const one of ordered)
		if (one.role === "tool" && one.tool_call_id)
			results.set(one.tool_call_id, mark === null ? (one.content ?? "") : spotlight(one.content ?? "", mark));
	const messages: PlannerMessage[] = [{ role: "system", content: SYSTEM_PROMPT }];
	if (mark !== null) messages.push({ role: "system", content: spotlightRules(mark) });
	if (goal !== null) messages.push({ role: "user", content: wellFormed(goal) });
	for (const one of ordered) {
		if (one.role === "assistant") messages.push(...assistant(one, results));
		// A tool message is only ever sent behind the call it answers.
		else if (one.role !== "tool") messages.push({ role: one.role, content: wellFormed(one.content ?? "") });
	}
	return messages;
}

function assistant(one: StoredMessage, results: ReadonlyMap<string, string>): PlannerMessage[] {
	const calls = one.tool_calls ?? [];
	const content = one.content === null ? null : wellFormed(one.content);
	if (calls.length === 0) return [{ role: "assistant", content: content ?? "" }];
	return [
		{
			role: "assistant",
			content,
			// DeepSeek answers 400 to a tool turn without it, an empty one included.
			reasoning_content: wellFormed(one.reasoning_content ?? ""),
			tool_calls: calls.map((call) => ({
				id: wireCallId(call.tool_call_id),
				type: "function",
				function: { name: wireName(call.function_name), arguments: replayable(call.arguments_text, one.cut === true) },
			})),
		},
		...calls.map((call) => ({
			role: "tool" as const,
			tool_call_id: wireCallId(call.tool_call_id),
			content: wellFormed(results.get(call.tool_call_id) ?? UNANSWERED),
		})),
	];
}

/** A call without a recorded result may have acted: the planner must not take it for undone and repeat it. */
const UNANSWERED = toolMessage({
	status: "outcome_unknown",
	error: { code: "outcome_unknown", message: "no result was recorded for this call" },
	evidence_id: null,
});

/**
 * The call's own id, unique in the run whatever ids the provider gave (T05), in at most 40 characters: OpenAI refuses
 * longer ones. The run's part is left out; the 128 random bits stay.
 */
export function wireCallId(toolCallId: string): string {
	return toolCallId.length <= 40 ? toolCallId : `call_${toolCallId.slice(toolCallId.lastIndexOf("_") + 1).slice(-35)}`;
}

/** A name that the provider would refuse in history stands as one that no tool has. */
function wireName(name: string): string {
	return /^[a-zA-Z0-9_-]{1,64}$/.test(name) ? name : name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "unnamed";
}

/** The original text where it is one whole JSON object, else `{}`: cut text in history fails every later request (T03). */
function replayable(text: string | null, cut: boolean): string {
	if (cut || text === null || text.trim() === "" || text.trim() === "null") return "{}";
	const read = readArguments(text);
	return read.ok || read.reason === "integer_out_of_range" ? wellFormed(text) : "{}";
}
