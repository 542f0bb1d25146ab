/** A stock OpenAI client pointed at Belay, and scripts for the model behind it. */
import OpenAI from "openai";
import { worker } from "../support/client.ts";

type Delta = Record<string, unknown>;
const chunk = (delta: Delta | null, finish_reason: string | null = null, more: object = {}): string =>
	`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: delta === null ? [] : [{ index: 0, delta, finish_reason }], ...more })}\n\n`;

/** One turn of the model behind Belay, in pieces; it uses 10 + 5 tokens. */
export const modelTurn = (deltas: Delta[], finish: string): string =>
	`${deltas.map((delta) => chunk(delta)).join("")}${chunk({}, finish)}${chunk(null, null, { usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } })}data: [DONE]\n\n`;
export const says = (...pieces: string[]): string =>
	modelTurn([{ role: "assistant", content: "" }, ...pieces.map((content) => ({ content }))], "stop");
export const calls = (name: string, args: object, text: string | null = null): string =>
	modelTurn(
		[
			{ role: "assistant", content: text },
			{
				tool_calls: [{ index: 0, id: "call_0", type: "function", function: { name, arguments: JSON.stringify(args) } }],
			},
		],
		"tool_calls",
	);

/** Several calls in one turn, each in two pieces; the provider numbers them from `call_0` in every turn. */
export const callsAll = (...all: [name: string, args: object][]): string =>
	modelTurn(
		[
			{ role: "assistant", content: null },
			...all.flatMap(([name, args], index) => [
				{ tool_calls: [{ index, id: `call_${index}`, type: "function", function: { name, arguments: "" } }] },
				{ tool_calls: [{ index, function: { arguments: JSON.stringify(args) } }] },
			]),
		],
		"tool_calls",
	);

/** The same turn from a provider that says what its cache had. */
export const withCacheHits = (modelTurn: string, hits: number): string =>
	modelTurn.replace('"prompt_tokens":10', `"prompt_tokens":10,"prompt_cache_hit_tokens":${hits}`);

/** Queues turns under a fresh model name and answers that name. */
export async function scriptModel(...turns: string[]): Promise<string> {
	const model = `m-${crypto.randomUUID()}`;
	await fetch(`https://planner.test/_script?key=${model}`, { method: "POST", body: JSON.stringify(turns) });
	return model;
}
/** Requests that the model behind Belay has had. */
export const modelAsked = async (model: string): Promise<any[]> =>
	(await fetch(`https://planner.test/_asked?key=${model}`)).json();

/** The client as its users have it: only key and address are Belay's. */
export const client = (apiKey: string): OpenAI =>
	new OpenAI({
		apiKey,
		baseURL: "https://belay.test/v1",
		fetch: (input, init) => worker.fetch(new Request(input, init)),
	});
