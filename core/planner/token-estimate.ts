/**
 * How many tokens a planner request costs, before it is sent (L3, L4). A rule of thumb by character, never a tokenizer: it
 * needs no tables, costs one pass, and is used to decide when to compact and what to warn of, never for billing. It errs
 * upward: a compaction too early costs a summary, one too late costs the run.
 * Called by `context-window.ts` and by the run when it opens a turn.
 */
import type { FunctionDefinition, PlannerMessage } from "../ports.ts";

/** `generic` stands for any tokenizer that is not known: the dearer of the two for every kind of character. */
export type TokenFamily = "deepseek" | "openai" | "generic";

/** Hundredths of a token per UTF-16 unit. */
type Rates = { readonly latin: number; readonly mark: number; readonly cjk: number; readonly other: number };

/**
 * `latin`, `cjk`: DeepSeek publishes 0.3 tokens per English and 0.6 per Chinese character; OpenAI four English characters
 * per token and, with o200k, about 0.8 tokens per Chinese one. `mark`: digits and punctuation, which make up much of JSON
 * and merge less (one to three to a token). `other`: scripts and emoji that no vocabulary covers well, up to a token a unit.
 *
 * Against those published rules: exact (to rounding and the frame) on plain English and Chinese, and between 1.0 and 1.7
 * times as much on text of digits and punctuation only, which both rules understate.
 */
const RATES: { readonly [family in TokenFamily]: Rates } = {
	deepseek: { latin: 30, mark: 50, cjk: 60, other: 80 },
	openai: { latin: 25, mark: 42, cjk: 80, other: 80 },
	generic: { latin: 30, mark: 50, cjk: 100, other: 100 },
};
/** What chat templates wrap around each message, call and function. */
const MESSAGE_TOKENS = 6;
const CALL_TOKENS = 10;
const FUNCTION_TOKENS = 12;

/** DeepSeek V4, at its own API and on Workers AI (1,048,576 tokens). */
const DEEPSEEK_CONTEXT_TOKENS = 1_048_576;
/** What every model with function calling that is worth planning with has; a larger window only compacts later. */
const UNKNOWN_CONTEXT_TOKENS = 131_072;

/** The family of a model by its name; null is the default model, DeepSeek. */
export function tokenFamily(model: string | null): TokenFamily {
	if (model === null || /deepseek/i.test(model)) return "deepseek";
	return /^(?:openai\/)?(?:gpt-|o[1-9]\b|chatgpt)/i.test(model) ? "openai" : "generic";
}

/** Tokens that a model's context holds, input and output together. */
export function contextTokens(model: string | null): number {
	return tokenFamily(model) === "deepseek" ? DEEPSEEK_CONTEXT_TOKENS : UNKNOWN_CONTEXT_TOKENS;
}

/** What a turn may write, thoughts included, is left free; of a small context a quarter. */
const OUTPUT_TOKENS = 32_768;
/** Rules, a goal and one small result do not fit into less. */
const CONTEXT_MIN_TOKENS = 4_096;

/**
 * Tokens that a request to a model may hold: its context less what it may write.
 *
 * @param setting the deployment's own word on the context (`BELAY_PLANNER_CONTEXT_TOKENS`); empty: by the model's name
 * @returns null when the setting is not a whole number of at least 4,096
 */
export function requestTokens(model: string | null, setting: string): number | null {
	const text = setting.trim();
	const context = text === "" ? contextTokens(model) : /^[0-9]{1,9}$/.test(text) ? Number(text) : 0;
	if (context < CONTEXT_MIN_TOKENS) return null;
	return context - Math.min(OUTPUT_TOKENS, Math.floor(context / 4));
}

/** Tokens of one request. Adding a message, a character or a function never lowers it. */
export function estimateRequest(
	messages: readonly PlannerMessage[],
	functions: readonly FunctionDefinition[],
	family: TokenFamily,
): number {
	let tokens = 0;
	for (const message of messages) tokens += estimateMessage(message, family);
	for (const one of functions) tokens += FUNCTION_TOKENS + estimateText(JSON.stringify(one), family);
	return tokens;
}

/** Tokens of one message with its frame, its thoughts and its calls. */
export function estimateMessage(message: PlannerMessage, family: TokenFamily): number {
	let tokens = MESSAGE_TOKENS + estimateText(message.content ?? "", family);
	if (message.role === "tool") tokens += estimateText(message.tool_call_id, family);
	if (message.role !== "assistant") return tokens;
	tokens += estimateText(message.reasoning_content ?? "", family);
	for (const call of message.tool_calls ?? [])
		tokens += CALL_TOKENS + estimateText(call.id + call.function.name + call.function.arguments, family);
	return tokens;
}

/** Tokens of text, rounded up. Additive by character, so longer text never costs less. */
export function estimateText(text: string, family: TokenFamily): number {
	return Math.ceil(textHundredths(text, family) / 100);
}

/** The same in hundredths of a token, for whoever adds up pieces. */
export function textHundredths(text: string, family: TokenFamily): number {
	const { latin, mark, cjk, other } = RATES[family];
	let hundredths = 0;
	for (let at = 0; at < text.length; at++) {
		const unit = text.charCodeAt(at);
		if (unit < 0x80) hundredths += isLetter(unit) ? latin : mark;
		else if (unit < 0x250)
			hundredths += mark; // accented letters split words
		else hundredths += isCjk(unit) ? cjk : other;
	}
	return hundredths;
}

/** Letters and the space: what words are made of. */
const isLetter = (unit: number): boolean =>
	unit === 0x20 || (unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a);

/** Han, kana, hangul, their punctuation and full-width forms. */
const isCjk = (unit: number): boolean =>
	(unit >= 0x2e80 && unit <= 0x9fff) ||
	(unit >= 0xac00 && unit <= 0xd7af) ||
	(unit >= 0xf900 && unit <= 0xfaff) ||
	(unit >= 0xff00 && unit <= 0xffef);
