/**
 * One line for the human who decides (A19): which tool, with what. Text from the call cannot pretend to be the card's
 * own: control, invisible and direction characters are shown escaped, and a cut says how long the whole is. The full
 * arguments stand beside it; this line decides nothing. Called when an approval is raised.
 */
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";

const VALUE_MAX_CHARS = 80;
const FIELDS_MAX = 12;
const LINE_MAX_CHARS = 600;

export function summarize(descriptor: ToolDescriptor, args: JsonObject): string {
	const names = Object.keys(args);
	const shown = names.slice(0, FIELDS_MAX).map((name) => `${visible(name, 40)}: ${brief(args[name] as Json)}`);
	if (names.length > FIELDS_MAX) shown.push(`and ${names.length - FIELDS_MAX} more fields`);
	const line = `${descriptor.name} ${descriptor.version} (${descriptor.effect}, ${descriptor.risk} risk) with ${shown.length === 0 ? "no arguments" : shown.join(", ")}`;
	return cut(line, LINE_MAX_CHARS);
}

function brief(value: Json): string {
	if (typeof value === "string") return JSON.stringify(visible(value, VALUE_MAX_CHARS)).replaceAll("\\\\u{", "\\u{");
	if (Array.isArray(value) && value.length > 5) return `list of ${value.length} items`;
	if (isJsonObject(value) && Object.keys(value).length > 5) return `object of ${Object.keys(value).length} fields`;
	return visible(JSON.stringify(value), VALUE_MAX_CHARS);
}

/**
 * Every character that prints nothing, changes direction or breaks the line becomes `\u{…}`: controls, format characters
 * (bidi, zero-width, tags), separators other than the plain space, variation selectors, Hangul and Braille blanks,
 * private use and lone surrogates.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

export function visible(text: string, max = Number.POSITIVE_INFINITY): string {
	// runs of spaces push the end out of sight
	const squeezed = text.replace(/ {4,}/g, (run) => `[${run.length} spaces]`);
	const escaped = squeezed.replace(HIDDEN, (char) => `\\u{${(char.codePointAt(0) as number).toString(16)}}`);
	return cut(escaped, max);
}

/** Cuts between characters, and says so. */
function cut(text: string, max: number): string {
	if (text.length <= max) return text;
	const end = /[\uD800-\uDBFF]/.test(text.charAt(max - 1)) ? max - 1 : max;
	return `${text.slice(0, end)}… (cut, ${text.length} characters)`;
}
