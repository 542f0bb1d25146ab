/**
 * The managed planner over the Workers AI binding (L1). Same promises as the OpenAI-compatible one: it sends what it is
 * given, streams, puts the turn together with core's assembler, asks once and never throws. The binding holds the
 * account's credentials, so no key passes through here. Called by the run object.
 */
import { createAssembler } from "#core/planner/assembler.ts";
import type { CancelSignal, Planner, PlannerRequest } from "#core/ports.ts";
import { type Bounds, boundedTurn, cutOff, type Planned } from "../openai/bounded-turn.ts";
import { readTurn, StreamBroken } from "../openai/read-turn.ts";
import { untilAborted } from "../openai/until-aborted.ts";
import { bindingFault, brokenFault } from "./binding-fault.ts";
import { toChunks } from "./to-chunks.ts";

/** The part of the platform's `Ai` that is used; `env.AI` is cast to it, its overloads know only listed models. */
export type AiBinding = {
	run(
		model: string,
		inputs: Record<string, unknown>,
		options?: { signal?: AbortSignal; tags?: string[] },
	): Promise<unknown>;
};
export type WorkersAiPlannerConfig = {
	/** Missing: every plan is answered `planner_unavailable`. */
	readonly ai: AiBinding | null | undefined;
	readonly model?: string | undefined;
	/** What one turn may write, thoughts included. Always sent: older models write 256 tokens otherwise. */
	readonly maxTokens?: number | undefined;
	/** Silence on the open stream, or before it, that counts as a stall. */
	readonly idleMs?: number | undefined;
};

export const WORKERS_AI_MODEL_DEFAULT = "@cf/deepseek-ai/deepseek-v4-flash-0731";
const MAX_TOKENS_DEFAULT = 32_768;

export class WorkersAiPlanner implements Planner {
	readonly #config: WorkersAiPlannerConfig;

	constructor(config: WorkersAiPlannerConfig) {
		this.#config = config;
	}

	/** One turn. Never throws; `request.timeout_ms` bounds all of it. */
	async plan(
		request: PlannerRequest,
		signal: CancelSignal,
		onDelta: (delta: { content: string }) => void,
	): Promise<Planned> {
		const { ai } = this.#config;
		if (!ai) {
			const message = "no Workers AI binding is configured";
			return { ok: false, fault: { code: "planner_unavailable", message, retryable: false } };
		}
		const turn = async ({ signal: stopped, alive, say }: Bounds): Promise<Planned> => {
			const inputs = this.#inputs(request);
			const model = request.model ?? this.#config.model ?? WORKERS_AI_MODEL_DEFAULT;
			// Aborted already: nothing is asked, so nothing is paid for.
			stopped.throwIfAborted();
			const answer = await untilAborted(ai.run(model, inputs, { signal: stopped }), stopped);
			alive();
			const assembler = createAssembler(request.functions.map((one) => one.name));
			const chunks = toChunks(assembler, this.#maxTokens);
			const complete = await readTurn(asResponse(answer), chunks, stopped, alive, say);
			const { decision, call_as_text } = assembler.finish();
			return { ok: true, decision: complete ? decision : cutOff(decision), call_as_text };
		};
		return boundedTurn(request, signal, onDelta, this.#config.idleMs, turn, (error) =>
			error instanceof StreamBroken ? brokenFault(error.body) : bindingFault(error),
		);
	}

	get #maxTokens(): number {
		return this.#config.maxTokens ?? MAX_TOKENS_DEFAULT;
	}

	#inputs(request: PlannerRequest): Record<string, unknown> {
		const tools = request.functions.map((one) => ({
			type: "function",
			function: { name: one.name, description: one.description, parameters: one.parameters },
		}));
		return {
			messages: request.messages,
			// An empty list is refused by several models.
			...(tools.length === 0 ? {} : { tools }),
			stream: true,
			stream_options: { include_usage: true },
			max_tokens: this.#maxTokens,
		};
	}
}

/** A stream of events, or, from models that do not stream with tools, the whole answer as an object. */
function asResponse(answer: unknown): Response {
	if (answer instanceof Response) return answer;
	if (answer instanceof ReadableStream)
		return new Response(answer, { headers: { "content-type": "text/event-stream" } });
	// One event and its end mark: read like any other stream, by the same rules.
	return new Response(`data: ${JSON.stringify(answer ?? null)}\n\ndata: [DONE]\n\n`, {
		headers: { "content-type": "text/event-stream" },
	});
}
