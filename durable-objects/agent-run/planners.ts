/** The managed planner of a run, asked for one turn. Which kinds this deployment has is said before a run begins. */
import { sha256 } from "#adapters/digest.ts";
import { OpenAiPlanner } from "#adapters/openai/openai-planner.ts";
import { type AiBinding, WORKERS_AI_MODEL_DEFAULT, WorkersAiPlanner } from "#adapters/workers-ai/workers-ai-planner.ts";
import { functionDefinition } from "#core/exposure/definitions.ts";
import type { Json } from "#core/json.ts";
import { conversation } from "#core/planner/conversation.ts";
import { toPlannerDecision } from "#core/planner/decision.ts";
import { spotlightMark, withoutMarks } from "#core/planner/spotlight.ts";
import { strictMode } from "#core/planner/strict-schema.ts";
import { requestTokens } from "#core/planner/token-estimate.ts";
import type { Planner, PlannerFault, PlannerRequest } from "#core/ports.ts";
import type { CompiledTool } from "#core/registry/compile.ts";
import { definitionsOf } from "#core/run/caller-functions.ts";
import type { PlanFailed, Planned } from "#core/run/event.ts";
import type { PlannerKind, RunState } from "#core/run/state.ts";
import { fitContext } from "./fit-context.ts";
import type { RunStore } from "./store.ts";

export type PlanOutcome = Omit<Planned, "world"> | PlanFailed;

/** Why a run with this planner cannot begin here, or null. */
export function plannerMissing(env: Env, kind: PlannerKind): string | null {
	if (kind === "openai" && (env.BELAY_PLANNER_API_KEY ?? "") === "") {
		return "no key for the planner is configured here (BELAY_PLANNER_API_KEY); only runs with planner kind `scripted` or `external` can begin";
	}
	if (kind === "openai" && strictMode(env.BELAY_PLANNER_STRICT ?? "") === undefined) return BAD_STRICT;
	const model = kind === "openai" || kind === "workers_ai";
	if (model && requestTokens(null, env.BELAY_PLANNER_CONTEXT_TOKENS ?? "") === null) return BAD_CONTEXT;
	if (kind === "workers_ai" && aiOf(env) === undefined)
		return "this deployment has no Workers AI binding; use planner kind `openai`, `scripted` or `external`";
	return null;
}

export type PlanWorld = {
	readonly env: Env;
	readonly store: RunStore;
	readonly tool: (definition_hash: string) => CompiledTool;
	readonly onDelta: (content: string) => void;
};

/** Asks the run's planner for its present turn. Never throws: a run whose planner is lost would wait for its clock. */
export async function planTurn(state: RunState, world: PlanWorld, signal: AbortSignal): Promise<PlanOutcome> {
	const { turn, planner } = state.run;
	try {
		return planner.kind === "scripted" ? scripted(state, world.store) : await managed(state, world, turn, signal);
	} catch (error) {
		return planThrew(state.run, error, "asked");
	}
}

/** The end of a turn that was lost to a fault of Belay's own, while it was asked for or when it was taken in. */
export function planThrew({ run_id, turn }: RunState["run"], error: unknown, doing: "asked" | "heard"): PlanFailed {
	// What it says may hold anything of the run; its name is enough to look for, and the run is told nothing of it.
	const name = error instanceof Error ? error.name : typeof error;
	console.error(JSON.stringify({ level: "error", what: `planner could not be ${doing}`, run_id, error: name }));
	return failed(turn, "planner_error", `the planner could not be ${doing}: an internal error; start a new run`);
}

function scripted(state: RunState, store: RunStore): PlanOutcome {
	const { turn, script, replay } = state.run;
	const entry = store.script(script.at);
	if (entry === undefined) {
		if (replay !== undefined) return failed(turn, "planner_error", "the recording ends here, without an answer");
		return failed(turn, "planner_error", `the script holds ${script.length} decisions and all were played`);
	}
	const results =
		replay?.placeholders === false
			? null
			: new Map([...store.results()].map(([id, call]) => [id, (call.result ?? null) as Json]));
	const played = { kind: "planned", turn, call_as_text: false, results } as const;
	if (!("decision" in entry)) return { ...played, decision: toPlannerDecision(entry) };
	const { decision, calls: recorded, said } = entry;
	return { ...played, decision: toPlannerDecision(decision), recorded, said };
}

