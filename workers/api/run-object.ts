/**
 * The way from a route to a run's object. A stub breaks when its object is reset by a deploy or overload (C05): a read is
 * asked once more on a fresh stub; a write is not, because nobody can tell whether it was applied, and answers 503 with
 * Retry-After (creating and deciding are repeatable by key). Never caches a stub. Called by every route that names a run.
 */

import { runPart } from "#core/ids.ts";
import type { AgentRunApi, Problem, Reply } from "#objects/agent-run/api.ts";
import type { Env } from "./env.ts";
import { ApiProblem, notFound, problem } from "./problem.ts";

/** How soon a client may try again: a reset object is back within about a second. */
const RETRY_AFTER_S = 2;

export function runStub(env: Env, runId: string): AgentRunApi {
	return env.AGENT_RUN.getByName(runId) as unknown as AgentRunApi;
}

/** Asks a run; its problem becomes this request's. `runId` is checked here: what is no run id reaches no object. */
export async function askRun<T>(
	env: Env,
	runId: string,
	kind: "read" | "write",
	ask: (run: AgentRunApi) => Promise<Reply<T>>,
): Promise<T> {
	if (runPart(runId) === undefined) throw notFound();
	for (let attempt = 1; ; attempt++) {
		try {
			const reply = await ask(runStub(env, runId));
			if (reply.ok) return reply.value;
			throw fromRun(reply.problem);
		} catch (error) {
			if (error instanceof ApiProblem) throw error;
			if (kind === "write" || attempt > 1) throw unavailable(error);
		}
	}
}

/** A problem that a run answered, as it goes to the client. */
export function fromRun(found: Problem): ApiProblem {
	return new ApiProblem(found.status, found.code, found.detail, {
		...(found.errors === undefined ? {} : { errors: found.errors }),
		...(found.retry_after_s === undefined ? {} : { retry_after_s: found.retry_after_s }),
		...(found.extra === undefined ? {} : { extra: found.extra }),
	});
}

export function unavailable(error: unknown): ApiProblem {
	console.error(
		JSON.stringify({
			level: "warn",
			what: "run object unreachable",
			error: error instanceof Error ? error.name : typeof error,
		}),
	);
	return problem("run_unavailable", "the run cannot be reached just now; try again", { retry_after_s: RETRY_AFTER_S });
}
