/**
 * What a caller says to a run, as its event. Its answers to calls of its own functions are only the run's principal's to give:
 * a person who may steer a run does not speak for the machine that runs its functions. Used by the AgentRun object.
 */
import { mayAnswer } from "#core/policy/run-access.ts";
import type { Said } from "#core/run/event.ts";
import type { World } from "#core/run/state.ts";
import type { RunView } from "#core/run/view.ts";
import type { AgentRunApi, Reply, Say } from "./api.ts";
import { notFound, refusal } from "./replies.ts";
import type { Runtime } from "./runtime.ts";
import type { RunStore } from "./store.ts";
import { runView } from "./views.ts";

export async function answerCalls(
	runtime: Runtime,
	ask: Parameters<AgentRunApi["answer"]>[0],
): Promise<Reply<RunView>> {
	const found = await runtime.ready();
	if (found === null || !mayAnswer(ask.caller, found.run)) return notFound();
	const world = await runtime.world(true);
	const { content, caller_functions } = ask;
	const system = newInstructions(runtime.store, ask.system);
	const answers = ask.answers.map((one) => ({ ...one, call: runtime.store.call(one.tool_call_id) ?? null }));
	const { problem } = runtime.step({ kind: "answered", answers, content, caller_functions, system, world });
	if (problem !== null) return refusal(problem);
	return { ok: true, value: runView(runtime.state ?? found, runtime.store, runtime.recent.list()) };
}

export function saidEvent({ store }: Runtime, ask: Say, world: World): Said {
	const { content, caller_functions } = ask;
	return { kind: "said", content, caller_functions, system: newInstructions(store, ask.system), world };
}

/**
 * A chat client sends its instructions with every request, and others when one agent hands over to another. What the run
 * holds last and the request begins with is known; the rest is new, a text that came before among them.
 */
function newInstructions(store: RunStore, given: readonly string[] = []): readonly string[] | undefined {
	if (given.length === 0) return undefined;
	const held = store.messages().flatMap(({ role, content }) => (role === "system" ? [content] : []));
	let known = Math.min(held.length, given.length);
	while (!given.slice(0, known).every((text, at) => held[held.length - known + at] === text)) known -= 1;
	return given.slice(known);
}
