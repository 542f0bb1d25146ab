/**
 * A conversation as pieces that may be removed whole: an assistant's turn with calls and all their results is one piece.
 * Says what each piece is and whether it must stay, removes nothing. Called by `context-window.ts`.
 */
import { own } from "../json.ts";
import type { PlannerMessage } from "../ports.ts";

export type HistoryUnit = {
	readonly kind: "system" | "user" | "assistant" | "round";
	/** Positions in the conversation; `to` is exclusive. */
	readonly from: number;
	readonly to: number;
	readonly messages: readonly PlannerMessage[];
	/** Rules, the goal and what a person said last: what the rest is judged by. */
	readonly pinned: boolean;
	readonly goal: boolean;
	/** A call of it has no final result yet: forgotten, it would be asked for a second time (O03). */
	readonly waiting: boolean;
};

export function historyUnits(messages: readonly PlannerMessage[], goal: string | undefined): HistoryUnit[] {
	const goalAt = findGoal(messages, goal);
	const lastSaid = messages.findLastIndex((message) => message.role === "user");
	const units: HistoryUnit[] = [];
	for (let from = 0; from < messages.length; ) {
		const kind = kindOf(messages[from]);
		let to = from + 1;
		// Results always follow the calls that they answer, so the round ends with them.
		if (kind === "round") while (messages[to]?.role === "tool") to += 1;
		const part = messages.slice(from, to);
		units.push({
			kind,
			from,
			to,
			messages: part,
			pinned: kind === "system" || from === goalAt || from === lastSaid,
			goal: from === goalAt,
			waiting: kind === "round" && part.some(isWaiting),
		});
		from = to;
	}
	return units;
}

function kindOf(message: PlannerMessage | undefined): HistoryUnit["kind"] {
	if (message?.role === "system" || message?.role === "user") return message.role;
	return message?.role === "assistant" && (message.tool_calls?.length ?? 0) === 0 ? "assistant" : "round";
}

/** History that the run was given may stand before its goal, and may say the same. */
function findGoal(messages: readonly PlannerMessage[], goal: string | undefined): number {
	const round = messages.findIndex((message) => kindOf(message) === "round");
	const beforeCalls = round === -1 ? messages : messages.slice(0, round);
	const isUser = (message: PlannerMessage): boolean => message.role === "user";
	const named = beforeCalls.findLastIndex((message) => isUser(message) && message.content === goal?.toWellFormed());
	return named === -1 ? messages.findIndex(isUser) : named;
}

function isWaiting(message: PlannerMessage): boolean {
	return message.role === "tool" && statusOf(message.content) === "awaiting_approval";
}

/**
 * The status of a tool message. Belay writes it first, so the beginning is enough: parsing every result of a long run
 * on every turn is not, and nothing inside the data stands there.
 */
export function statusOf(content: string): string | null {
	return /^\{"status":"([a-z_]{1,32})"/.exec(content)?.[1] ?? null;
}

/** Where the evidence of a tool message lies; an id of Belay's form only, never text of a tool. */
export function evidenceIdOf(content: string): string | null {
	let message: unknown;
	try {
		message = JSON.parse(content);
	} catch {
		return null;
	}
	const evidence = own(message, "evidence_id");
	return typeof evidence === "string" && /^ev_[0-9a-z_]{1,80}$/.test(evidence) ? evidence : null;
}
