/** The managed planner of a run, asked for one turn. Which kinds this deployment has is said before a run begins. */
import { OpenAiPlanner } from "#adapters/openai/openai-planner.ts";
import { functionDefinition } from "#core/exposure/definitions.ts";
import type { Json } from "#core/json.ts";
import { conversation } from "#core/planner/conversation.ts";
import { toPlannerDecision } from "#core/planner/decision.ts";
import type { PlannerFault, PlannerRequest } from "#core/ports.ts";
import type { CompiledTool } from "#core/registry/compile.ts";
import { definitionsOf } from "#core/run/caller-functions.ts";
import type { PlanFailed, Planned } from "#core/run/event.ts";
import type { PlannerKind, RunState } from "#core/run/state.ts";
import type { RunStore } from "./store.ts";

export type PlanOutcome = Omit<Planned, "world"> | PlanFailed;

/** Why a run with this planner cannot begin here, or null. */
export function plannerMissing(env: Env, kind: PlannerKind): string | null {
	if (kind === "openai" && (env.BELAY_PLANNER_API_KEY ?? "") === "") {
		return "no key for the planner is configured (BELAY_PLANNER_API_KEY); use planner kind `scripted` or `external`";
	}
	if (kind === "workers_ai")
		return "this deployment has no Workers AI binding; use planner kind `openai`, `scripted` or `external`";
	return null;
}

export type PlanWorld = {
	readonly env: Env;
	readonly store: RunStore;
	readonly tool: (definition_hash: string) => CompiledTool;
	readonly turn_left_ms: number;
	readonly user: string;
	readonly onDelta: (content: string) => void;
};

export async function planTurn(state: RunState, world: PlanWorld, signal: AbortSignal): Promise<PlanOutcome> {
	const { turn, planner } = state.run;
	return planner.kind === "scripted" ? scripted(state, world.store) : managed(state, world, turn, signal);
}

function scripted(state: RunState, store: RunStore): PlanOutcome {
	const { turn, script } = state.run;
	const wire = store.script(script.at);
	if (wire === undefined) {
		const fault: PlannerFault = {
			code: "planner_error",
			message: `the script holds ${script.length} decisions and all were played`,
			retryable: false,
		};
		return { kind: "plan_failed", turn, fault };
	}
	const results = new Map([...store.results()].map(([id, call]) => [id, (call.result ?? null) as Json]));
	return { kind: "planned", turn, decision: toPlannerDecision(wire), call_as_text: false, results };
}

async function managed(state: RunState, world: PlanWorld, turn: number, signal: AbortSignal): Promise<PlanOutcome> {
	const { env, store, tool } = world;
	const request: PlannerRequest = {
		model: state.run.planner.model,
		messages: conversation(null, store.messages()),
		functions: [
			...(state.exposure?.tools ?? []).map((exposed) =>
				functionDefinition(tool(exposed.definition_hash).version, exposed.function_name),
			),
			...definitionsOf(state.run, state.exposure),
		],
		user: world.user,
		timeout_ms: world.turn_left_ms,
	};
	const planner = new OpenAiPlanner({
		baseUrl: env.BELAY_PLANNER_BASE_URL,
		apiKey: env.BELAY_PLANNER_API_KEY,
		model: env.BELAY_PLANNER_MODEL,
	});
	const answer = await planner.plan(request, signal, (delta) => world.onDelta(delta.content));
	if (!answer.ok) return { kind: "plan_failed", turn, fault: answer.fault };
	return { kind: "planned", turn, decision: answer.decision, call_as_text: answer.call_as_text, results: null };
}
