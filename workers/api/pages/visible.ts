/**
 * Makes text show what it holds (A19): direction overrides, zero-width and other characters that have no shape of their
 * own are written out as `\u202E`, so that a page or mail reads exactly as what will run. Line feeds stay. It escapes no
 * markup: that is the renderer's work.
 */

/**
 * Controls, formatting characters (direction, zero width, tags), unassigned, private use, lone surrogates, separators,
 * whatever Unicode says may be ignored in display (variation selectors, Hangul fillers, joiners), every space but the
 * plain one, and the braille blank.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{DI}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u2800]/gu;
/** More marks on one letter than any script needs: they would draw over the lines above. */
const PILED_MARKS = /\p{M}{4,}/gu;

export function visible(text: string): string {
	return text
		.replace(PILED_MARKS, (marks) => Array.from(marks, spelled).join(""))
		.replace(UNSEEN, (one) => (one === "\n" ? one : spelled(one)));
}

function spelled(one: string): string {
	const code = one.codePointAt(0) ?? 0;
	const digits = code.toString(16).toUpperCase();
	return code > 0xffff ? `\\u{${digits}}` : `\\u${digits.padStart(4, "0")}`;
}
