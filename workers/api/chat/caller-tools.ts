/**
 * The caller's own tools in a chat request: what it offers, what it answers, and which run its calls are of. An id of a call
 * embeds its run (decision 23), so a client that sends nothing else goes on with it; whether the run is the caller's, and the
 * call one that waits for it, is judged by the run's object alone.
 */
import { findIllFormed } from "#core/data/well-formed.ts";
import { runOf } from "#core/ids.ts";
import type { Json, JsonObject } from "#core/json.ts";
import { CALLER_FUNCTIONS_MAX_BYTES } from "#core/limits.ts";
import type { FunctionDefinition } from "#core/ports.ts";
import type { RunView } from "#core/run/view.ts";
import { type ApiProblem, invalidField, problem } from "../problem.ts";
import type { ChatMessage, ChatRequest } from "./chat-request.ts";
import type { ToolCall } from "./completion.ts";
import { textOf } from "./spoken.ts";

/** A function without parameters takes none. */
const NO_PARAMETERS: JsonObject = { type: "object", properties: {} };

/** What the request offers the planner. Throws 422. */
export function callerFunctions(body: ChatRequest): FunctionDefinition[] {
	const functions = (body.tools ?? []).map(({ function: one }) => ({
		name: one.name,
		description: one.description ?? "",
		parameters: one.parameters ?? NO_PARAMETERS,
	}));
	const names = new Set<string>();
	for (const [index, { name }] of functions.entries()) {
		if (names.has(name))
			throw invalidField(
				`/tools/${index}/function/name`,
				"not_unique",
				"two functions have one name",
				"each name once",
			);
		names.add(name);
	}
	const broken = findIllFormed(functions as unknown as Json);
	if (broken !== undefined)
		throw invalidField(`/tools${broken}`, "format_invalid", "text holds half a character", "well-formed Unicode");
	if (new TextEncoder().encode(JSON.stringify(functions)).byteLength > CALLER_FUNCTIONS_MAX_BYTES)
		throw invalidField(
			"/tools",
			"too_large",
			"the functions are too large",
			`at most ${CALLER_FUNCTIONS_MAX_BYTES} bytes`,
		);
	return functions;
}

type Answer = { readonly tool_call_id: string; readonly content: string };

/** Results behind the last assistant's message: they answer what waits. Older ones are in the run's own record. */
export function answersOf(body: ChatRequest): Answer[] {
	const behind = body.messages.findLastIndex(({ role }) => role === "assistant") + 1;
	return body.messages.flatMap((message, index) => {
		if (index < behind || message.role !== "tool") return [];
		const { tool_call_id } = message;
		if (runOfCall(tool_call_id) === undefined) throw unknownCall(`/messages/${index}/tool_call_id`);
		return [{ tool_call_id, content: textOf(message.content, index) }];
	});
}

/** The run of the last call that the request speaks of; null when it speaks of none. Throws 422 when no run made them. */
export function runOfCalls(body: ChatRequest): string | null {
	let stranger: string | null = null;
	for (const [index, message] of [...body.messages.entries()].reverse()) {
		for (const { id, at } of idsOf(message)) {
			const run_id = runOfCall(id);
			if (run_id !== undefined) return run_id;
			stranger ??= `/messages/${index}${at}`;
		}
	}
	if (stranger !== null) throw unknownCall(stranger);
	return null;
}

function idsOf(message: ChatMessage): { id: string; at: string }[] {
	if (message.role === "tool") return [{ id: message.tool_call_id, at: "/tool_call_id" }];
	if (message.role !== "assistant") return [];
	return (message.tool_calls ?? []).map(({ id }, n) => ({ id, at: `/tool_calls/${n}/id` }));
}

const runOfCall = (id: string): string | undefined => (id.startsWith("call_") ? runOf(id) : undefined);

function unknownCall(field: string): ApiProblem {
	const error = "no run here made this call";
	const expected = "ids of calls that an answer of this endpoint handed out";
	const hint = "leave calls and results of another provider out of the history";
	return problem("unknown_tool_call", error, { errors: [{ error, field, issue: "unknown_name", expected, hint }] });
}

/** Calls that a run at rest hands to its caller; none unless it waits for them. */
export function handedOut(run: RunView): ToolCall[] {
	if (run.status !== "awaiting_caller") return [];
	return run.caller_calls.map(({ tool_call_id, function_name, arguments: args }) => ({
		id: tool_call_id,
		type: "function",
		// as they were parsed and hashed: of a name sent twice, a client might read the other value
		function: { name: function_name, arguments: JSON.stringify(args) },
	}));
}
