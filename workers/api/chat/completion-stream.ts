/**
 * A chat completion as server-sent events: `data: {json}` and a blank line each, `data: [DONE]` at the end. The planner's
 * text goes out as it comes; what is answered in the end is the run's word, and whatever the live text lacks of it is sent
 * before the end. A client that does not read gets no live text any more, so that memory stays bounded; one that leaves ends
 * the stream and not the run (docs/decisions/0110). A run that fails ends the stream with an error and without `[DONE]`.
 */
import type { RunView } from "#core/run/view.ts";
import { BUFFER_MAX_BYTES, HEARTBEAT_MS } from "../event-stream.ts";
import { ApiProblem, problem } from "../problem.ts";
import { handedOut } from "./caller-tools.ts";
import { errorOf } from "./chat-problem.ts";
import { chunk, finishReason, type Head, type Usage } from "./completion.ts";
import { finalText } from "./final-text.ts";
import { LiveText } from "./live-text.ts";

export type CompletionStream = {
	readonly head: Head;
	/** Live frames of the run's object; null when none could be had: then the text comes at once, at the end. */
	readonly socket: WebSocket | null;
	/** Turns up to this one are not passed on live. */
	readonly base_turn: number;
	/** The run when it rests, or when waiting has gone on long enough. */
	readonly rested: Promise<RunView>;
	/** Undefined: the client did not ask for usage. */
	readonly usageOf: ((run: RunView) => Usage) | undefined;
	readonly signal: AbortSignal;
};

export function completionStream(about: CompletionStream): ReadableStream<Uint8Array> {
	const { head, socket, signal } = about;
	const encoder = new TextEncoder();
	const live = new LiveText(about.base_turn);
	const unused = about.usageOf === undefined ? undefined : null;
	let heartbeat: ReturnType<typeof setInterval> | undefined;
	let open = true;
	let listening = true;

	const end = (): boolean => {
		if (!open) return false;
		open = false;
		clearInterval(heartbeat);
		try {
			socket?.close(1000, "done");
		} catch {
			// it was closed from the other side
		}
		return true;
	};

	return new ReadableStream<Uint8Array>(
		{
			start(controller) {
				const write = (text: string): void => {
					if (open) controller.enqueue(encoder.encode(text));
				};
				const send = (value: object): void => write(`data: ${JSON.stringify(value)}\n\n`);
				const say = (content: string): void => {
					if (content !== "") send(chunk(head, { content }, null, unused));
				};
				const finish = (): void => {
					if (end()) controller.close();
				};
				const complete = (run: RunView): void => {
					say(live.rest(finalText(run)));
					const calls = handedOut(run);
					for (const [index, one] of calls.entries())
						send(chunk(head, { tool_calls: [{ index, ...one }] }, null, unused));
					send(chunk(head, {}, finishReason(calls), unused));
					if (about.usageOf !== undefined) send(chunk(head, null, null, about.usageOf(run)));
					write("data: [DONE]\n\n");
					finish();
				};

				send(chunk(head, { role: "assistant", content: "" }, null, unused));
				socket?.addEventListener("message", (message) => {
					const piece = listening ? pieceOf(message.data) : undefined;
					if (piece === undefined) return;
					// a client that is behind gets the rest in one piece
					if ((controller.desiredSize ?? 0) <= 0) listening = false;
					else say(live.piece(piece.turn, piece.content));
				});
				socket?.accept();
				heartbeat = setInterval(() => {
					if ((controller.desiredSize ?? 0) > 0) write(": keep-alive\n\n");
				}, HEARTBEAT_MS);
				signal.addEventListener("abort", finish);
				about.rested.then(complete).catch((error: unknown) => {
					send(errorOf(error instanceof ApiProblem ? error : problem("internal", "something went wrong on our side")));
					finish();
				});
			},
			cancel() {
				end();
			},
		},
		new ByteLengthQueuingStrategy({ highWaterMark: BUFFER_MAX_BYTES }),
	);
}

/** The planner's text in a frame; undefined for every other frame. */
function pieceOf(data: unknown): { turn: number; content: string } | undefined {
	if (typeof data !== "string") return undefined;
	let frame: { event?: unknown; data?: { turn?: unknown; content?: unknown } } | null;
	try {
		frame = JSON.parse(data) as typeof frame;
	} catch {
		return undefined;
	}
	const { turn, content } = frame?.data ?? {};
	if (frame?.event !== "message.delta" || typeof turn !== "number" || typeof content !== "string") return undefined;
	return { turn, content };
}
