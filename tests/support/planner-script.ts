/** A scripted provider for managed runs: turns as the OpenAI-compatible endpoint outside streams them. */
type Delta = Record<string, unknown>;

export type Usage = {
	readonly prompt_tokens: number;
	readonly completion_tokens: number;
	readonly prompt_cache_hit_tokens?: number;
};
const USAGE: Usage = { prompt_tokens: 10, completion_tokens: 5 };

function sse(deltas: readonly Delta[], finish: string, usage: Usage): string {
	const frame = (choices: unknown[], more: object = {}) =>
		`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices, ...more })}\n\n`;
	const chunk = (delta: Delta, finish_reason: string | null = null) => frame([{ index: 0, delta, finish_reason }]);
	const total_tokens = usage.prompt_tokens + usage.completion_tokens;
	return `${deltas.map((delta) => chunk(delta)).join("")}${chunk({}, finish)}${frame([], { usage: { ...usage, total_tokens } })}data: [DONE]\n\n`;
}

/** A turn that calls tools, each as [name, id, arguments]. */
export const calling = (calls: readonly [name: string, id: string, args: unknown][], usage = USAGE): string =>
	sse(
		[
			{ role: "assistant", content: null },
			...calls.map(([name, id, args], index) => ({
				tool_calls: [{ index, id, type: "function", function: { name, arguments: JSON.stringify(args) } }],
			})),
		],
		"tool_calls",
		usage,
	);

export const answering = (content: string, usage = USAGE): string =>
	sse([{ role: "assistant", content }], "stop", usage);

/** Queues turns; the answer is the name of the model that plays them. */
export async function script(turns: readonly string[], model = `m-${crypto.randomUUID()}`): Promise<string> {
	await fetch(`https://planner.test/_script?key=${model}`, { method: "POST", body: JSON.stringify(turns) });
	return model;
}

/** What the provider was sent for a model, oldest first. */
export const askedOf = async (model: string): Promise<any[]> =>
	(await fetch(`https://planner.test/_asked?key=${model}`)).json();
