/**
 * One line for the human who decides (A19): which tool, with what. Text from the call cannot pretend to be the card's
 * own: control, invisible and direction characters are shown escaped, and a cut says how long the whole is. The full
 * arguments stand beside it; this line decides nothing. Called when an approval is raised.
 */
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";
import type { Locale } from "../registry/explain-words.ts";

const VALUE_MAX_CHARS = 80;
const FIELDS_MAX = 12;
const LINE_MAX_CHARS = 600;

/** What it says of a tool; also the page of an approval says it, in its reader's language. */
export type Summarized = Pick<ToolDescriptor, "name" | "version" | "effect" | "risk">;

export function summarize(tool: Summarized, args: JsonObject, locale: Locale = "en"): string {
	const words = WORDS[locale];
	const names = Object.keys(args);
	const shown = names
		.slice(0, FIELDS_MAX)
		.map((name) => `${visible(name, 40, locale)}${words.colon}${brief(args[name] as Json, locale)}`);
	if (names.length > FIELDS_MAX) shown.push(words.more_fields(names.length - FIELDS_MAX));
	return cut(words.line(tool, shown), LINE_MAX_CHARS, locale);
}

const EFFECTS_ZH = { read: "读取", write: "写入", external: "对外" } as const;
const RISKS_ZH = { low: "低", medium: "中", high: "高" } as const;

/** The line's fixed parts. */
const WORDS = {
	en: {
		colon: ": ",
		line: ({ name, version, effect, risk }: Summarized, shown: readonly string[]) =>
			`${name} ${version} (${effect}, ${risk} risk) with ${shown.length === 0 ? "no arguments" : shown.join(", ")}`,
		more_fields: (count: number) => `and ${count} more fields`,
		list: (count: number) => `list of ${count} items`,
		object: (count: number) => `object of ${count} fields`,
		spaces: (count: number) => `[${count} spaces]`,
		cut: (length: number) => `… (cut, ${length} characters)`,
	},
	zh: {
		colon: "：",
		line: ({ name, version, effect, risk }: Summarized, shown: readonly string[]) =>
			`${name} ${version}（${EFFECTS_ZH[effect]}，${RISKS_ZH[risk]}风险），${shown.length === 0 ? "无参数" : `参数 ${shown.join("，")}`}`,
		more_fields: (count: number) => `另有 ${count} 个字段`,
		list: (count: number) => `含 ${count} 项的列表`,
		object: (count: number) => `含 ${count} 个字段的对象`,
		spaces: (count: number) => `[${count} 个空格]`,
		cut: (length: number) => `…（已截断，共 ${length} 个字符）`,
	},
} as const;

function brief(value: Json, locale: Locale): string {
	if (typeof value === "string")
		return JSON.stringify(visible(value, VALUE_MAX_CHARS, locale)).replaceAll("\\\\u{", "\\u{");
	if (Array.isArray(value) && value.length > 5) return WORDS[locale].list(value.length);
	if (isJsonObject(value) && Object.keys(value).length > 5) return WORDS[locale].object(Object.keys(value).length);
	return visible(JSON.stringify(value), VALUE_MAX_CHARS, locale);
}

/**
 * Every character that prints nothing, changes direction or breaks the line becomes `\u{…}`: controls, format characters
 * (bidi, zero-width, tags), separators other than the plain space, variation selectors, Hangul and Braille blanks,
 * private use and lone surrogates.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

export function visible(text: string, max = Number.POSITIVE_INFINITY, locale: Locale = "en"): string {
	// runs of spaces push the end out of sight
	const squeezed = text.replace(/ {4,}/g, (run) => WORDS[locale].spaces(run.length));
	const escaped = squeezed.replace(HIDDEN, (char) => `\\u{${(char.codePointAt(0) as number).toString(16)}}`);
	return cut(escaped, max, locale);
}

/** Cuts between characters, and says so. */
function cut(text: string, max: number, locale: Locale): string {
	if (text.length <= max) return text;
	const end = /[\uD800-\uDBFF]/.test(text.charAt(max - 1)) ? max - 1 : max;
	return `${text.slice(0, end)}${WORDS[locale].cut(text.length)}`;
}
