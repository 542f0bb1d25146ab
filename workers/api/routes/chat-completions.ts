/**
 * `POST /v1/chat/completions`: Belay as the model behind a stock OpenAI client. The request's words go to a managed run, whose
 * governed tools Belay runs itself; what the run answers comes back as the assistant's message. Calls of the caller's own
 * tools come back as `tool_calls`, and the request with their results goes on. Errors of this route have OpenAI's shape.
 */

import { handedOut } from "../chat/caller-tools.ts";
import { chatError, onChatError } from "../chat/chat-problem.ts";
import { chatRequest, IGNORED } from "../chat/chat-request.ts";
import { chatTurn } from "../chat/chat-turn.ts";
import { chatCompletion, completion, headOf, usageSince } from "../chat/completion.ts";
import { completionStream } from "../chat/completion-stream.ts";
import { finalText } from "../chat/final-text.ts";
import { rested } from "../chat/rested.ts";
import { spoken } from "../chat/spoken.ts";
import { STREAM_HEADERS } from "../event-stream.ts";
import { noun } from "../noun.ts";

export const chat = noun("/v1/chat", "Chat");
chat.app.onError(onChatError);

chat.post(
	"/completions",
	{
		summary:
			"a chat completion for OpenAI clients, with the governed tools run on the way and calls of the caller's own `tools` handed back; `stream: true` answers `text/event-stream`",
		access: { who: "caller" },
		body: chatRequest,
		headers: ["Idempotency-Key", "belay-run-id"],
		answers: { 200: chatCompletion },
		failure: chatError,
	},
	async (c, body) => {
		const messages = spoken(body);
		const live = body.stream === true;
		const { run, before, base_turn, socket } = await chatTurn(c, body, messages, live);
		const { signal } = c.req.raw;
		const ignored = IGNORED.filter((name) => (body[name] ?? null) !== null);
		c.header("belay-run-id", run.run_id);
		if (ignored.length > 0) c.header("belay-ignored-parameters", ignored.join(", "));
		const head = headOf(run, Date.now());
		const done = rested(c.env, c.get("caller"), run, signal);
		const usageOf = (one: typeof run) => usageSince(before?.usage ?? null, one.usage);
		if (!live) {
			const found = await done;
			return c.json(completion(head, finalText(found), handedOut(found), usageOf(found)));
		}
		const wanted = body.stream_options?.include_usage === true ? usageOf : undefined;
		const stream = completionStream({
			head,
			socket,
			base_turn,
			rested: done,
			usageOf: wanted,
			signal,
		});
		return c.body(stream, 200, STREAM_HEADERS);
	},
);
