/** A chat completion and its chunks as OpenAI clients read them. Shapes only; called by `routes/chat-completions.ts`. */
import * as z from "zod";
import { runPart } from "#core/ids.ts";
import type { RunView } from "#core/run/view.ts";

const usage = z.object({
	prompt_tokens: z.number().int(),
	completion_tokens: z.number().int(),
	total_tokens: z.number().int(),
	/** Only where the planner's provider says what its cache had. */
	prompt_tokens_details: z.object({ cached_tokens: z.number().int() }).optional(),
});
export type Usage = z.infer<typeof usage>;

const toolCall = z.object({
	id: z.string(),
	type: z.literal("function"),
	function: z.object({ name: z.string(), arguments: z.string() }),
});
export type ToolCall = z.infer<typeof toolCall>;

export const chatCompletion = z.object({
	id: z.string(),
	object: z.literal("chat.completion"),
	created: z.number().int(),
	model: z.string(),
	choices: z.array(
		z.object({
			index: z.literal(0),
			message: z.object({
				role: z.literal("assistant"),
				content: z.string().nullable(),
				refusal: z.null(),
				tool_calls: z.array(toolCall).optional(),
			}),
			logprobs: z.null(),
			finish_reason: z.enum(["stop", "tool_calls"]),
		}),
	),
	usage,
});

/** The members that an answer and every chunk of it share. */
export type Head = { readonly id: string; readonly created: number; readonly model: string };

/** `run` as it was when the request had been taken: one run answers many requests, and its log tells them apart. */
export function headOf(run: RunView, now_ms: number): Head {
	const id = `chatcmpl-${runPart(run.run_id)}-${run.seq}`;
	return { id, created: Math.floor(now_ms / 1000), model: run.planner.model ?? DEFAULT_MODEL };
}

/** The name by which a client asks for the model that this deployment is set to. */
export const DEFAULT_MODEL = "belay";

/** What this request used: a run counts over all of its turns. */
export function usageSince(before: RunView["usage"] | null, after: RunView["usage"]): Usage {
	const prompt_tokens = after.prompt_tokens - (before?.prompt_tokens ?? 0);
	const completion_tokens = after.completion_tokens - (before?.completion_tokens ?? 0);
	const total_tokens = prompt_tokens + completion_tokens;
	const hits = after.prompt_cache_hit_tokens;
	if (hits === undefined) return { prompt_tokens, completion_tokens, total_tokens };
	const cached_tokens = hits - (before?.prompt_cache_hit_tokens ?? 0);
	return { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details: { cached_tokens } };
}

type FinishReason = "stop" | "tool_calls";
export const finishReason = (calls: readonly ToolCall[]): FinishReason => (calls.length > 0 ? "tool_calls" : "stop");

/** With calls the text is null: what the planner wrote beside them is in the run. */
export function completion(
	head: Head,
	content: string,
	calls: ToolCall[],
	used: Usage,
): z.infer<typeof chatCompletion> {
	const said = { role: "assistant" as const, refusal: null };
	const message = calls.length > 0 ? { ...said, content: null, tool_calls: calls } : { ...said, content };
	return {
		...head,
		object: "chat.completion",
		choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(calls) }],
		usage: used,
	};
}

type Delta = {
	readonly role?: "assistant";
	readonly content?: string;
	readonly tool_calls?: readonly (ToolCall & { readonly index: number })[];
};

/** One chunk. With usage asked for, every chunk has the member, and the last one without choices has its value. */
export function chunk(
	head: Head,
	delta: Delta | null,
	finish_reason: FinishReason | null,
	usage: Usage | null | undefined,
): object {
	const choices = delta === null ? [] : [{ index: 0, delta, logprobs: null, finish_reason }];
	return { ...head, object: "chat.completion.chunk", choices, ...(usage === undefined ? {} : { usage }) };
}
