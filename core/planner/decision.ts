/**
 * A planner's turn as it crosses the wire (contract: Decision), and the rule for what may execute at all. Harmless
 * members that stock clients copy along are ignored; any other role or member is refused, so that a forged tool result
 * cannot be posted as a decision (A15). Called by the decision route, the run create route (scripts) and core/run.
 */
import * as z from "zod";
import { CALLS_PER_TURN_MAX } from "../limits.ts";
import type { PlannerDecision } from "../ports.ts";
import type { FieldError } from "../refusal.ts";
import { finishReason } from "./finish-reason.ts";

const argumentsText = z
	.string({ error: "expected JSON text: send the arguments object as a string, as JSON.stringify does" })
	.nullish();

const wireCall = z.strictObject({
	id: z.string().max(256).nullish(),
	type: z.literal("function").optional(),
	index: z.number().int().nullish(),
	function: z.strictObject({ name: z.string().max(256), arguments: argumentsText }),
});

export const decision = z
	.strictObject({
		role: z.literal("assistant").optional(),
		content: z.string().nullish(),
		reasoning_content: z.string().nullish(),
		tool_calls: z.array(wireCall).max(CALLS_PER_TURN_MAX).nullish(),
		finish_reason: z.string().max(64).nullish(),
		// What the OpenAI clients carry along in an assistant message; none of it is used.
		refusal: z.unknown().optional(),
		annotations: z.unknown().optional(),
		audio: z.unknown().optional(),
		index: z.unknown().optional(),
		function_call: z.null({ error: "`function_call` is not supported: send `tool_calls`" }).optional(),
	})
	.refine((one) => typeof one.content === "string" || (one.tool_calls?.length ?? 0) > 0, {
		error: "a decision has content, tool calls or both",
	});
export type WireDecision = z.infer<typeof decision>;

/** The decision as the run machine takes it. Without a finish_reason the turn is whole: nobody streamed it. */
export function toPlannerDecision(wire: WireDecision): PlannerDecision {
	const calls = wire.tool_calls ?? [];
	return {
		content: wire.content ?? null,
		...(typeof wire.reasoning_content === "string" ? { reasoning_content: wire.reasoning_content } : {}),
		tool_calls: calls.map((call) => ({
			id: call.id ?? "",
			name: call.function.name,
			arguments: call.function.arguments ?? null,
		})),
		finish_reason: wire.finish_reason ? finishReason(wire.finish_reason) : calls.length > 0 ? "tool_calls" : "stop",
		usage: { prompt_tokens: 0, completion_tokens: 0 },
	};
}

type Executes =
	| { readonly ok: true }
	| { readonly ok: false; readonly reason: "truncated_output"; readonly errors: FieldError[] };

const ENDED_BADLY: Readonly<Record<string, string>> = {
	length: "the output limit was reached",
	content_filter: "the provider's content filter ended the output",
	insufficient_system_resource: "the provider ran out of resources",
	cut_off: "the output ended without a finish",
	too_many_calls: `more than ${CALLS_PER_TURN_MAX} calls were made in one turn`,
};

/**
 * Whether the tool calls of a turn may go on to normalize. `tool_calls` and `stop` mean that the model ended by itself
 * (many servers say `stop` beside complete calls). Everything else, a name nobody knows included, may have lost the end
 * of an argument even where the JSON still parses (T03), so no call of the turn runs.
 */
export function executes(turn: PlannerDecision): Executes {
	if (turn.finish_reason === "tool_calls" || turn.finish_reason === "stop") return { ok: true };
	const why = Object.hasOwn(ENDED_BADLY, turn.finish_reason)
		? ENDED_BADLY[turn.finish_reason]
		: "the output ended in an unknown way";
	return {
		ok: false,
		reason: "truncated_output",
		errors: [
			{
				error: `nothing of this turn ran: ${why}`,
				field: "",
				issue: "cut_off",
				expected: "a complete turn",
				hint: "send the calls again, fewer or with smaller arguments",
			},
		],
	};
}
