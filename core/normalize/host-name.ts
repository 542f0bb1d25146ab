/** Whether a text is one host name and nothing beside it. Where it leads is the address guard's to say. Called by `danger.ts` and `mail-address.ts`. */

/** RFC 1123 labels, letters of every script (the parser that calls it makes them ASCII); a trailing dot is left to callers. */
const LABEL = /^[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u;

/** `evil.example/@good.example`, `a:80`, `a b`, `a%2eb`, full-width dots: each would be read as another host by somebody. */
export function isHostName(text: string): boolean {
	return text.length <= 253 && text.split(".").every((label) => LABEL.test(label));
}

/** Latin beside Cyrillic or Greek in one label looks like a name that it is not. */
export function mixesScripts(text: string): boolean {
	return text
		.split(".")
		.some((label) => /\p{Script=Latin}/u.test(label) && /[\p{Script=Cyrillic}\p{Script=Greek}]/u.test(label));
}
