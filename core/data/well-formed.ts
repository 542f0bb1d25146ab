/**
 * Text and data that every consumer can encode (O05): no lone surrogates, no half characters after a cut. Counts in
 * UTF-8 bytes, the unit of every limit on text. Pure; called by whatever writes to a planner, a log or a wire.
 */
import { type Json, put, wellFormed } from "../json.ts";

/** Bytes of the text in UTF-8; a lone surrogate counts as the U+FFFD that it becomes. */
export function utf8Bytes(text: string): number {
	let bytes = text.length;
	for (let at = 0; at < text.length; at++) {
		const unit = text.charCodeAt(at);
		if (unit < 0x80) continue;
		if (unit < 0x800) bytes += 1;
		else if (unit >= 0xd800 && unit <= 0xdbff && isLow(text.charCodeAt(at + 1))) {
			bytes += 2; // two units, four bytes
			at += 1;
		} else bytes += 2;
	}
	return bytes;
}

const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/** Where the first lone surrogate stands, as a JSON Pointer to its string or to the object whose key holds it. */
export function findIllFormed(value: Json, pointer = ""): string | undefined {
	if (typeof value === "string") return value.isWellFormed() ? undefined : pointer;
	if (typeof value !== "object" || value === null) return undefined;
	for (const [key, child] of Object.entries(value)) {
		if (!key.isWellFormed()) return pointer;
		const found = findIllFormed(child, `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`);
		if (found !== undefined) return found;
	}
	return undefined;
}

/** A copy with every lone surrogate, in keys too, replaced by U+FFFD. */
export function wellFormedJson(value: Json): Json {
	if (typeof value === "string") return wellFormed(value);
	if (typeof value !== "object" || value === null) return value;
	if (Array.isArray(value)) return value.map(wellFormedJson);
	const copy = {};
	for (const [key, child] of Object.entries(value)) put(copy, wellFormed(key), wellFormedJson(child));
	return copy;
}

const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });
/** Longer than any emoji family; a grapheme that is longer still is cut between code points. */
const GRAPHEME_MAX_UNITS = 64;

/**
 * The longest beginning of `text` within `maxCost`, cut between characters as people see them: neither half a surrogate
 * pair nor half a family emoji. `cost` of one code point defaults to its UTF-8 bytes.
 */
export function cutText(text: string, maxCost: number, cost: (point: string) => number = utf8Bytes): string {
	let used = 0;
	let end = 0;
	for (const point of text) {
		used += cost(point);
		if (used > maxCost) return text.slice(0, graphemeStart(text, end));
		end += point.length;
	}
	return text;
}

/** `at`, or the start of the grapheme that `at` would split. */
function graphemeStart(text: string, at: number): number {
	const from = Math.max(0, at - GRAPHEME_MAX_UNITS);
	const whole = GRAPHEMES.segment(text.slice(from, at + GRAPHEME_MAX_UNITS)).containing(at - from);
	const start = whole === undefined ? at : from + whole.index;
	// The window began inside one endless grapheme: cut between code points, which `at` is.
	return start === from && from > 0 ? at : start;
}
