/**
 * Reads one answer of a chat-completions endpoint into an assembler: an event stream, or the plain JSON that some
 * gateways send although a stream was asked for. Called by the OpenAI planner.
 */
import { own } from "#core/json.ts";
import type { Assembler } from "#core/planner/assembler.ts";
import { createSseReader } from "./sse.ts";
import { untilAborted } from "./until-aborted.ts";

/** The provider reported an error inside an answer that began well. */
export class StreamBroken extends Error {
	override readonly name = "StreamBroken";
	readonly body: unknown;
	constructor(body: unknown) {
		super("the provider reported an error in its stream");
		this.body = body;
	}
}

/**
 * @param alive called for every piece that arrives, keep-alive comments included
 * @returns whether the answer ended with its end mark and lost nothing on the way
 */
export async function readTurn(
	response: Response,
	assembler: Assembler,
	signal: AbortSignal,
	alive: () => void,
	onDelta: (delta: { content: string }) => void,
): Promise<boolean> {
	const isJson = /^application\/json\b/i.test(response.headers.get("content-type") ?? "");
	const reader = createSseReader();
	const json: string[] = [];
	let jsonChars = 0;
	let whole = true;
	for await (const text of pieces(response, signal)) {
		alive();
		if (isJson) {
			json.push(text);
			jsonChars += text.length;
			if (jsonChars > JSON_MAX_CHARS) return false;
			continue;
		}
		for (const { event, data } of reader.push(text)) {
			if (data.trim() === "[DONE]") return whole;
			const chunk = parse(data);
			// A lost piece can leave arguments that parse and mean something else.
			if (chunk === undefined) whole = false;
			if (event === "error" || hasError(chunk)) throw new StreamBroken(own(chunk, "error") ?? chunk);
			const added = assembler.push(chunk);
			if (added !== "") onDelta({ content: added });
		}
		if (assembler.full || reader.broken) return false;
	}
	return isJson && readWhole(parse(json.join("")), assembler, onDelta);
}

const JSON_MAX_CHARS = 16_777_216;

async function* pieces(response: Response, signal: AbortSignal): AsyncGenerator<string> {
	if (response.body === null) return;
	const reader = response.body.getReader();
	const decoder = new TextDecoder(); // strips a byte order mark, holds back half characters
	try {
		for (;;) {
			const { done, value } = await untilAborted(reader.read(), signal);
			if (done) return;
			yield decoder.decode(value as Uint8Array, { stream: true });
		}
	} finally {
		reader.cancel().catch(() => undefined);
	}
}

function readWhole(body: unknown, assembler: Assembler, onDelta: (delta: { content: string }) => void): boolean {
	if (hasError(body)) throw new StreamBroken(own(body, "error"));
	const choices = own(body, "choices");
	const choice = Array.isArray(choices) ? choices[0] : undefined;
	if (choice === undefined) return false;
	const added = assembler.push({
		choices: [{ index: 0, delta: own(choice, "message"), finish_reason: own(choice, "finish_reason") }],
		usage: own(body, "usage"),
	});
	if (added !== "") onDelta({ content: added });
	return true;
}

const hasError = (chunk: unknown): boolean => {
	const error = own(chunk, "error");
	return error !== undefined && error !== null && error !== false;
};

function parse(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}
