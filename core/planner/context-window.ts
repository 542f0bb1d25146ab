/**
 * Keeps a planner's request within its context (L3, O03). Before a turn the whole conversation is measured; from 80 % on,
 * everything but the rules, the goal, what people said, the last three tool rounds and every round that still waits is
 * replaced in one step by one summary. What is removed is a list of positions, stored by the run and applied again on each
 * turn, so that the beginning of the request stays the same bytes until the next compaction and provider caches hit.
 *
 * It never splits a round (a call without its result, or the reverse, is refused by every provider) and never shortens a
 * message that it keeps. It asks no model: the text of the summary comes from the caller, or stays out.
 * Called by the run's shell between `conversation()` and the planner.
 */
import type { FunctionDefinition, PlannerMessage } from "../ports.ts";
import { summarySlot } from "./context-window-slot.ts";
import { type HistoryUnit, historyUnits } from "./context-window-units.ts";
import { estimateMessage, estimateRequest, type TokenFamily } from "./token-estimate.ts";

/** L3. */
const COMPACT_AT_RATIO = 0.8;
const ROUNDS_KEPT = 3;
/** Less than this is not worth a summary and a cold cache, while everything still fits. */
const GAIN_MIN_RATIO = 0.05;

/** What was taken out of a conversation; plain data that the run stores. Positions are indices of its messages. */
export type Compaction = {
	readonly v: 1;
	/** Everything before this message is out, but for what `kept` names. Always the beginning of a unit. */
	readonly upto: number;
	/** First messages of the units before `upto` that stay, ascending. */
	readonly kept: readonly number[];
	/** How many of the removed calls the slot names, the latest ones. */
	readonly listed: number;
	/** The model's summary; null when none could be had, and then only the list of removed calls stands in. */
	readonly summary: string | null;
};

export type CompactOptions = {
	readonly family: TokenFamily;
	/** The run's goal as it stands in a user message; without it the first user message counts. */
	readonly goal?: string | undefined;
	/** As stored by the last compaction of this run. */
	readonly previous?: Compaction | null | undefined;
};

export type Compacted = {
	/** What to send. After a compaction with the list of removed calls only: see `needs_summary`. */
	readonly messages: PlannerMessage[];
	/** To store when it is not the one that was passed in; null while nothing was ever removed. */
	readonly compaction: Compaction | null;
	/** What this call took out, `from` and `to` (exclusive) being message positions; null when nothing. */
	readonly removed: { readonly from: number; readonly to: number; readonly groups: number } | null;
	/** What a summary should cover. Ask for it, then `applyCompaction` with `{...compaction, summary}`; null: nothing to ask. */
	readonly needs_summary: PlannerMessage[] | null;
	/** Estimated tokens of what comes out, functions included. */
	readonly tokens: number;
	/** False: even the last round alone is larger than the context, and the run has to rest. */
	readonly fits: boolean;
};

/**
 * @param messages of `conversation()`, all of them, on every turn; only ever appended to
 * @param limit_tokens what a request may hold: the context of the model less what it may write
 */
export function compact(
	messages: readonly PlannerMessage[],
	functions: readonly FunctionDefinition[],
	limit_tokens: number,
	options: CompactOptions,
): Compacted {
	const { family } = options;
	const units = historyUnits(messages, options.goal);
	const previous = usable(units, options.previous ?? null);
	const now = render(units, previous);
	const tokens = estimateRequest(now, functions, family);
	const threshold = limit_tokens * COMPACT_AT_RATIO;
	const unchanged = {
		messages: now,
		compaction: previous,
		removed: null,
		needs_summary: null,
		tokens,
		fits: tokens <= limit_tokens,
	};
	if (tokens < threshold) return unchanged;
	const overhead = estimateRequest([], functions, family);
	let best: { compaction: Compaction; messages: PlannerMessage[]; tokens: number } | undefined;
	for (const level of LEVELS) {
		// The last three rounds are only touched where the request would be refused otherwise.
		if (level.rounds < ROUNDS_KEPT && (best?.tokens ?? tokens) <= limit_tokens) break;
		const taken = takeOut(units, previous, level);
		if (taken === null) continue;
		const compaction: Compaction = { ...taken, listed: listedCalls(limit_tokens) };
		const rendered = render(units, compaction);
		const size = overhead + rendered.reduce((sum, one) => sum + estimateMessage(one, family), 0);
		if (size < (best?.tokens ?? tokens)) best = { compaction, messages: rendered, tokens: size };
		if (size < threshold) break;
	}
	if (best === undefined) return unchanged;
	if (unchanged.fits && tokens - best.tokens < limit_tokens * GAIN_MIN_RATIO) return unchanged;
	const before = new Set(out(units, previous));
	const taken = out(units, best.compaction).filter((unit) => !before.has(unit));
	return {
		...best,
		removed: { from: taken[0]?.from ?? 0, to: taken.at(-1)?.to ?? 0, groups: taken.length },
		needs_summary: toSummarize(units, previous, best.compaction),
		fits: best.tokens <= limit_tokens,
	};
}

