/**
 * What a chat request says, as a run takes it: plain text by user, system and assistant (decision 39). Refuses everything
 * by which a caller could speak for a tool: its own tools, calls in an assistant's message, tool results. Called by
 * `routes/chat-completions.ts`.
 */
import { ApiProblem, invalidField } from "../problem.ts";
import { TEXT_MAX_CHARS } from "../wire/create-run.ts";
import type { ChatMessage, ChatRequest } from "./chat-request.ts";

export type Said = { readonly role: "user" | "system" | "assistant"; readonly content: string };

/** The request's messages as text, empty ones left out. Throws 422. */
export function spoken(body: ChatRequest): Said[] {
	refuseTools(body);
	return body.messages.flatMap((message, index) => {
		const one = said(message, index);
		return one.content === "" ? [] : [one];
	});
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

function said(message: ChatMessage, index: number): Said {
	if (message.role === "tool" || message.role === "function") throw unsupported(`/messages/${index}/role`);
	const role = message.role === "developer" ? "system" : message.role;
	const content = message.content ?? "";
	const text = typeof content === "string" ? content : content.map((part) => part.text).join("\n");
	if (text.length > TEXT_MAX_CHARS) throw tooLong(`/messages/${index}/content`);
	return { role, content: text };
}

function refuseTools(body: ChatRequest): void {
	for (const name of ["tools", "functions"] as const) if ((body[name] ?? []).length > 0) throw unsupported(`/${name}`);
	for (const name of ["tool_choice", "function_call"] as const) {
		const choice = body[name] ?? "auto";
		// `none` and `required` speak of tools that the caller brought; the governed ones are not its to switch
		if (choice !== "auto")
			throw invalidField(`/${name}`, "enum_out_of_range", "the tools are Belay's to offer", "`auto`, or nothing");
	}
	for (const [index, message] of body.messages.entries()) {
		if (message.role !== "assistant") continue;
		if ((message.tool_calls ?? []).length > 0) throw unsupported(`/messages/${index}/tool_calls`);
		if ((message.function_call ?? null) !== null) throw unsupported(`/messages/${index}/function_call`);
	}
}

function unsupported(field: string): ApiProblem {
	const error = "tools of the caller are not taken here; register them with Belay, or leave them out";
	return new ApiProblem(422, "caller_tools_unsupported", error, {
		errors: [{ error, field, issue: "schema_violation", expected: "no tools, calls or tool results", hint: "" }],
	});
}

const tooLong = (field: string): ApiProblem =>
	invalidField(field, "too_large", "the text is too long", `at most ${TEXT_MAX_CHARS} characters`);
