/**
 * The body of `POST /v1/chat/completions`: what an OpenAI client may send here. Members that would change what the answer
 * is (several choices, a format, stop words, log probabilities) are refused: answering without them would be another answer
 * than was asked for. Members that only tune the model are taken and not used, and the answer names them. Anything else is
 * unknown and refused. Called by `routes/chat-completions.ts`.
 */
import * as z from "zod";
import { CALLER_FUNCTIONS_MAX } from "#core/limits.ts";
import { jsonObject, smallJsonObject } from "../wire/any-json.ts";
import { TEXT_MAX_CHARS } from "../wire/create-run.ts";

/** The same bounds as those of a run's own messages. */
const MESSAGES_MAX = 200;
const PARTS_MAX = 100;
const METADATA_MAX_BYTES = 16_384;

/** The run's planner has no such settings; named in the header `belay-ignored-parameters` when they are sent. */
export const IGNORED = [
	"frequency_penalty",
	"max_completion_tokens",
	"max_tokens",
	"parallel_tool_calls",
	"presence_penalty",
	"prompt_cache_key",
	"prompt_cache_retention",
	"reasoning_effort",
	"safety_identifier",
	"seed",
	"service_tier",
	"store",
	"temperature",
	"top_p",
	"user",
	"verbosity",
] as const;
const ignored = Object.fromEntries(IGNORED.map((name) => [name, z.unknown().optional()])) as Record<
	(typeof IGNORED)[number],
	z.ZodOptional<z.ZodUnknown>
>;
/** Clients that write every member down send these as null. */
const unsupported = z.null().optional();

const text = z.string().max(TEXT_MAX_CHARS);
const content = z.union([
	text,
	z
		.array(z.object({ type: z.literal("text"), text }))
		.min(1)
		.max(PARTS_MAX),
]);
/** Members of a call beside its id are not read: the run has its own record of what was called. */
const calls = z.array(z.object({ id: z.string().max(256) })).nullish();
const legacy = z.array(z.unknown()).nullish();
const tool = z.strictObject({
	type: z.literal("function"),
	function: z.strictObject({
		name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "1 to 64 letters, digits, `_` or `-`"),
		description: z.string().nullish(),
		parameters: jsonObject.nullish(),
		/** Not passed on: arguments are checked against the schema before they are handed out, with or without it. */
		strict: z.boolean().nullish(),
	}),
});

/** Unknown members of a message are dropped: clients send back what they got, `refusal` and `annotations` included. */
const message = z.discriminatedUnion("role", [
	z.object({ role: z.enum(["system", "developer", "user"]), content }),
	z.object({
		role: z.literal("assistant"),
		content: content.nullish(),
		tool_calls: calls,
		function_call: z.unknown().optional(),
	}),
	z.object({ role: z.literal("tool"), tool_call_id: z.string().max(256), content }),
	// taken here only to be refused with a reason of its own: a call without an id names no run
	z.object({ role: z.literal("function") }),
]);
export type ChatMessage = z.infer<typeof message>;
export type ChatContent = z.infer<typeof content>;

export const chatRequest = z.strictObject({
	model: z
		.string()
		.min(1)
		.max(128)
		.describe("passed on to the planner; `belay` is the model this deployment is set to"),
	messages: z.array(message).min(1).max(MESSAGES_MAX).describe("text only; a new run begins with a user's message"),
	stream: z.boolean().nullish(),
	stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
	metadata: smallJsonObject(METADATA_MAX_BYTES)
		.nullish()
		.describe("kept with the run; `belay_run_id` names a run to go on with, as the header `belay-run-id` does"),
	n: z.literal(1).nullish(),
	modalities: z.array(z.literal("text")).nullish(),
	response_format: z.object({ type: z.literal("text") }).nullish(),
	logprobs: z.literal(false).nullish(),
	tools: z
		.array(tool)
		.max(CALLER_FUNCTIONS_MAX)
		.nullish()
		.describe("functions of the caller, offered beside the governed ones; their calls come back as `tool_calls`"),
	functions: legacy,
	tool_choice: z.unknown().optional(),
	function_call: z.unknown().optional(),
	audio: unsupported,
	logit_bias: unsupported,
	prediction: unsupported,
	stop: unsupported,
	top_logprobs: unsupported,
	web_search_options: unsupported,
	...ignored,
});
export type ChatRequest = z.infer<typeof chatRequest>;
