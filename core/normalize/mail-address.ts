/**
 * Judges an argument that is one e-mail address (`x-belay-kind: email`). Narrower than RFC 5322 on purpose: display names,
 * quoted parts, lists and routes are how one address becomes two, or another header. It asks no server whether the address
 * exists. Called by `danger.ts`.
 */
import { isHostName } from "./host-name.ts";

/** RFC 5321, 4.5.3.1. */
const LOCAL_MAX_CHARS = 64;
const ADDRESS_MAX_CHARS = 254;
/** An RFC 5322 dot-atom, letters of every script; without `%` and `!`, which old relays read as a route. */
const LOCAL = /^[\p{L}\p{M}\p{N}#$&'*+/=?^_`{|}~-]+(?:\.[\p{L}\p{M}\p{N}#$&'*+/=?^_`{|}~-]+)*$/u;

/** Why this text must not be used as an address, or undefined. */
export function judgeMailAddress(text: string): string | undefined {
	// a line break adds headers and recipients: the plainest attack gets its own word
	if (/[\p{Cc}\u2028\u2029]/u.test(text)) return "the address holds a control character";
	if (text.length > ADDRESS_MAX_CHARS) return "the address is too long";
	const at = text.indexOf("@");
	const local = text.slice(0, at);
	const host = text.slice(at + 1);
	if (at < 1 || local.length > LOCAL_MAX_CHARS || !LOCAL.test(local)) return "it is not one plain address";
	// `-oX/tmp@x` is an option to a mail program
	if (local.startsWith("-")) return "the address begins with a dash";
	if (!host.includes(".") || !isHostName(host)) return "it is not one plain address";
	return undefined;
}
