/**
 * Finds which arguments of a call hold text that came from results of untrusted tools: the trace that a prompt injection
 * leaves when it works, an account number or a URL that only a web page named. It compares letters and digits, so case,
 * spacing and punctuation hide nothing; what was translated, encoded or rewritten it does not find, and a long word that
 * both sides happen to use it does. So it is a reason to ask a person, never the only thing that holds an attack back.
 * Names of members are not looked at. Called by the run before a call is judged.
 */
import { type Json, type JsonObject, pointerSegment } from "../json.ts";

/** `strings`: what the planner was shown of the results under this label, numbers written out. */
export type TaintSource = {
	readonly label: string;
	readonly strings: readonly string[];
	/** Not all of it is at hand: any leaf may come from the rest. */
	readonly cut?: boolean;
};
/** `pointer` is the JSON Pointer of a leaf; "" when there was too much text to look at, so any leaf may be meant. */
export type Taint = { readonly pointer: string; readonly label: string };

/** Shorter leaves match by chance (`US`, `EUR`, `yes`). */
const EXACT_MIN_CHARS = 4;
/** A part of a leaf counts from here on: an IBAN, a phone number with its country, four Han characters (which count three each). */
const GRAM_CHARS = 12;
/** What is compared in one call, after plain writing: some 20 ms. A planner is shown 64 KiB of each result at most. */
const ARGS_MAX_CHARS = 65_536;
export const TAINT_SOURCES_MAX_CHARS = 1_048_576;
const FILTER_SIZE = 65_536;

/**
 * One entry per leaf and label. Text that `trusted` holds (the goal, what the user wrote) counts as the user's own, also
 * where a source repeats it. Linear in all texts together, and bounded.
 */
export function taint(args: JsonObject, sources: readonly TaintSource[], trusted: readonly string[] = []): Taint[] {
	const index = indexOf(args);
	let room = TAINT_SOURCES_MAX_CHARS;
	for (const text of trusted) room -= scan(index, text, room, (gram) => index.trusted.add(gram));
	const found: Taint[] = [];
	for (const { label, strings, cut = false } of sources) {
		const hits = new Set<string>();
		let whole = index.cut || cut;
		const grams = new Set<string>();
		const hit = (gram: string): void => {
			// each gram once: a page that repeats it a thousand times costs what one costs
			if (grams.has(gram) || index.trusted.has(gram)) return;
			grams.add(gram);
			for (const pointer of index.leaves.get(gram) ?? []) hits.add(pointer);
		};
		for (const text of strings) {
			if (text.length > room) whole = true;
			room -= scan(index, text, room, hit);
		}
		if (whole) hits.add("");
		for (const pointer of hits) found.push({ pointer, label });
	}
	return found;
}

/** What the arguments hold: whole leaves and their grams, in plain writing, with the leaves they stand in. */
type Index = {
	readonly leaves: Map<string, string[]>;
	readonly trusted: Set<string>;
	/** By hash of a gram: most of a source is passed over without cutting a string from it. */
	readonly filter: Uint8Array;
	/** Length of the longest leaf: no longer source text can be one. */
	longest: number;
	cut: boolean;
};

function indexOf(args: JsonObject): Index {
	const index: Index = {
		leaves: new Map(),
		trusted: new Set(),
		filter: new Uint8Array(FILTER_SIZE),
		longest: 0,
		cut: false,
	};
	let room = ARGS_MAX_CHARS;
	const put = (key: string, pointer: string): void => {
		const known = index.leaves.get(key);
		if (known === undefined) index.leaves.set(key, [pointer]);
		else if (known.at(-1) !== pointer) known.push(pointer);
	};
	const walk = (node: Json, pointer: string): void => {
		if (typeof node === "object" && node !== null) {
			for (const key of Object.keys(node)) walk((node as JsonObject)[key] as Json, `${pointer}/${pointerSegment(key)}`);
			return;
		}
		if (typeof node !== "string" && typeof node !== "number") return;
		const raw = String(node);
		if (raw.length > room) index.cut = true;
		const codes = plain(raw.slice(0, Math.max(room, 0)));
		room -= codes.length;
		if (codes.length >= EXACT_MIN_CHARS) put(whole(codes), pointer);
		index.longest = Math.max(index.longest, codes.length);
		eachGram(codes, null, (hash, at) => {
			index.filter[hash] = 1;
			put(textOf(codes, at, at + GRAM_CHARS), pointer);
		});
	};
	walk(args, "");
	return index;
}

/** Hands every gram and whole leaf of the arguments that stands in `raw` to `hit`; returns how much was looked at. */
function scan(index: Index, raw: string, room: number, hit: (key: string) => void): number {
	if (room <= 0 || index.leaves.size === 0) return 0;
	const codes = plain(raw.slice(0, room));
	if (codes.length <= index.longest) {
		const all = whole(codes);
		if (index.leaves.has(all)) hit(all);
	}
	eachGram(codes, index.filter, (_, at) => {
		const gram = textOf(codes, at, at + GRAM_CHARS);
		if (index.leaves.has(gram)) hit(gram);
	});
	return Math.max(raw.length, codes.length);
}

/** A leaf as a key of its own kind, so that a leaf of twelve characters is not taken for a gram. */
const whole = (codes: Uint16Array): string => `=${textOf(codes, 0, codes.length)}`;

function textOf(codes: Uint16Array, from: number, to: number): string {
	let text = "";
	for (let at = from; at < to; at += 1) text += String.fromCharCode(codes[at] as number);
	return text;
}

/**
 * Letters and digits in one spelling, as UTF-16 code units; a character above U+07FF counts three, as one Han character
 * says as much as a short word.
 */
function plain(text: string): Uint16Array {
	const codes = new Uint16Array(text.length);
	let length = 0;
	for (let at = 0; at < text.length; at += 1) {
		const code = text.charCodeAt(at);
		if (code > 0x7f) return plainUnicode(text);
		if ((code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39)) codes[length++] = code;
		else if (code >= 0x41 && code <= 0x5a) codes[length++] = code + 0x20;
	}
	return codes.subarray(0, length);
}

function plainUnicode(text: string): Uint16Array {
	const folded = text
		.normalize("NFKC")
		.toLowerCase()
		.replace(/[^\p{L}\p{N}]+/gu, "")
		.replace(/[\u0800-\uffff]/g, "$&$&$&");
	const codes = new Uint16Array(folded.length);
	for (let at = 0; at < folded.length; at += 1) codes[at] = folded.charCodeAt(at);
	return codes;
}

/** Calls back with a 16-bit rolling hash and the place of every gram that passes the filter. Equality is by text. */
function eachGram(codes: Uint16Array, filter: Uint8Array | null, see: (hash: number, at: number) => void): void {
	let hash = 0;
	for (let i = 0; i < codes.length; i += 1) {
		hash = (Math.imul(hash, 31) + (codes[i] as number)) | 0;
		if (i >= GRAM_CHARS) hash = (hash - Math.imul(LEAVING, codes[i - GRAM_CHARS] as number)) | 0;
		if (i < GRAM_CHARS - 1) continue;
		const short = (hash ^ (hash >>> 16)) & (FILTER_SIZE - 1);
		if (filter === null || filter[short] === 1) see(short, i - GRAM_CHARS + 1);
	}
}

/** 31 to the power of GRAM_CHARS, modulo 2^32: what a character weighs when it leaves the window. */
const LEAVING = Array.from({ length: GRAM_CHARS }).reduce((power: number) => Math.imul(power, 31), 1);
