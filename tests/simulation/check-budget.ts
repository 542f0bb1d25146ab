/** What must hold of budgets of calls and of money: counted to the last unit, never exceeded by a call, and told as they are. */
import type { RunRecord } from "#core/run/state.ts";
import type { RunTwin } from "./run-twin.ts";
import { fail, type Taken } from "./taken.ts";
import { priceOf } from "./tools.ts";
import type { Town } from "./town.ts";

type Spent = {
	readonly calls: number;
	/** Of tools alone; null: something was paid in another currency. */
	readonly tools: number | null;
	readonly total: number | null;
};

export function checkBudget(town: Town, twin: RunTwin, taken: Taken): void {
	const { run, planner, prices } = twin;
	if (run === null) return;
	const { event, saved, step } = taken;
	const free = prices !== undefined && prices.prompt + prices.completion === 0;
	const model = planner === "openai" && !free;
	// A provider that does not say what was used, or a model without a price: from here on nobody knows.
	if (event.kind === "planned" && step.problem === null && model)
		twin.unpriced ||= prices === undefined || event.decision.usage.prompt_tokens <= 0;
	if (saved === run) return;
	const spent = sum(town, twin);
	const { max_calls, max_cost_micro_usd: limit } = run.limits;
	const counted = run.usage.cost_micro_usd === undefined ? 0 : run.usage.cost_micro_usd;
	if (counted !== spent.total) fail(`the run cost ${spent.total} and counted ${counted}`);
	if (run.usage.calls !== undefined && max_calls === undefined) fail("calls were counted without a limit");
	if (max_calls !== undefined) {
		if ((run.usage.calls ?? 0) !== spent.calls) fail(`${spent.calls} calls started, ${run.usage.calls} were counted`);
		if (spent.calls > max_calls) fail(`${spent.calls} calls started of ${max_calls}`);
	}
	checkRefusals(taken, run, spent);
	const code = run.status === "failed" ? run.error?.code : undefined;
	if (limit === undefined) {
		if (code === "cost_budget" || code === "cost_unknown") fail(`a run without a budget ended by ${code}`);
		return;
	}
	if (spent.tools === null) fail("a call in another currency started in a run with a budget");
	if (spent.tools > limit) fail(`the calls cost ${spent.tools} of ${limit}`);
	const over = spent.total === null || spent.total > limit;
	// Its tokens may end it first, and its turns when its user speaks to it once more.
	const own = spent.total === null ? "cost_unknown" : "cost_budget";
	if (over && ![own, "token_budget", "turn_limit"].includes(code ?? ""))
		fail(`a run that cost ${spent.total} of ${limit} is ${run.status} (${code})`);
	if (code === "cost_unknown" && spent.total !== null) fail("what a run cost was known and it ended by cost_unknown");
	if (code === "cost_budget" && !over && !(model && spent.total === limit))
		fail(`a run that cost ${spent.total} of ${limit} ended by its budget`);
	if (model && (spent.total ?? limit) >= limit && step.effects.some(({ kind }) => kind === "plan"))
		fail("a planner was asked with nothing left to pay it");
}

/** What was spent is what was used: every attempt that was started, and every token that was answered. */
function sum(town: Town, { run, calls, planner, prices, unpriced }: RunTwin): Spent {
	let started = 0;
	let tools: number | null = 0;
	for (const { attempts, definition_hash, tool_call_id } of calls.values()) {
		if (attempts.length === 0) {
			if (town.upstream.requests.has(tool_call_id)) fail("a call that never started was sent");
			continue;
		}
		started += 1;
		const price = priceOf(definition_hash ?? "");
		tools = tools === null || price === null ? null : tools + attempts.length * price;
	}
	const { prompt_tokens = 0, completion_tokens = 0 } = run?.usage ?? {};
	const tokens = planner === "openai" && prices !== undefined;
	const model = tokens ? prompt_tokens * prices.prompt + completion_tokens * prices.completion : 0;
	return { calls: started, tools, total: tools === null || unpriced ? null : tools + model };
}

/** Who is refused for the budget did not fit it; and nobody is asked about a call that does not. What is left only shrinks. */
function checkRefusals({ before, saved, event, step }: Taken, run: RunRecord, spent: Spent): void {
	const { max_calls = Number.POSITIVE_INFINITY, max_cost_micro_usd: limit } = run.limits;
	const fits = (definition_hash: string | null, calls: number, cost: number | null): boolean => {
		if (calls >= max_calls) return false;
		if (limit === undefined) return true;
		const price = priceOf(definition_hash ?? "");
		return price !== null && cost !== null && (price === 0 || price <= limit - cost);
	};
	for (const row of step.rows) {
		if (row.table !== "call") continue;
		const { state, refusal, definition_hash, tool_id } = row.doc;
		const was = before?.calls.get(row.doc.tool_call_id)?.state;
		if (state === was) continue;
		const short = refusal?.errors.some(({ issue }) => issue === "out_of_range") === true;
		if (short && refusal.reason !== "budget_exhausted") fail(`a call that was too dear was refused: ${refusal.reason}`);
		if (short && fits(definition_hash, spent.calls, spent.total)) fail(`${tool_id} fits the budget and was refused`);
		// What it costs may be too much; that it is one more call than before it is not.
		if (row.doc.error?.message.includes("calls have started") === true)
			fail(`a retry of ${tool_id} was taken for another call`);
		if (saved === null) continue;
		const { calls = 0, cost_micro_usd = 0 } = saved.usage;
		// Nobody knows beforehand what will answer a call, so one that a gate answers has to fit as well.
		const served = state === "COMPLETED" && event.kind === "gated" && row.doc.attempts.length === 0;
		if ((served || state === "AWAITING_APPROVAL") && !fits(definition_hash, calls, cost_micro_usd))
			fail(`${tool_id} does not fit the budget and ${served ? "was served" : "a person was asked"}`);
	}
}
