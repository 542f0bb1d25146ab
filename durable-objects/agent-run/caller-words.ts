/**
 * What a caller says to a run, as its event. Its answers to calls of its own functions are only the run's principal's to give:
 * a person who may steer a run does not speak for the machine that runs its functions. Used by the AgentRun object.
 */
import { sha256 } from "#adapters/digest.ts";
import { canonicalJson, wellFormed } from "#core/json.ts";
import { mayAnswer } from "#core/policy/run-access.ts";
import type { RunView } from "#core/run/view.ts";
import type { AgentRunApi, AnswerCalls, Problem, Reply, Say } from "./api.ts";
import { no, notFound, refusal } from "./replies.ts";
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
	const key = answersKey(ask.answers);
	const words = sha256(content ?? "");
	const { problem, rows } = runtime.step(
		{ kind: "answered", answers, content, caller_functions, system, world },
		{ after: () => content !== null && runtime.store.rememberRequest(key, words, 0) },
	);
	if (problem !== null) return refusal(problem);
	// The answers once more: words that came with them are said already, others are new and must not be lost.
	if (rows.length === 0 && content !== null && runtime.store.request(key)?.hash !== words) {
		const refused = await sayWords(runtime, { ...ask, content, idempotency_key: `${key}:${words}` });
		if (refused !== null) return refused;
	}
	return { ok: true, value: runView(runtime.state ?? found, runtime.store, runtime.recent.list()) };
}

const answersKey = (answers: AnswerCalls["answers"]): string => {
	const pairs = answers.map(({ tool_call_id, content }) => [tool_call_id, wellFormed(content)]);
	return `answer:${sha256(canonicalJson(pairs.sort(([a = ""], [b = ""]) => (a < b ? -1 : 1))))}`;
};

/** The user's words, once per key; null when the run has them. */
export async function sayWords(runtime: Runtime, ask: Say): Promise<{ ok: false; problem: Problem } | null> {
	const world = await runtime.world(true);
	const { store } = runtime;
	const key = ask.idempotency_key === null ? null : `say:${ask.idempotency_key}`;
	const hash = sha256(ask.content);
	const before = key === null ? undefined : store.request(key);
	if (before !== undefined)
		return before.hash === hash
			? null
			: no(409, "idempotency_conflict", "this Idempotency-Key was used for another message");
	const { content, caller_functions } = ask;
	const system = newInstructions(store, ask.system);
	const { problem } = runtime.step(
		{ kind: "said", content, caller_functions, system, world },
		{ after: () => key !== null && store.rememberRequest(key, hash, 0) },
	);
	return problem === null ? null : refusal(problem);
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
