/**
 * What Workers AI models send, as the chunks that core's assembler reads. Newer models send `chat.completion.chunk`
 * already; older ones `{response, tool_calls: [{name, arguments}], usage}` without ids, indices or a finish reason, and
 * some a whole answer at once. It changes shapes only, never text. Called by the Workers AI planner.
 */
import { isJsonObject, type Json, own } from "#core/json.ts";
import type { Assembler } from "#core/planner/assembler.ts";

/**
 * The assembler behind the translation. An older stream ends by `[DONE]` alone, also when it ran into its limit: there
 * only the usage tells (T03), so without a usage below `maxTokens` such a turn counts as cut off and executes nothing.
 */
export function toChunks(assembler: Assembler, maxTokens: number): Assembler {
	let calls = 0;
	return {
		get full() {
			return assembler.full;
		},
		push(chunk) {
			// The REST shape: `{result: …, success: true}`.
			const body = own(chunk, "result") ?? chunk;
			const choices = own(body, "choices");
			if (Array.isArray(choices)) return assembler.push({ ...(body as object), choices: choices.map(streamed) });
			if (!isJsonObject(body)) return "";
			const list = own(body, "tool_calls");
			const tool_calls = Array.isArray(list) ? list.map((raw) => wholeCall(raw, calls++)) : [];
			const usage = own(body, "usage");
			const written = own(usage, "completion_tokens");
			const ended = typeof written === "number";
			return assembler.push({
				choices: [
					{
						index: 0,
						delta: { content: textOf(own(body, "response")), tool_calls },
						finish_reason: ended ? endOf(body, written >= maxTokens, calls > 0) : null,
					},
				],
				...(usage === undefined ? {} : { usage }),
			});
		},
		finish: () => assembler.finish(),
	};
}

/** A choice of a whole answer has its `message`; the assembler reads a `delta`. */
function streamed(choice: Json): Json {
	if (!isJsonObject(choice) || own(choice, "delta") !== undefined) return choice;
	return { ...choice, delta: own(choice, "message") ?? {} };
}

/** `{name, arguments}` is one whole call each; the newer `{id, function}` passes as it is. */
function wholeCall(raw: Json, index: number): Json {
	if (isJsonObject(own(raw, "function"))) return raw;
	return {
		index,
		id: own(raw, "id") ?? "",
		function: { name: own(raw, "name") ?? "", arguments: own(raw, "arguments") ?? null },
	};
}

function endOf(body: Json, full: boolean, called: boolean): string {
	const said = own(body, "finish_reason");
	if (typeof said === "string" && said !== "") return said;
	if (full) return "length";
	return called ? "tool_calls" : "stop";
}

/** Models asked for JSON send an object here. */
const textOf = (response: Json | undefined): string | null =>
	response === undefined || response === null
		? null
		: typeof response === "string"
			? response
			: JSON.stringify(response);
