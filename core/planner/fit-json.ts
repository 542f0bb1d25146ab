/**
 * Cuts a JSON value to a number of bytes by its structure: text at a character, arrays after an element, objects by
 * giving every member its share, so that one long text does not push out the short members beside it. Keeps the types,
 * never cuts a number. Called by `tool-message.ts`.
 */
import { cutText, utf8Bytes } from "../data/well-formed.ts";
import { type Json, type JsonObject, put } from "../json.ts";

/** @param room bytes of the JSON text in UTF-8. The result fits where `room` is at least 4 */
export function fitJson(value: Json, room: number): Json {
	return shrink(value, room, measure(value)) ?? null;
}

/** Bytes of every container, measured once: asked for again at each level it would cost depth times the size. */
type Sizes = (value: Json) => number;

function measure(root: Json): Sizes {
	const known = new Map<object, number>();
	const size: Sizes = (value) => {
		if (typeof value !== "object" || value === null) return utf8Bytes(JSON.stringify(value));
		const seen = known.get(value);
		if (seen !== undefined) return seen;
		const children = Array.isArray(value)
			? value.map(size)
			: Object.entries(value).map(([key, child]) => keyBytes(key) + size(child));
		const bytes = 2 + Math.max(0, children.length - 1) + children.reduce((sum, one) => sum + one, 0);
		known.set(value, bytes);
		return bytes;
	};
	size(root);
	return size;
}

const keyBytes = (key: string): number => utf8Bytes(JSON.stringify(key)) + 1;

/** The part of `value` that fits, or undefined where not even a beginning of it does. */
function shrink(value: Json, room: number, size: Sizes): Json | undefined {
	if (size(value) <= room) return value;
	if (room < 2) return undefined;
	if (typeof value === "string") return cutText(value, room - 2, (point) => utf8Bytes(JSON.stringify(point)) - 2);
	if (typeof value !== "object" || value === null) return undefined;
	return Array.isArray(value) ? fitArray(value, room, size) : fitObject(value, room, size);
}

function fitArray(value: readonly Json[], room: number, size: Sizes): Json[] {
	const kept: Json[] = [];
	let left = room - 2;
	for (const item of value) {
		const comma = kept.length === 0 ? 0 : 1;
		const bytes = size(item) + comma;
		if (bytes > left) {
			// A cut row beside whole ones would read as a row; only a first element is better cut than missing.
			const part = kept.length === 0 ? shrink(item, left, size) : undefined;
			if (part !== undefined) kept.push(part);
			break;
		}
		kept.push(item);
		left -= bytes;
	}
	return kept;
}

function fitObject(value: JsonObject, room: number, size: Sizes): JsonObject {
	const members = Object.entries(value).map(([key, child], at) => ({
		key,
		child,
		at,
		own: keyBytes(key) + 1,
		bytes: size(child),
	}));
	// Smallest first: what a small member does not need of its share goes to the larger ones. Among equals the last goes
	// first, since members are dropped from the front while there are too many for any to fit.
	const bySize = [...members].sort((a, b) => a.own + a.bytes - b.own - b.bytes || b.at - a.at);
	const parts = new Map<string, Json>();
	let left = room - 2;
	bySize.forEach((member, at) => {
		const share = Math.floor(left / (bySize.length - at));
		const part = shrink(member.child, share - member.own, size);
		if (part === undefined) return;
		parts.set(member.key, part);
		left -= member.own + (part === member.child ? member.bytes : utf8Bytes(JSON.stringify(part)));
	});
	const copy: JsonObject = {};
	for (const { key } of members) {
		const part = parts.get(key);
		if (part !== undefined) put(copy, key, part);
	}
	return copy;
}
