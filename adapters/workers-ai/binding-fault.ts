/**
 * Turns what the Workers AI binding threw, or reported inside a stream, into a planner fault: whether asking again can
 * help, and a message that is safe to store and to show. Called by the Workers AI planner.
 */
import { maskText } from "#core/data/mask.ts";
import { own } from "#core/json.ts";
import type { PlannerFault } from "#core/ports.ts";

const MESSAGE_MAX_CHARS = 200;

/**
 * The internal codes that the platform documents; the binding throws an error that has nothing but them at the head of
 * its message (`5007: No such model …`, also behind a class name). A code that is not listed may be repeated: nothing of
 * the turn has run.
 */
const REJECTED: ReadonlyMap<string, string> = new Map([
	["5007", "the model does not exist"],
	["3042", "the model's name is not valid"],
	["5004", "the request is not valid for the model"],
	["3003", "the request is incomplete"],
	["3006", "the request is too large for the model"],
	["3039", "the model's fine-tune is incomplete"],
	["5005", "the model does not support this request"],
	["5018", "the account may not use the model"],
	["3041", "the account may not use the model"],
	["5016", "the model's terms have not been accepted"],
	["3023", "the account is blocked"],
	["5019", "the binding's version is no longer supported"],
	["3036", "the account has used its allocation"],
]);

export function bindingFault(error: unknown): PlannerFault {
	const said = error instanceof Error ? error.message : typeof error === "string" ? error : "";
	const code = codeOf(error, said);
	const known = REJECTED.get(code ?? "");
	if (known !== undefined)
		return {
			code: "planner_rejected",
			message: `Workers AI refused the request: ${known} (${code})`,
			retryable: false,
		};
	if (code === "3007" || code === "3008")
		return { code: "planner_timeout", message: `Workers AI did not answer in time (${code})`, retryable: true };
	if (code === "3040")
		return { code: "planner_error", message: "Workers AI has no capacity at present (3040)", retryable: true };
	return { code: "planner_error", message: `Workers AI failed${shown(said)}`, retryable: true };
}

/** An error object inside a stream that began well. */
export function brokenFault(body: unknown): PlannerFault {
	const inner = own(body, "error") ?? body;
	const first = Array.isArray(inner) ? inner[0] : inner;
	const message = own(first, "message") ?? first;
	const code = own(first, "code");
	const text = typeof message === "string" ? message : "";
	return bindingFault(new Error(typeof code === "number" ? `${code}: ${text}` : text));
}

function codeOf(error: unknown, said: string): string | undefined {
	// The code stands first, or behind names that end in a colon; a number further on is somebody's text.
	const found = /^(?:[A-Za-z]{1,40}: ?){0,3}(\d{4})(?::|$)/.exec(said)?.[1];
	const own_code = own(error, "code");
	return found ?? (typeof own_code === "number" ? String(own_code) : undefined);
}

function shown(said: string): string {
	const line = said
		.replace(/\s+/g, " ")
		.trim()
		.slice(0, 4 * MESSAGE_MAX_CHARS);
	return line === "" ? "" : `: ${maskText(line).slice(0, MESSAGE_MAX_CHARS).toWellFormed()}`;
}
