/** The test provider's side of a managed run: turns as it streams them, and what it was sent. Keyed by the model's name. */
import { call, type TestTenant } from "../support/client.ts";
import type { Run } from "./tools.ts";

type Delta = Record<string, unknown>;

/** One turn as an OpenAI-compatible API streams it; 10 prompt and 5 completion tokens. */
export const sse = (deltas: Delta[], finish: string): string => {
	const chunk = (delta: Delta, finish_reason: string | null = null) =>
		`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
	return `${deltas.map((delta) => chunk(delta)).join("")}${chunk({}, finish)}data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } })}\n\ndata: [DONE]\n\n`;
};
export const toolCall = (id: string, name: string, args: string, index = 0): Delta => ({
	tool_calls: [{ index, id, type: "function", function: { name, arguments: args } }],
});
export const answer = (content: string): string => sse([{ role: "assistant", content }], "stop");
/** A turn of calls, each `[id, name, arguments]`. */
export const calls = (...made: [id: string, name: string, args: unknown][]): string =>
	sse(
		[
			{ role: "assistant", content: null },
			...made.map(([id, name, args], index) => toolCall(id, name, JSON.stringify(args), index)),
		],
		"tool_calls",
	);

/** Scripts the provider's turns and starts a run that it plans; answers the run at rest. */
export async function managedRun(
	tenant: TestTenant,
	model: string,
	turns: string[],
	more: Record<string, unknown> = {},
): Promise<Run> {
	await fetch(`https://planner.test/_script?key=${model}`, { method: "POST", body: JSON.stringify(turns) });
	const { status, body, text } = await call(
		"POST",
		"/v1/runs",
		{ goal: "pay A", planner: { kind: "openai", model }, ...more },
		tenant.operator,
		{ prefer: "wait=20" },
	);
	if (status !== 201) throw new Error(text);
	return body;
}
export const asked = async (model: string): Promise<any[]> =>
	(await fetch(`https://planner.test/_asked?key=${model}`)).json();
