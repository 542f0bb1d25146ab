/**
 * Puts a planner's streamed turn together from raw `chat.completion.chunk` objects. It trusts no field to be there or to
 * be of its type, repairs nothing, and decides nothing: what may execute is `executes` in `decision.ts`.
 * Called by the planner adapters; one assembler per turn.
 */

import { own } from "../json.ts";
import { CALLS_PER_TURN_MAX, PLANNER_OUTPUT_MAX_CHARS } from "../limits.ts";
import type { PlannerDecision } from "../ports.ts";
import { isCallAsText } from "./call-as-text.ts";
import { finishReason } from "./finish-reason.ts";

export type AssembledTurn = {
	readonly decision: PlannerDecision;
	/** The text is a tool call that the model wrote out instead of making it (T11): not an answer. */
	readonly call_as_text: boolean;
};

export interface Assembler {
	/** Takes one parsed chunk and returns the text it added to the answer, for streaming on. Never throws. */
	push(chunk: unknown): string;
	/** True once the turn is larger than any turn may be: the caller stops reading. */
	readonly full: boolean;
	finish(): AssembledTurn;
}

type OpenCall = {
	id: string;
	index: number | null;
	name: string;
	/** Joined once at the end: text grown piece by piece must not cost its square. */
	readonly pieces: string[];
	/** The last character that is not white space: `}` means the arguments may be complete. */
	last: string;
	/** Ordinal of the delta that touched it last. */
	delta: number;
};
type Piece = { id: string; index: number | null; name: string; text: string | null };

/** @param offered the function names of this turn, for telling a call written as text */
export function createAssembler(offered: readonly string[]): Assembler {
	const content: string[] = [];
	const reasoning: string[] = [];
	const calls: OpenCall[] = [];
	let saidContent = false;
	let saidReasoning = false;
	let finish: string | undefined;
	let usage: PlannerDecision["usage"] = { prompt_tokens: 0, completion_tokens: 0 };
	let delta = 0;
	let chars = 0;
	let overflow: "cut_off" | "too_many_calls" | undefined;

	const count = (text: string): boolean => {
		chars += text.length;
		if (chars > PLANNER_OUTPUT_MAX_CHARS) overflow ??= "cut_off";
		return overflow === undefined;
	};

	function takeCall(raw: unknown): void {
		const piece = readPiece(raw);
		if (piece === undefined || (piece.text !== null && !count(piece.text))) return;
		const found = findCall(calls, piece);
		if (found === undefined || startsAnew(found, piece, delta)) {
			// A runaway model: whatever it wanted, running the first of so many calls is not it.
			if (calls.length >= CALLS_PER_TURN_MAX) overflow ??= "too_many_calls";
			else calls.push(addText({ ...piece, pieces: [], last: "", delta }, piece.text));
			return;
		}
		if (found.id === "") found.id = piece.id;
		found.index ??= piece.index;
		if (found.name !== piece.name) found.name += piece.name;
		found.delta = delta;
		addText(found, piece.text);
	}

	return {
		get full() {
			return overflow !== undefined;
		},
		push(chunk) {
			if (overflow !== undefined) return "";
			usage = readUsage(own(chunk, "usage")) ?? usage;
			const choices = own(chunk, "choices");
			// One choice is asked for; a second one must not mix its pieces into the first.
			const choice = Array.isArray(choices) ? choices.find((one) => (own(one, "index") ?? 0) === 0) : undefined;
			const part = own(choice, "delta");
			delta += 1;
			let added = "";
			const thought = own(part, "reasoning_content");
			if (typeof thought === "string" && count(thought)) {
				saidReasoning = true;
				reasoning.push(thought);
			}
			const text = own(part, "content");
			if (typeof text === "string" && count(text)) {
				saidContent = true;
				content.push(text);
				added = text;
			}
			const list = own(part, "tool_calls");
			if (Array.isArray(list)) for (const raw of list) takeCall(raw);
			const reason = own(choice, "finish_reason");
			// Once a turn has ended badly, a later chunk cannot talk it back into execution.
			if (typeof reason === "string" && reason !== "" && (finish === undefined || isClean(finish)))
				finish = finishReason(reason);
			return added;
		},
		finish() {
			const decision: PlannerDecision = {
				content: saidContent ? content.join("") : null,
				...(saidReasoning ? { reasoning_content: reasoning.join("") } : {}),
				tool_calls: calls.map(({ id, name, pieces }) => ({
					id,
					name,
					arguments: pieces.length === 0 ? null : pieces.join(""),
				})),
				finish_reason: overflow ?? finish ?? "cut_off",
				usage,
			};
			const silent = calls.length === 0;
			const written = silent && (isCallAsText(decision.content ?? "", offered) || isThoughtCall(decision, offered));
			return { decision, call_as_text: written };
		},
	};
}

