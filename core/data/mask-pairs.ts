/**
 * Masks values that stand beside a sensitive name in text (E3): `key: value`, `"key": "value"`, `key = 'value'`,
 * `key LIKE 'value'`, `--key value`, in code, JSON, headers, SQL and URLs, and the Chinese forms. Keeps the quotes, so that
 * JSON stays JSON and SQL stays SQL. Called by `mask-text.ts`.
 */
import { classifyName, type FieldClass, IDENTIFIER_CHINESE, SECRET_CHINESE } from "./mask-names.ts";
import { MASKED, maskIdentifier } from "./mask-value.ts";

/** A name and what joins it to its value. The value is read apart, so that a harmless pair cannot swallow a secret one. */
const KEY =
	/(?<![\p{L}\p{N}_.-])([\p{L}_-][\p{L}\p{N}_.-]{0,127})(["'`\]\\]{0,8}\s{0,8}(?:=>|[:=<>!]{1,3}|：|\s(?:not\s)?(?:like|ilike|to|is)\s|(?<=--[\p{L}\p{N}_.-]{1,128})\s)\s{0,8}(?:\(\s{0,8})?)/giu;
/** A name in Chinese is not set apart by spaces: `我的密码是abc123`. */
const CHINESE = new RegExp(
	`(${[...SECRET_CHINESE, ...IDENTIFIER_CHINESE].join("|")})(["'\`\\]\\\\]{0,8}[\\p{Script=Han}]{0,2}\\s{0,4}(?:[:：=]|是|为)?\\s{0,4})(?=[\\x21-\\x2b\\x2d-\\x7e“])`,
	"gu",
);
const BARE = /(?:(?:Bearer|Basic|Digest|Token|ApiKey)[ \t]{1,4})?[^\s,;&"'`<>(){}[\]，。；、）\\“”]+/iy;
const QUOTE = /(\\{0,8})(["'`“])/y;
/** A quoted value may span lines up to here; an open quote further on is no quote. */
const QUOTED_MAX_CHARS = 4_096;

export function maskPairs(text: string): string {
	return maskAfter(maskAfter(text, KEY), CHINESE);
}

function maskAfter(text: string, names: RegExp): string {
	let masked = "";
	let from = 0;
	names.lastIndex = 0;
	for (let found = names.exec(text); found !== null; found = names.exec(text)) {
		const [, key = "", between = ""] = found;
		const kind = classifyName(key);
		const start = found.index + found[0].length;
		if (kind === undefined || start < from) continue;
		const value = readValue(text, start);
		// "the token is invalid" is a sentence; "the token is hunter2" is not.
		if (value === undefined || (/\s(?:is|to)\s/i.test(between) && value.open === "" && !/[\d*]/.test(value.inner)))
			continue;
		masked += text.slice(from, start) + value.open + maskInner(value, kind) + value.close;
		from = value.end;
		names.lastIndex = from;
	}
	return masked + text.slice(from);
}

type Value = { readonly open: string; readonly inner: string; readonly close: string; readonly end: number };

function readValue(text: string, start: number): Value | undefined {
	QUOTE.lastIndex = start;
	const quote = QUOTE.exec(text);
	if (quote === null) {
		BARE.lastIndex = start;
		const bare = BARE.exec(text)?.[0];
		return bare === undefined ? undefined : { open: "", inner: bare, close: "", end: start + bare.length };
	}
	const [open, escapes = "", mark = ""] = quote;
	const from = start + open.length;
	const stop = Math.min(text.length, from + QUOTED_MAX_CHARS);
	const closing = mark === "“" ? "”" : mark;
	let slashes = 0;
	for (let at = from; at < stop; at++) {
		const char = text[at];
		if (char === "\\") {
			slashes += 1;
			continue;
		}
		// `\\"` ends a plain literal, `\"` does not; inside escaped JSON the closing quote is escaped as the opening one is.
		if (char === closing && (escapes === "" ? slashes % 2 === 0 : slashes <= escapes.length)) {
			// SQL writes a quote inside a literal twice.
			if (mark === "'" && text[at + 1] === "'") at += 1;
			else return { open, inner: text.slice(from, at - slashes), close: text.slice(at - slashes, at + 1), end: at + 1 };
		}
		slashes = 0;
	}
	const line = text.indexOf("\n", from);
	const end = line < 0 || line > stop ? stop : line;
	return { open, inner: text.slice(from, end), close: "", end };
}

function maskInner({ open, inner }: Value, kind: FieldClass): string {
	if (inner === "" || /^(?:null|true|false|undefined|none)$/i.test(inner)) return inner;
	if (kind === "secret_text" && open === "" && /^\d{1,9}$/.test(inner)) return inner;
	if (kind === "identifier") return maskIdentifier(inner);
	const scheme = /^(?:Bearer|Basic|Digest|Token|ApiKey)(?=[ \t])/i.exec(inner)?.[0];
	return scheme === undefined ? MASKED : `${scheme} ${MASKED}`;
}
