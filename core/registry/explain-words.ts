/**
 * What a repair hint says, in the two languages that Belay speaks (V4). Data, and the choice between them; the issue words
 * of the contract are never translated. Called by `explain.ts` and `describe-schema.ts`.
 */
export const LOCALES = ["en", "zh"] as const;
export type Locale = (typeof LOCALES)[number];

/** A goal may quote a whole report behind its first words; they say whose language it is. */
const LOOKED_AT_CHARS = 1_000;

/** The language of what a user wrote, by its script: Chinese when Han characters are an eighth of its letters and no kana or hangul is there. */
export function localeOf(text: string): Locale {
	const begun = text.slice(0, LOOKED_AT_CHARS);
	const han = begun.match(/\p{Script=Han}/gu)?.length ?? 0;
	if (han === 0 || /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(begun)) return "en";
	return han * 8 >= (begun.match(/\p{L}/gu)?.length ?? 0) ? "zh" : "en";
}

/** What failed, by keyword of JSON Schema; placed after the field's name. */
const SAYS: { readonly [keyword: string]: readonly [en: string, zh: string] } = {
	type: ["has the wrong type", "类型不对"],
	enum: ["is not one of the allowed values", "不是允许的值"],
	const: ["is not the allowed value", "不是允许的值"],
	format: ["has the wrong format", "格式不对"],
	pattern: ["does not match the pattern", "与模式不符"],
	minimum: ["is too small", "太小"],
	maximum: ["is too large", "太大"],
	exclusiveMinimum: ["is too small", "太小"],
	exclusiveMaximum: ["is too large", "太大"],
	multipleOf: ["is not a multiple of the step", "不是步长的整数倍"],
	minLength: ["is too short", "太短"],
	maxLength: ["is too long", "太长"],
	minItems: ["has too few items", "元素太少"],
	maxItems: ["has too many items", "元素太多"],
	minProperties: ["has too few fields", "字段太少"],
	maxProperties: ["has too many fields", "字段太多"],
	uniqueItems: ["repeats an item", "有重复的元素"],
	anyOf: ["matches none of the allowed forms", "不符合任何允许的形式"],
	oneOf: ["does not match exactly one of the allowed forms", "必须恰好符合一种允许的形式"],
	not: ["matches a form that is excluded", "符合被排除的形式"],
	contains: ["lacks a required item", "缺少必需的元素"],
	minContains: ["has too few of the required items", "必需的元素太少"],
	maxContains: ["has too many of the counted items", "受限的元素太多"],
	required: ["is missing", "缺失"],
	false: ["is not a known field", "不是已知字段"],
	other: ["does not match the schema", "与结构定义不符"],
};

/** What was expected, by keyword; placed before the keyword's value. */
const WANTS: { readonly [keyword: string]: readonly [en: string, zh: string] } = {
	minimum: ["at least", "至少"],
	maximum: ["at most", "至多"],
	exclusiveMinimum: ["more than", "大于"],
	exclusiveMaximum: ["less than", "小于"],
	multipleOf: ["a multiple of", "整数倍于"],
	minLength: ["a text length of at least", "文本长度至少"],
	maxLength: ["a text length of at most", "文本长度至多"],
	minItems: ["a number of items of at least", "元素个数至少"],
	maxItems: ["a number of items of at most", "元素个数至多"],
	minProperties: ["a number of fields of at least", "字段个数至少"],
	maxProperties: ["a number of fields of at most", "字段个数至多"],
	pattern: ["text matching", "匹配的文本"],
	format: ["format", "格式"],
};

/** Everything else that a hint is made of. */
const PHRASES = {
	whole: ["the whole", "整个参数"],
	one_of: ["one of", "以下之一"],
	or: ["or", "或"],
	any_value: ["a value that the schema allows", "结构定义允许的值"],
	for_example: ["for example", "例如"],
	no_further_fields: ["no further fields", "没有其他字段"],
	leave_out: ["leave it out", "请去掉"],
} as const satisfies { readonly [name: string]: readonly [en: string, zh: string] };

const choose = (pair: readonly [string, string], locale: Locale): string => pair[locale === "zh" ? 1 : 0];

/** Own keywords only: a schema may hold a keyword that is called like a method. */
export function saysFor(keyword: string, locale: Locale): string {
	return choose(SAYS[Object.hasOwn(SAYS, keyword) ? keyword : "other"] as readonly [string, string], locale);
}

export function wantsFor(keyword: string, locale: Locale): string | undefined {
	return Object.hasOwn(WANTS, keyword) ? choose(WANTS[keyword] as readonly [string, string], locale) : undefined;
}

export const phrase = (name: keyof typeof PHRASES, locale: Locale): string => choose(PHRASES[name], locale);
