/**
 * Tells an answer from a tool call that the model wrote out as text (T11). Conservative: only markup that models are
 * known to leak, and name-plus-JSON of a function that was offered. It never parses a call out of text: the run asks
 * again instead, so text in a tool result cannot become a call. Called by the assembler.
 */
const BAR = "[|｜‖│¦∣ǀ]";

const MARKUP: readonly RegExp[] = [
	// DeepSeek's own markup, with the bars that gateways substitute.
	new RegExp(`<\\/?${BAR}{1,2}\\s?DSML\\s?${BAR}{1,2}\\s?(?:tool_calls|function_calls|invoke|parameter)`, "iu"),
	new RegExp(`<${BAR}tool[▁_ ]?(?:calls?|outputs?)`, "iu"),
	// Hermes, Qwen, GLM: the tag and then JSON, another tag or a bare name.
	/<tool_calls?>\s{0,20}(?:[{[<]|[\w.-]{1,64}\s{0,20}[\n<{(])/iu,
	/<function=[\w.:-]{1,64}\s?[>{]/u,
	/<(?:antml:)?function_calls>\s{0,20}</u,
	/<(?:antml:)?invoke\s{1,20}name\s?=/u,
	/^\s*\[TOOL_CALLS\]/u,
	/<\|python_tag\|>/u,
	// gpt-oss: a message addressed to a function.
	/<\|channel\|>\s?commentary\s{1,5}to=/u,
];

/** Name-plus-JSON stands at the end of the text; more than this is an answer that quotes JSON. */
const TAIL_CHARS = 32_768;

export function isCallAsText(text: string, offered: readonly string[]): boolean {
	if (text.trim() === "") return false;
	// Markup that is quoted as code is talk about calls, not a call.
	const plain = text.includes("`") ? text.replace(/```[\s\S]*?```|`[^`\n]*`/gu, " ") : text;
	return MARKUP.some((known) => known.test(plain)) || isNamedJson(text.slice(-TAIL_CHARS).trim(), new Set(offered));
}

/** `get_item\n{…}`, `get_item({…})`, `{"name": "get_item", "arguments": {…}}`, fenced or not. */
function isNamedJson(text: string, offered: ReadonlySet<string>): boolean {
	const fenced = /^```[a-z_]{0,16}\n([\s\S]*)\n```$/u.exec(text)?.[1] ?? text;
	const whole = parsed(fenced);
	if (whole !== undefined) return (Array.isArray(whole) ? whole : [whole]).some((one) => isEnvelope(one, offered));
	// The last line that begins with an offered name, with nothing but one object after it.
	for (const found of [...fenced.matchAll(/^[ \t]*([a-zA-Z0-9_-]{1,64})[ \t]*[\n:(]?\s*(?=\{|```)/gmu)].slice(-3)) {
		if (!offered.has(found[1] ?? "")) continue;
		const rest = fenced.slice(found.index + found[0].length).replace(/^```[a-z]{0,8}\s*/u, "");
		const value = parsed(withoutClosers(rest));
		if (typeof value === "object" && value !== null && !Array.isArray(value)) return true;
	}
	return false;
}

/** Drops what may close a call after its object: `)`, `;`, a fence. By hand: a pattern of optional parts backtracks. */
function withoutClosers(text: string): string {
	let rest = text.trimEnd();
	for (const closer of ["```", ";", ")", "```"])
		if (rest.endsWith(closer)) rest = rest.slice(0, -closer.length).trimEnd();
	return rest;
}

function isEnvelope(value: unknown, offered: ReadonlySet<string>): boolean {
	if (typeof value !== "object" || value === null) return false;
	const named = Object.entries(value).find(([key]) => key === "name" || key === "function" || key === "tool");
	const has = Object.keys(value).some((key) => key === "arguments" || key === "parameters" || key === "args");
	return has && typeof named?.[1] === "string" && offered.has(named[1]);
}

function parsed(text: string): unknown {
	if (!/^[[{]/u.test(text)) return undefined;
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}
