/**
 * How text becomes the terms of a full-text index, and a question an FTS5 expression. Chinese, Japanese and Korean are
 * written without blanks, and FTS5's tokenizers take a whole sentence for one word (`unicode61`) or find nothing shorter
 * than three characters (`trigram`), while most Chinese words have two. So every such character is a term of its own,
 * and a run of them is asked for as a phrase, which is exact for one, two and more. Called by the full-text invoker and
 * by whoever fills an index.
 */

/** Distinct parts of one question; the rest is dropped. FTS5 stops at an expression depth of 256. */
export const QUERY_PARTS_MAX = 48;
/** Longest question that is looked at, in UTF-16 units. */
export const QUERY_MAX_CHARS = 2_000;

// U+30FC, the mark of a long vowel, belongs to no script of its own.
const CJK = "\\u30fc\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}";
const CJK_CHARACTER = new RegExp(`[${CJK}]`, "gu");
const PART = new RegExp(`[${CJK}]+|(?:(?![${CJK}])[\\p{L}\\p{N}\\p{M}])+`, "gu");

/** The text with every CJK character set apart: what belongs in an index's `title_terms` and `text_terms`. */
export function indexTerms(text: string): string {
	return text.normalize("NFKC").replace(CJK_CHARACTER, " $& ").replace(/\s+/gu, " ").trim();
}

export type FullTextQuery = {
	/** Every part has to occur. */
	readonly all: string;
	/** Any of them may: words, and pairs of neighbouring CJK characters. */
	readonly any: string;
};

/**
 * The question as FTS5 expressions, or undefined when it holds nothing to look for. Each part is letters, digits and
 * marks only and stands in double quotes, so `NEAR`, `OR`, `title:`, `^`, `*` and quotes in it are words or nothing.
 */
export function fullTextQuery(question: string): FullTextQuery | undefined {
	const found = question.slice(0, QUERY_MAX_CHARS).toWellFormed().normalize("NFKC").match(PART) ?? [];
	const parts = [...new Set(found.map((part) => part.toLowerCase()))].slice(0, QUERY_PARTS_MAX);
	if (parts.length === 0) return undefined;
	const any = [...new Set(parts.flatMap(pieces))].slice(0, QUERY_PARTS_MAX);
	return { all: parts.map(phrase).join(" AND "), any: any.map(phrase).join(" OR ") };
}

function isCjk(part: string): boolean {
	return new RegExp(`^[${CJK}]`, "u").test(part);
}

function phrase(part: string): string {
	return `"${isCjk(part) ? [...part].join(" ") : part}"`;
}

/** A long run of CJK characters is a sentence: its neighbouring pairs stand for its words. */
function pieces(part: string): string[] {
	const chars = [...part];
	if (!isCjk(part) || chars.length <= 2) return [part];
	return chars.slice(1).map((char, n) => `${chars[n]}${char}`);
}
