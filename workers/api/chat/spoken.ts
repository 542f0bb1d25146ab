/**
 * What a chat request says, as a run takes it: plain text by user, system and assistant (decision 39). Calls and results are
 * not text: results that answer something are `caller-tools.ts`'s, older ones are in the run's own record. Called by
 * `routes/chat-completions.ts`.
 */
import { wellFormed } from "#core/json.ts";
import { type ApiProblem, invalidField, problem } from "../problem.ts";
import { TEXT_MAX_CHARS } from "../wire/create-run.ts";
import type { ChatContent, ChatMessage, ChatRequest } from "./chat-request.ts";

export type Said = { readonly role: "user" | "system" | "assistant"; readonly content: string };

/** The request's messages as text; of the empty ones, those that made calls, since new words begin behind them. Throws 422. */
export function spoken(body: ChatRequest): Said[] {
	refuseLegacy(body);
	return body.messages.flatMap((message, index) => {
		if (message.role === "tool") return [];
		const one = said(message, index);
		const called = message.role === "assistant" && (message.tool_calls ?? []).length > 0;
		return one.content === "" && !called ? [] : [one];
	});
}

/** Text or text parts of any message, as one text. */
export function textOf(content: ChatContent | null | undefined, index: number): string {
	const given = content ?? "";
	const text = typeof given === "string" ? given : given.map((part) => part.text).join("\n");
	if (text.length > TEXT_MAX_CHARS) throw tooLong(`/messages/${index}/content`);
	// Half a character has no canonical JSON, by which a repeat is known.
	return wellFormed(text);
}

/** A new run's goal is the user's last message; what was said before it is history, which proves nothing. */
export function opening(messages: readonly Said[]): { goal: string; history: readonly Said[] } {
	const last = messages.at(-1);
	if (last?.role !== "user")
		throw invalidField(
			"/messages",
			"semantic_violation",
			"the last message is not a user's text",
			"a `user` message last",
		);
	return { goal: last.content, history: messages.slice(0, -1) };
}

/**
 * What is new to a run that is named: the user's words after the last answer; null when there are none. A request that
 * holds no answer yet and ends with the run's own goal is the first one again, not the same wish a second time.
 */
export function continuation(messages: readonly Said[], goal: string): string | null {
	const answered = messages.findLastIndex(({ role }) => role === "assistant");
	const fresh = messages.slice(answered + 1).filter(({ role }) => role === "user");
	if (fresh.length === 0 || (answered < 0 && fresh.at(-1)?.content === goal)) return null;
	const text = fresh.map(({ content }) => content).join("\n\n");
	if (text.length > TEXT_MAX_CHARS) throw tooLong("/messages");
	return text;
}

function said(message: Exclude<ChatMessage, { role: "tool" }>, index: number): Said {
	if (message.role === "function") throw unsupported(`/messages/${index}/role`);
	const role = message.role === "developer" ? "system" : message.role;
	return { role, content: textOf(message.content, index) };
}

function refuseLegacy(body: ChatRequest): void {
	if ((body.functions ?? []).length > 0) throw unsupported("/functions");
	for (const name of ["tool_choice", "function_call"] as const) {
		const choice = body[name] ?? "auto";
		// the planner chooses among governed functions too, and these are not the caller's to switch or to force
		if (choice !== "auto")
			throw invalidField(`/${name}`, "enum_out_of_range", "the tools are Belay's to offer", "`auto`, or nothing");
	}
	for (const [index, message] of body.messages.entries()) {
		if (message.role === "assistant" && (message.function_call ?? null) !== null)
			throw unsupported(`/messages/${index}/function_call`);
	}
}

function unsupported(field: string): ApiProblem {
	const error = "legacy functions are not taken: their calls have no id that an answer could name";
	return problem("caller_tools_unsupported", error, {
		errors: [{ error, field, issue: "schema_violation", expected: "`tools`, `tool_calls` and role `tool`", hint: "" }],
	});
}

const tooLong = (field: string): ApiProblem =>
	invalidField(field, "too_large", "the text is too long", `at most ${TEXT_MAX_CHARS} characters`);
