/**
 * The managed planner over any OpenAI-compatible API (L1), DeepSeek by default. Sends exactly what it is given, streams,
 * and puts the turn together with core's assembler: the library's own accumulation trusts indices and repairs. It asks
 * once; retries belong to the run, which knows its clocks. Called by the run object.
 */
import type OpenAI from "openai";
import { createAssembler } from "#core/planner/assembler.ts";
import { type StrictMode, strictOf } from "#core/planner/strict-schema.ts";
import type { CancelSignal, Planner, PlannerFault, PlannerRequest } from "#core/ports.ts";
import { type Bounds, boundedTurn, cutOff, type Planned } from "./bounded-turn.ts";
import { statusFault, streamFault } from "./provider-fault.ts";
import { readTurn, StreamBroken } from "./read-turn.ts";
import { untilAborted } from "./until-aborted.ts";

export type OpenAiPlannerConfig = {
	/** Missing or empty: every plan is answered `planner_unavailable`. */
	readonly apiKey: string | null | undefined;
	readonly baseUrl?: string | undefined;
	readonly model?: string | undefined;
	/** Whether the provider has strict mode, and how it takes it. */
	readonly strict?: StrictMode | undefined;
	/** Silence on the open stream, or before its headers, that counts as a stall. */
	readonly idleMs?: number | undefined;
	/** The platform's own by default. */
	readonly fetch?: typeof fetch | undefined;
};

const PLANNER_BASE_URL_DEFAULT = "https://api.deepseek.com";
const PLANNER_MODEL_DEFAULT = "deepseek-flash";

export class OpenAiPlanner implements Planner {
	readonly #config: OpenAiPlannerConfig;
	readonly #baseUrl: string;
	#client: OpenAI | undefined;

	constructor(config: OpenAiPlannerConfig) {
		this.#config = config;
		this.#baseUrl = config.baseUrl || PLANNER_BASE_URL_DEFAULT;
	}

	/** One turn. Never throws; `request.timeout_ms` bounds all of it. */
	async plan(
		request: PlannerRequest,
		signal: CancelSignal,
		onDelta: (delta: { content: string }) => void,
	): Promise<Planned> {
		const key = this.#config.apiKey?.trim();
		if (!key)
			return {
				ok: false,
				fault: { code: "planner_unavailable", message: "no planner key is configured", retryable: false },
			};
		const turn = async ({ signal: stopped, alive, say }: Bounds): Promise<Planned> => {
			const response = await untilAborted(this.#ask(key, request, stopped), stopped);
			alive();
			const assembler = createAssembler(request.functions.map((one) => one.name));
			const complete = await readTurn(response, assembler, stopped, alive, say);
			const { decision, call_as_text } = assembler.finish();
			return { ok: true, decision: complete ? decision : cutOff(decision), call_as_text };
		};
		return boundedTurn(request, signal, onDelta, this.#config.idleMs, turn, (error) => fault(error, key));
	}

	async #ask(key: string, request: PlannerRequest, signal: AbortSignal): Promise<Response> {
		// 65 ms of start-up CPU: paid by the first planned turn, not by every isolate.
		if (this.#client === undefined) {
			const { default: Client } = await import("openai");
			this.#client = new Client({
				apiKey: key,
				baseURL: this.#baseUrl,
				maxRetries: 0,
				// The library reads these from the environment otherwise: meant for another provider, they would leak to this one.
				organization: null,
				project: null,
				adminAPIKey: null,
				webhookSecret: null,
				// It logs requests, keys and bodies when an environment variable says so.
				logLevel: "off",
				// A redirect would take the key to wherever it points.
				fetchOptions: { redirect: "manual" },
				...(this.#config.fetch === undefined ? {} : { fetch: this.#config.fetch }),
			});
		}
		const body = this.#body(request);
		return await this.#client.chat.completions
			.create(body, { signal, timeout: Math.max(1, request.timeout_ms), maxRetries: 0 })
			.asResponse();
	}

	#body(request: PlannerRequest): OpenAI.ChatCompletionCreateParamsStreaming {
		const strict = strictOf(request.functions, this.#config.strict ?? "off");
		const tools = request.functions.map(({ name, description, parameters }, at) => ({
			type: "function" as const,
			function: { name, description, parameters, ...(strict[at] ? { strict: true } : {}) },
		}));
		const body = {
			model: request.model ?? this.#config.model ?? PLANNER_MODEL_DEFAULT,
			messages: request.messages,
			// An empty list is refused by several providers.
			...(tools.length === 0 ? {} : { tools }),
			stream: true,
			stream_options: { include_usage: true },
			// Isolates caches per tenant; DeepSeek names it `user_id`, others refuse that name.
			[this.#baseUrl.includes("deepseek") ? "user_id" : "user"]: request.user,
		};
		// `reasoning_content` and `user_id` are DeepSeek's: the library's types do not have them, the wire does.
		return body as unknown as OpenAI.ChatCompletionCreateParamsStreaming;
	}
}

async function fault(error: unknown, key: string): Promise<PlannerFault> {
	if (error instanceof StreamBroken) return streamFault(error.body, key);
	const { APIError, APIConnectionTimeoutError } = await import("openai");
	if (error instanceof APIConnectionTimeoutError)
		return { code: "planner_timeout", message: "the planner did not answer in time", retryable: true };
	if (error instanceof APIError && typeof error.status === "number")
		return statusFault(error.status, error.error, error.headers ?? new Headers(), key);
	// A thrown fetch: refused, reset and lost connections look alike, and nothing has run.
	return { code: "planner_error", message: "no connection to the planner's provider", retryable: true };
}
