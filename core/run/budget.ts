/**
 * A run's budget of money (L4): what was spent is counted in millionths of a US dollar and never goes back, whatever is
 * resumed or restarted. A call that does not fit any more does not start; a planner that went past the end ends the run.
 * Nothing is guessed: what has no known price cannot be part of a run with a budget. Called where calls are judged and
 * started, and where a planner's turn arrives.
 */
import type { FieldError } from "../refusal.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";
import type { Draft } from "./draft.ts";
import { isModel } from "./is-model.ts";
import type { RunRecord } from "./state.ts";

/** Of a planner's model: US dollars per million tokens, which is the same number in micro-dollars per token. */
export type TokenPrices = { readonly prompt: number; readonly completion: number };

type Tokens = { readonly prompt_tokens: number; readonly completion_tokens: number };

/** One attempt of a call in micro-dollars; 0 where the tool declares no cost, null where it costs in another currency. */
export function attemptCost({ cost }: ToolDescriptor): number | null {
	if (cost === undefined || cost.amount === 0) return 0;
	return cost.currency.toUpperCase() === "USD" ? roundUp(cost.amount * 1_000_000) : null;
}

/** Whole micro-dollars, never too few; the fourth decimal is where binary fractions err. */
const roundUp = (micro_usd: number): number => bounded(Math.ceil(Number(micro_usd.toFixed(3))));
/** Beyond what can be counted exactly (nine thousand million dollars) every sum is as good as the largest. */
const bounded = (micro_usd: number): number => Math.min(micro_usd, Number.MAX_SAFE_INTEGER);

/** Adds to what the run has cost. Null: nobody knows what this cost, so from here on nobody knows the sum. */
export function charge(draft: Draft, micro_usd: number | null): void {
	if (micro_usd === 0) return;
	const { usage } = draft.run;
	const spent = usage.cost_micro_usd;
	const cost_micro_usd = spent === null || micro_usd === null ? null : bounded((spent ?? 0) + micro_usd);
	draft.set({ usage: { ...usage, cost_micro_usd } });
}

/** What a managed planner's turn cost. A provider that does not say how much it used is believed nothing. */
export function chargePlanner(draft: Draft, { prompt_tokens, completion_tokens }: Tokens): void {
	const { planner, prices } = draft.run;
	if (!isModel(planner.kind) || isFree(prices)) return;
	if (prices === undefined || prompt_tokens <= 0) charge(draft, null);
	else charge(draft, roundUp(prompt_tokens * prices.prompt + completion_tokens * prices.completion));
}

const isFree = (prices: TokenPrices | undefined): boolean =>
	prices !== undefined && prices.prompt + prices.completion === 0;

/** Why this call may not start any more, as its refusal says it; null when it may. */
export function unaffordable({ run }: Draft, descriptor: ToolDescriptor): FieldError | null {
	const limit = run.limits.max_cost_micro_usd;
	if (limit === undefined) return null;
	const cost = attemptCost(descriptor);
	if (cost === null) return tooDear("the tool costs in another currency than the run's budget");
	if (run.usage.cost_micro_usd === null) return tooDear("what the run has cost so far is not known");
	const left = Math.max(0, limit - (run.usage.cost_micro_usd ?? 0));
	// What costs nothing may run with nothing left.
	if (cost === 0 || cost <= left) return null;
	return tooDear(`the call costs ${cost} micro-USD and ${left} of the run's ${limit} are left`);
}

function tooDear(error: string): FieldError {
	const expected = "a call that the rest of the run's budget pays for";
	const hint = "do without it, or tell the user what could not be done; the budget is not renewed";
	return { error, field: "", issue: "out_of_range", expected, hint };
}

/** How a run ends that used more tokens than it may; null while it has not. */
export function overTokens({ limits, usage }: RunRecord): RunRecord["error"] {
	const spent = usage.prompt_tokens + usage.completion_tokens;
	if (limits.max_tokens === 0 || spent <= limits.max_tokens) return null;
	const message = `the run used ${spent} tokens of ${limits.max_tokens}; what was found is in its calls`;
	return { code: "token_budget", message };
}

/** How a run ends whose planner may not be asked again; null while it may. `before`: it is about to be asked. */
export function overspent({ limits, usage, planner, prices }: RunRecord, before = false): RunRecord["error"] {
	const limit = limits.max_cost_micro_usd;
	if (limit === undefined) return null;
	const found = "what was found is in its calls";
	if (usage.cost_micro_usd === null) {
		const message = `the planner's provider did not say what it used, so the run's budget of money cannot be kept; ${found}`;
		return { code: "cost_unknown", message };
	}
	const spent = usage.cost_micro_usd ?? 0;
	const costs = isModel(planner.kind) && !isFree(prices);
	if (spent <= limit && !(before && costs && spent === limit)) return null;
	return { code: "cost_budget", message: `the run cost ${spent} micro-USD of ${limit}; ${found}` };
}

/** What a run with a budget cannot begin with: a model or tools whose price in US dollars nobody has said. */
export function unpriced({ run, exposure, kit }: Draft): FieldError[] {
	if (run.limits.max_cost_micro_usd === undefined) return [];
	const field = "/limits/max_cost_micro_usd";
	const issue = "semantic_violation";
	const errors: FieldError[] = [];
	if (isModel(run.planner.kind) && run.prices === undefined) {
		const error = "the price of the planner's model is not known here, so what the run costs cannot be counted";
		const expected = "a model that this deployment has a price for (`BELAY_PLANNER_PRICES`)";
		errors.push({ error, field, issue, expected, hint: "name such a model, or leave the budget out" });
	}
	for (const { tool_id, definition_hash } of exposure?.tools ?? []) {
		const { descriptor } = kit.tool(definition_hash).version;
		if (attemptCost(descriptor) !== null) continue;
		const error = `\`${tool_id}\` costs in ${descriptor.cost?.currency}, which cannot be counted in US dollars`;
		const expected = "tools that cost nothing or US dollars";
		errors.push({ error, field, issue, expected, hint: "pin other tools with `tools`, or leave the budget out" });
	}
	return errors;
}

/** What the outside sees: null when nobody knows. */
export function costOf({ usage, planner, prices }: RunRecord): number | null {
	if (usage.cost_micro_usd !== undefined) return usage.cost_micro_usd;
	return isModel(planner.kind) && prices === undefined ? null : 0;
}
