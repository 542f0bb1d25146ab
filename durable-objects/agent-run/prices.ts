/**
 * What this deployment says that planner models cost (`BELAY_PLANNER_PRICES`): JSON, by model, in US dollars per million
 * tokens. A model that is not named has no price, and a text that cannot be read names none: nothing is guessed.
 */
import * as z from "zod";
import type { TokenPrices } from "#core/run/budget.ts";
import type { PlannerSpec } from "./api.ts";

const price = z.number().min(0).max(1_000_000);
const table = z.record(z.string(), z.strictObject({ prompt: price, completion: price }));

let read: { readonly text: string; readonly prices: ReadonlyMap<string, TokenPrices> } | null = null;

/** Undefined: nobody said what this planner's tokens cost. */
export function pricesOf(env: Env, { kind, model }: PlannerSpec): TokenPrices | undefined {
	const named = model ?? (kind === "openai" ? env.BELAY_PLANNER_MODEL : null);
	const text = env.BELAY_PLANNER_PRICES;
	// A deployment whose configuration is older has no such variable.
	if (named === null || !text) return undefined;
	if (read?.text !== text) read = { text, prices: parse(text) };
	return read.prices.get(named);
}

function parse(text: string): ReadonlyMap<string, TokenPrices> {
	const prices = readPrices(text);
	if (prices !== undefined) return prices;
	console.error(JSON.stringify({ level: "error", what: "BELAY_PLANNER_PRICES cannot be read; no model has a price" }));
	return new Map();
}

/** Undefined: the text is no price list. */
export function readPrices(text: string): ReadonlyMap<string, TokenPrices> | undefined {
	try {
		return new Map(Object.entries(table.parse(JSON.parse(text))));
	} catch {
		return undefined;
	}
}
