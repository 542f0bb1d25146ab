/**
 * A conversation made to fit the model's context before a turn (L3): measured, compacted where it has to be, and the summary
 * asked for in a small call of its own. It decides nothing about what is removed (core/planner/context-window.ts does) and
 * stores nothing: the record goes back with the turn's event. Called by `planners.ts`.
 */
import { applyCompaction, compact } from "#core/planner/context-window.ts";
import { marked } from "#core/planner/spotlight.ts";
import { readSummary, SUMMARY_INPUT_TOKENS, summaryRequest } from "#core/planner/summary-request.ts";
import { estimateRequest, tokenFamily } from "#core/planner/token-estimate.ts";
import type { CancelSignal, FunctionDefinition, Planner, PlannerMessage, PlannerRequest } from "#core/ports.ts";
import type { Compacting } from "#core/run/event.ts";
import type { RunRecord } from "#core/run/state.ts";

/** A summary is a help, the turn is what was asked for: the one gets this long, and a quarter of what the other has left. */
const SUMMARY_MAX_MS = 30_000;

export type Conversation = {
	/** All of it, on every turn. */
	readonly messages: readonly PlannerMessage[];
	readonly functions: readonly FunctionDefinition[];
	/** What the request may hold, and the model that is named for estimates. */
	readonly limit_tokens: number;
	readonly model: string | null;
	/** Of a run that asks for spotlighting: a summary is made of what came from outside, and is marked like it. */
	readonly mark?: string | null;
};

export type Fitted =
	| { readonly fits: true; readonly messages: readonly PlannerMessage[]; readonly compacted: Compacting | undefined }
	/** Even the last round alone is larger than the context. */
	| { readonly fits: false; readonly tokens: number };

/** @param base of the turn's own request: its model, cache user and what is left of the turn */
export async function fitContext(
	whole: Conversation,
	run: RunRecord,
	planner: Planner,
	base: Pick<PlannerRequest, "model" | "user" | "timeout_ms">,
	signal: CancelSignal,
): Promise<Fitted> {
	const { messages, functions, limit_tokens, mark = null } = whole;
	const family = tokenFamily(whole.model);
	const { goal, compaction: previous } = run;
	const done = compact(messages, functions, limit_tokens, { family, goal, previous });
	if (!done.fits) return { fits: false, tokens: done.tokens };
	const { compaction, needs_summary } = done;
	if (compaction === null || compaction === (previous ?? null) || needs_summary === null)
		return { fits: true, messages: done.messages, compacted: undefined };
	const timeout_ms = Math.max(1, Math.min(SUMMARY_MAX_MS, Math.floor(base.timeout_ms / 4)));
	const request: PlannerRequest = {
		...base,
		messages: summaryRequest(needs_summary, goal, family, Math.min(limit_tokens / 2, SUMMARY_INPUT_TOKENS)),
		functions: [],
		timeout_ms,
	};
	// Nobody who listens to the run hears its summary being written.
	const answer = await planner.plan(request, signal, () => undefined);
	const usage = answer.ok ? answer.decision.usage : null;
	const said = answer.ok ? readSummary(answer.decision, answer.call_as_text) : null;
	const summary = said === null || mark === null ? said : marked(said, mark);
	const told = applyCompaction(messages, { ...compaction, summary }, goal);
	// In a small context the summary itself may be what does not fit: then the list of removed calls stands alone.
	return estimateRequest(told, functions, family) <= limit_tokens
		? { fits: true, messages: told, compacted: { record: { ...compaction, summary }, usage } }
		: { fits: true, messages: done.messages, compacted: { record: compaction, usage } };
}