/** The planner of a kind, and the model whose context it has; its default is the deployment's, or the binding's own. */
function plannerOf(env: Env, { kind, model }: RunState["run"]["planner"]): { planner: Planner; model: string } {
	if (kind === "workers_ai")
		return { planner: new WorkersAiPlanner({ ai: aiOf(env) }), model: model ?? WORKERS_AI_MODEL_DEFAULT };
	const { BELAY_PLANNER_BASE_URL: baseUrl, BELAY_PLANNER_API_KEY: apiKey, BELAY_PLANNER_MODEL: own } = env;
	const strict = strictMode(env.BELAY_PLANNER_STRICT ?? "");
	return { planner: new OpenAiPlanner({ baseUrl, apiKey, model: own, strict }), model: model ?? own };
}

/** Workers AI where the deployment has it: its section of wrangler.toml may be left out, and `npm start` leaves it out. */
const aiOf = (env: Env): AiBinding | undefined => (env as { readonly AI?: unknown }).AI as AiBinding | undefined;

/** A planner whose turns and text come without the marks that it was shown. */
const markless = (planner: Planner, mark: string): Planner => ({
	plan: async (request, signal, onDelta) => {
		const answer = await planner.plan(request, signal, ({ content }) =>
			onDelta({ content: content.replaceAll(mark, "") }),
		);
		return answer.ok ? { ...answer, decision: withoutMarks(answer.decision, mark) } : answer;
	},
});

async function managed(state: RunState, world: PlanWorld, turn: number, signal: AbortSignal): Promise<PlanOutcome> {
	const { env, store, tool } = world;
	const { run } = state;
	const mark = run.planner.spotlight === true ? spotlightMark(run.run_id) : null;
	const { planner: asked, model } = plannerOf(env, run.planner);
	const planner = mark === null ? asked : markless(asked, mark);
	const functions = [
		...(state.exposure?.tools ?? []).map((exposed) =>
			functionDefinition(tool(exposed.definition_hash).version, exposed.function_name),
		),
		...definitionsOf(run, state.exposure),
	];
	const { turn_spent_ms, since } = run.clocks;
	const spent = turn_spent_ms + (since === null ? 0 : Date.now() - since);
	const base = {
		model: run.planner.model,
		// A provider tells one tenant's abuse from another's by it, and learns nothing else.
		user: sha256(run.tenant_id).slice(0, 32),
		timeout_ms: Math.max(1, run.limits.turn_timeout_ms - spent),
	};
	const limit_tokens = requestTokens(model, env.BELAY_PLANNER_CONTEXT_TOKENS ?? "");
	if (limit_tokens === null) return failed(turn, "planner_unavailable", BAD_CONTEXT);
	const started = Date.now();
	const whole = { messages: conversation(null, store.messages(), mark), functions, limit_tokens, model, mark };
	const fitted = await fitContext(whole, run, planner, base, signal);
	if (!fitted.fits) return failed(turn, "planner_rejected", tooLarge(fitted.tokens, limit_tokens));
	const { messages, compacted } = fitted;
	const timeout_ms = Math.max(1, base.timeout_ms - (Date.now() - started));
	const request: PlannerRequest = { ...base, messages, functions, timeout_ms };
	const answer = await planner.plan(request, signal, (delta) => world.onDelta(delta.content));
	if (!answer.ok) return { kind: "plan_failed", turn, fault: answer.fault, compacted };
	return {
		kind: "planned",
		turn,
		decision: answer.decision,
		call_as_text: answer.call_as_text,
		results: null,
		compacted,
	};
}

const BAD_STRICT = "BELAY_PLANNER_STRICT is not `each` or `all`; mend it or leave it empty";
const BAD_CONTEXT = "BELAY_PLANNER_CONTEXT_TOKENS is not a whole number of at least 4096; mend it or leave it empty";

const tooLarge = (tokens: number, limit: number): string =>
	`the conversation is larger than the model's context even without its older part: about ${tokens} tokens of ${limit}; begin a new run with a shorter goal, or let the tools answer with less at a time`;

const failed = (turn: number, code: PlannerFault["code"], message: string): PlanFailed => ({
	kind: "plan_failed",
	turn,
	fault: { code, message, retryable: false },
});
