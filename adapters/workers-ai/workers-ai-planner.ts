/**
 * The managed planner over the Workers AI binding (L1). Same promises as the OpenAI-compatible one: it sends what it is
 * given, streams, puts the turn together with core's assembler, asks once and never throws. The binding holds the
 * account's credentials, so no key passes through here. Called by the run object.
 */
import { PLANNER_IDLE_MS } from "#core/limits.ts";
import { createAssembler } from "#core/planner/assembler.ts";
import type { CancelSignal, Planner, PlannerDecision, PlannerFault, PlannerRequest } from "#core/ports.ts";
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

type Stop = "cancelled" | "total" | "idle";
type Planned = Awaited<ReturnType<Planner["plan"]>>;

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
		const controller = new AbortController();
		let why: Stop | undefined;
		const stop = (reason: Stop): void => {
			why ??= reason;
			controller.abort();
		};
		const cancel = (): void => stop("cancelled");
		const total = setTimeout(() => stop("total"), request.timeout_ms);
		const idleMs = this.#config.idleMs ?? PLANNER_IDLE_MS;
		let idle = setTimeout(() => stop("idle"), idleMs);
		const alive = (): void => {
			clearTimeout(idle);
			idle = setTimeout(() => stop("idle"), idleMs);
		};
		if (signal instanceof AbortSignal) signal.addEventListener("abort", cancel);
		if (signal.aborted) cancel();
		// Who listens to the text may be gone; the turn is worth having all the same.
		const say = (delta: { content: string }): void => {
			try {
				onDelta(delta);
			} catch {
				return;
			}
		};
		try {
			const inputs = this.#inputs(request);
			const model = request.model ?? this.#config.model ?? WORKERS_AI_MODEL_DEFAULT;
			// Aborted already: nothing is asked, so nothing is paid for.
			controller.signal.throwIfAborted();
			const answer = await untilAborted(ai.run(model, inputs, { signal: controller.signal }), controller.signal);
			alive();
			const assembler = createAssembler(request.functions.map((one) => one.name));
			const chunks = toChunks(assembler, this.#maxTokens);
			const complete = await readTurn(asResponse(answer), chunks, controller.signal, alive, say);
			const turn = assembler.finish();
			const decision = complete ? turn.decision : cutOff(turn.decision);
			return { ok: true, decision, call_as_text: turn.call_as_text };
		} catch (error) {
			return { ok: false, fault: fault(error, why) };
		} finally {
			clearTimeout(total);
			clearTimeout(idle);
			if (signal instanceof AbortSignal) signal.removeEventListener("abort", cancel);
			controller.abort();
		}
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

/** The stream ended without its end mark, or lost an event: complete-looking arguments may lack their end. */
function cutOff(decision: PlannerDecision): PlannerDecision {
	const clean = decision.finish_reason === "tool_calls" || decision.finish_reason === "stop";
	return clean ? { ...decision, finish_reason: "cut_off" } : decision;
}

function fault(error: unknown, why: Stop | undefined): PlannerFault {
	if (why === "cancelled") return { code: "planner_error", message: "the plan was cancelled", retryable: false };
	if (why === "total")
		return { code: "planner_timeout", message: "the planner took longer than its turn has left", retryable: false };
	if (why === "idle") return { code: "planner_timeout", message: "the planner's stream went silent", retryable: true };
	return error instanceof StreamBroken ? brokenFault(error.body) : bindingFault(error);
}
