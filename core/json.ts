/**
 * JSON as Belay stores, hashes and refuses it. Plain data only: own properties, no prototypes, no functions.
 * Called by every stage; knows nothing of the world.
 */
import canonicalizeJcs from "canonicalize";
import { invariant } from "./invariant.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** SHA-256 of UTF-8 text as 64 lowercase hex digits, synchronous: `apply()` holds no await (decision 1). */
export type Digest = (text: string) => string;

/** RFC 8785 canonical text. Throws on what JSON cannot say (a broken invariant: normalize has refused it before). */
export function canonicalJson(value: unknown): string {
	const text = canonicalizeJcs(value);
	invariant(text !== undefined, "value has no canonical JSON form");
	return text;
}

export function isJsonObject(value: unknown): value is JsonObject {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An own property, or undefined: `constructor` and `__proto__` are looked up like any other absent name. */
export function own(value: unknown, key: string): Json | undefined {
	if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
	return (value as JsonObject)[key];
}

/** Puts a property as plain data even when it is called `__proto__`. */
export function put(target: JsonObject, key: string, value: Json): void {
	Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Follows an RFC 6901 JSON Pointer by own properties and array indices; undefined when it leads nowhere. */
export function atPointer(value: Json, pointer: string): Json | undefined {
	if (pointer === "") return value;
	if (!pointer.startsWith("/")) return undefined;
	let at: Json | undefined = value;
	for (const raw of pointer.slice(1).split("/")) {
		const key = raw.replaceAll("~1", "/").replaceAll("~0", "~");
		if (Array.isArray(at)) at = /^(0|[1-9]\d*)$/.test(key) ? at[Number(key)] : undefined;
		else at = own(at, key);
		if (at === undefined) return undefined;
	}
	return at;
}

/** One JSON Pointer segment, escaped. */
export function pointerSegment(key: string): string {
	return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

export type ParsedJson =
	| { ok: true; value: Json; unsafe_integers: { pointer: string; source: string }[] }
	| { ok: false; message: string };

type ReviverContext = { source?: string };

const SHORT_MAX_CHARS = 4_096;
const MAY_BE_LARGE = /\d{16}|\d[eE]/;

/**
 * Parses JSON text and names every integer literal beyond +-(2^53-1): JavaScript would round it silently and canonical
 * JSON could not tell two of them apart (decision 27). `unsafe: "string"` puts the exact digits in as a string instead,
 * which is what tool results get. A failure says where, and never quotes the text: it may hold a secret.
 */
export function parseJson(text: string, unsafe: "report" | "string" = "report"): ParsedJson {
	const found = new Map<object, Map<string, string>>();
	let rootSource: string | undefined;
	function reviver(this: object, key: string, value: Json, context?: ReviverContext): Json {
		// Every double beyond 2^53 is a whole number, however it is spelt (`12345678901234567890e-1`, `1e400`).
		if (typeof value !== "number" || Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value;
		// An engine that does not say the source has rounded already: name the number, never pass it silently.
		const source = context?.source ?? String(value);
		rootSource = source;
		const fields = found.get(this) ?? new Map<string, string>();
		fields.set(key, source);
		found.set(this, fields);
		return unsafe === "string" ? source : value;
	}
	try {
		// Without a long run of digits or an exponent no number can be that large, and the plain parser is ten times faster.
		// It nests without limit, though, and whoever walks its value does not: long texts go the careful way.
		if (text.length <= SHORT_MAX_CHARS && !MAY_BE_LARGE.test(text))
			return { ok: true, value: JSON.parse(text) as Json, unsafe_integers: [] };
		const value = JSON.parse(text, reviver as (this: unknown, key: string, value: unknown) => unknown) as Json;
		if (found.size === 0) return { ok: true, value, unsafe_integers: [] };
		const list = locate(value, found);
		// No container holds it: the text is one bare number.
		if (rootSource !== undefined && list.length === 0) list.push({ pointer: "", source: rootSource });
		return { ok: true, value, unsafe_integers: list };
	} catch (error) {
		return { ok: false, message: notJson(error, text.length) };
	}
}

/** What the engine says about the place, without its excerpt of the text. */
function notJson(error: unknown, length: number): string {
	const said = error instanceof Error ? error.message : "";
	if (error instanceof RangeError) return "not valid JSON: nested too deep";
	const at = /at position (\d+)/.exec(said)?.[1];
	if (said.includes("end of JSON") || said.startsWith("Unterminated") || Number(at) >= length)
		return "not valid JSON: the text ends too early";
	return at === undefined ? "not valid JSON" : `not valid JSON at position ${at}`;
}

function locate(value: Json, found: Map<object, Map<string, string>>): { pointer: string; source: string }[] {
	const list: { pointer: string; source: string }[] = [];
	const walk = (node: Json, pointer: string): void => {
		if (typeof node !== "object" || node === null) return;
		for (const [key, source] of found.get(node) ?? [])
			list.push({ pointer: `${pointer}/${pointerSegment(key)}`, source });
		for (const key of Object.keys(node)) walk((node as JsonObject)[key] as Json, `${pointer}/${pointerSegment(key)}`);
	};
	walk(value, "");
	return list;
}

/** Lone surrogates become U+FFFD, so that every outgoing request is well-formed UTF-8. */
export function wellFormed(text: string): string {
	return text.isWellFormed() ? text : text.toWellFormed();
}