/** The conversation with what `compaction` names taken out: the same bytes for as long as it stands. */
export function applyCompaction(
	messages: readonly PlannerMessage[],
	compaction: Compaction | null,
	goal?: string,
): PlannerMessage[] {
	const units = historyUnits(messages, goal);
	return render(units, usable(units, compaction));
}

/** One line of the list is some 50 tokens: it takes a tenth of the request at most, but for a few lines, and 5,000 tokens. */
const listedCalls = (limit_tokens: number): number => Math.min(100, Math.max(8, Math.floor(limit_tokens / 500)));

/** Tried in order until one brings the request below the threshold: people's words go later, recent rounds last. */
const LEVELS = [
	{ rounds: ROUNDS_KEPT, people: true },
	{ rounds: ROUNDS_KEPT, people: false },
	{ rounds: 2, people: false },
	{ rounds: 1, people: false },
] as const;

function takeOut(
	units: readonly HistoryUnit[],
	previous: Compaction | null,
	level: (typeof LEVELS)[number],
): Omit<Compaction, "listed"> | null {
	const rounds = units.filter((unit) => unit.kind === "round");
	const first = rounds.at(-level.rounds) ?? units.at(-1);
	if (first === undefined) return null;
	const upto = Math.max(first.from, previous?.upto ?? 0);
	const gone = new Set(out(units, previous));
	const stays = (unit: HistoryUnit): boolean =>
		!gone.has(unit) && (unit.pinned || unit.waiting || (level.people && unit.kind === "user"));
	const older = units.filter((unit) => unit.from < upto);
	const kept = older.filter(stays).map((unit) => unit.from);
	const removed = older.length - kept.length;
	return removed === gone.size ? null : { v: 1, upto, kept, summary: null };
}

/** The units that a compaction takes out. */
function out(units: readonly HistoryUnit[], compaction: Compaction | null): HistoryUnit[] {
	if (compaction === null) return [];
	const kept = new Set(compaction.kept);
	return units.filter((unit) => unit.from < compaction.upto && !kept.has(unit.from));
}

/** With an older summary only what is new needs one, and the older one is part of it. */
function toSummarize(units: readonly HistoryUnit[], previous: Compaction | null, next: Compaction): PlannerMessage[] {
	const summary = previous?.summary ?? null;
	const covered = new Set(summary === null ? [] : out(units, previous));
	const fresh = out(units, next).filter((unit) => !covered.has(unit));
	return [
		...(summary === null ? [] : [{ role: "assistant" as const, content: summary }]),
		...fresh.flatMap((unit) => unit.messages),
	];
}

/** A record that does not fit this conversation is not applied: half a round would fail every later request. */
function usable(units: readonly HistoryUnit[], compaction: Compaction | null): Compaction | null {
	if (compaction === null) return null;
	const starts = new Set(units.map((unit) => unit.from));
	const kept = new Set(compaction.kept);
	const sound =
		starts.has(compaction.upto) &&
		compaction.kept.every((at) => starts.has(at) && at < compaction.upto) &&
		units.every((unit) => !unit.pinned || unit.from >= compaction.upto || kept.has(unit.from));
	return sound ? compaction : null;
}

/** The model goes on by itself after its own summary; providers want a user's turn between two of the assistant's. */
const GO_ON: PlannerMessage = { role: "user", content: "Go on with the goal from here." };

/** Kept units in their order, the slot behind the goal: everything up to it never moves. */
function render(units: readonly HistoryUnit[], compaction: Compaction | null): PlannerMessage[] {
	const gone = out(units, compaction);
	if (compaction === null || gone.length === 0) return units.flatMap((unit) => unit.messages);
	const away = new Set(gone);
	const stay = units.filter((unit) => !away.has(unit));
	const goal = stay.findIndex((unit) => unit.goal);
	const rules = stay.findIndex((unit) => unit.kind !== "system");
	const cut = goal === -1 ? Math.max(0, rules) : goal + 1;
	const tail = joined(stay.slice(cut), compaction.upto);
	return [
		...joined(stay.slice(0, cut), compaction.upto),
		summarySlot(gone, compaction.summary, compaction.listed),
		...(tail[0]?.role === "user" ? [] : [GO_ON]),
		...tail,
	];
}

/** People's words that come to stand side by side become one message: some providers refuse two user turns in a row. */
function joined(units: readonly HistoryUnit[], upto: number): PlannerMessage[] {
	const messages: PlannerMessage[] = [];
	for (const unit of units) {
		const last = messages.at(-1);
		const [message] = unit.messages;
		if (unit.from <= upto && last?.role === "user" && message?.role === "user")
			messages.splice(-1, 1, { role: "user", content: `${last.content}\n\n${message.content}` });
		else messages.push(...unit.messages);
	}
	return messages;
}