const isClean = (reason: string): boolean => reason === "tool_calls" || reason === "stop";

/** Markup that leaked into the reasoning while the answer stayed empty (T11). Thoughts about a call are no call. */
function isThoughtCall(decision: PlannerDecision, offered: readonly string[]): boolean {
	return (decision.content ?? "").trim() === "" && isCallAsText(decision.reasoning_content ?? "", offered);
}

function addText(call: OpenCall, text: string | null): OpenCall {
	if (text === null) return call;
	call.pieces.push(text);
	let end = text.length - 1;
	while (end >= 0 && text.charCodeAt(end) <= 0x20) end -= 1;
	if (end >= 0) call.last = text.charAt(end);
	return call;
}

function readPiece(raw: unknown): Piece | undefined {
	if (typeof raw !== "object" || raw === null) return undefined;
	const id = own(raw, "id");
	const index = own(raw, "index");
	const said = own(raw, "function");
	const name = own(said, "name");
	const text = own(said, "arguments");
	return {
		id: typeof id === "string" ? id : "",
		index: typeof index === "number" ? index : null,
		name: typeof name === "string" ? name : "",
		// Some gateways send the arguments as an object: kept as JSON text, judged like any other text.
		text: typeof text === "string" ? text : typeof text === "object" && text !== null ? JSON.stringify(text) : null,
	};
}

/** The call that a piece belongs to: by id first, then by index, then the latest. */
function findCall(calls: readonly OpenCall[], piece: Piece): OpenCall | undefined {
	const { id, index, name } = piece;
	const latest = calls.at(-1);
	// Nearly every piece: no id, and the index of the call that is being written.
	if (id === "" && index !== null && latest?.index === index) return latest;
	if (id !== "") {
		const same = calls.findLast(
			(call) => call.id === id && (index === null || call.index === null || call.index === index),
		);
		if (same !== undefined || index === null) return same;
		// A new id at a known index is a new call, unless the call had no id yet or the piece has no name of its own
		// (gateways that mint an id per piece).
		const there = calls.findLast((call) => call.index === index);
		return there !== undefined && (there.id === "" || name === "") ? there : undefined;
	}
	if (index === null) return latest;
	return (
		calls.findLast((call) => call.index === index) ??
		(name === "" ? calls.findLast((call) => call.index === null) : undefined)
	);
}

/**
 * A repeated id or index is not always the same call (T05: gateways reuse `call_0`). With a name of its own, a piece
 * starts a new call when it is the second of one delta, when the name is another one and the first has arguments, or
 * when an object follows a closed object.
 */
function startsAnew(call: OpenCall, piece: Piece, delta: number): boolean {
	if (piece.name === "" || call.name === "") return false;
	if (call.delta === delta) return true;
	if (piece.name !== call.name && call.last !== "") return true;
	return call.last === "}" && (piece.text?.trimStart().startsWith("{") ?? false);
}

function readUsage(usage: unknown): PlannerDecision["usage"] | undefined {
	if (typeof usage !== "object" || usage === null) return undefined;
	const prompt_tokens = tokens(own(usage, "prompt_tokens"));
	const completion_tokens = tokens(own(usage, "completion_tokens"));
	// DeepSeek's spelling, then OpenAI's
	const hit = own(usage, "prompt_cache_hit_tokens") ?? own(own(usage, "prompt_tokens_details"), "cached_tokens");
	return typeof hit === "number"
		? { prompt_tokens, completion_tokens, prompt_cache_hit_tokens: Math.min(tokens(hit), prompt_tokens) }
		: { prompt_tokens, completion_tokens };
}

const tokens = (value: unknown): number =>
	typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
