/**
 * The caller's answers to calls of its own functions, on their way into the run. Only the run's principal gives them: a
 * person who may steer a run does not speak for the machine that runs its functions. Used by the AgentRun object.
 */
import { mayAnswer } from "#core/policy/run-access.ts";
import type { RunView } from "#core/run/view.ts";
import type { AgentRunApi, Reply } from "./api.ts";
import { notFound, refusal } from "./replies.ts";
import type { Runtime } from "./runtime.ts";
import { runView } from "./views.ts";

export async function answerCalls(
	runtime: Runtime,
	ask: Parameters<AgentRunApi["answer"]>[0],
): Promise<Reply<RunView>> {
	const found = await runtime.ready();
	if (found === null || !mayAnswer(ask.caller, found.run)) return notFound();
	const world = await runtime.world(true);
	const { content, caller_functions } = ask;
	const answers = ask.answers.map((one) => ({ ...one, call: runtime.store.call(one.tool_call_id) ?? null }));
	const { problem } = runtime.step({ kind: "answered", answers, content, caller_functions, world });
	if (problem !== null) return refusal(problem);
	return { ok: true, value: runView(runtime.state ?? found, runtime.store, runtime.recent.list()) };
}
