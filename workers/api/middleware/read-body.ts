/**
 * Reads a JSON request body within bounds, whatever the framing says: the cap holds for chunked bodies too, which announce
 * no length. Refuses other media types (415), too many bytes (413), bytes that are not UTF-8 and text that is not JSON
 * (400), nesting deep enough to exhaust a stack and integers that JavaScript would round (422). Keys such as `__proto__`
 * stay plain data. Called by `noun.ts` after authentication and permission, never before.
 */
import type { HonoRequest } from "hono";
import { isJsonObject, type Json, parseJson } from "#core/json.ts";
import { BODY_MAX_BYTES, JSON_DEPTH_MAX } from "#core/limits.ts";
import { invalid, invalidField, problem } from "../problem.ts";

/** The body as a JSON object; undefined when there is none and `optional` says that is fine. */
export async function readJsonObject(
	req: HonoRequest,
	optional: boolean,
): Promise<{ [key: string]: Json } | undefined> {
	const declared = Number(req.header("content-length") ?? "0");
	if (declared > BODY_MAX_BYTES) throw tooLarge();
	const type = req.header("content-type");
	if (type === undefined && optional && req.raw.body === null) return undefined;
	if (type !== undefined || !optional) requireJson(type);
	// The runtime holds a body to the length it declares; only one that declares none is counted here.
	const bytes = declared > 0 ? new Uint8Array(await whole(req.raw)) : await readBytes(req.raw.body);
	if (bytes.byteLength === 0 && optional) return undefined;
	requireJson(type);
	const value = parse(decode(bytes));
	if (!isJsonObject(value)) throw invalidField("", "type_mismatch", "the body is not an object", "a JSON object");
	return value;
}

async function whole(request: Request): Promise<ArrayBuffer> {
	return request.arrayBuffer().catch(() => {
		throw problem("malformed_body", "the body ended before it was complete");
	});
}

/** Every byte of a body, or 413 as soon as the cap is passed: what follows is not read. */
export async function readBytes(body: ReadableStream<Uint8Array> | null): Promise<Uint8Array> {
	if (body === null) return new Uint8Array(0);
	const reader = body.getReader();
	const parts: Uint8Array[] = [];
	let size = 0;
	for (;;) {
		const { done, value } = await reader.read().catch(() => {
			throw problem("malformed_body", "the body ended before it was complete");
		});
		if (done) break;
		size += value.byteLength;
		if (size > BODY_MAX_BYTES) {
			await reader.cancel().catch(() => {});
			throw tooLarge();
		}
		parts.push(value);
	}
	const whole = new Uint8Array(size);
	let at = 0;
	for (const part of parts) {
		whole.set(part, at);
		at += part.byteLength;
	}
	return whole;
}

function requireJson(type: string | undefined): void {
	const essence = (type ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
	if (essence === "application/json" || /^application\/[a-z0-9.-]+\+json$/.test(essence)) return;
	throw problem("unsupported_media_type", "send `content-type: application/json`", {
		headers: { accept: "application/json" },
	});
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

function decode(bytes: Uint8Array): string {
	try {
		return UTF8.decode(bytes);
	} catch {
		throw problem("malformed_body", "the body is not UTF-8 text");
	}
}

function parse(text: string): Json {
	// before parsing: the reviver that finds rounded integers recurses
	if (nesting(text) > JSON_DEPTH_MAX) {
		throw invalidField("", "too_deep", "the body is nested too deeply", `at most ${JSON_DEPTH_MAX} levels`);
	}
	const parsed = parseJson(text);
	if (!parsed.ok) throw problem("malformed_body", "the body is not valid JSON");
	if (parsed.unsafe_integers.length > 0) {
		throw invalid(
			parsed.unsafe_integers.slice(0, 20).map(({ pointer }) => ({
				error: "the integer is too large to be kept exactly",
				field: pointer,
				issue: "integer_out_of_range",
				expected: "an integer between -9007199254740991 and 9007199254740991",
				hint: "send it as a string",
			})),
		);
	}
	return parsed.value;
}

/** Deepest bracket nesting of JSON text, counted outside strings in one pass. */
function nesting(text: string): number {
	let depth = 0;
	let deepest = 0;
	let inString = false;
	for (let at = 0; at < text.length; at++) {
		const code = text.charCodeAt(at);
		if (inString) {
			if (code === 0x5c) at++;
			else if (code === 0x22) inString = false;
		} else if (code === 0x22) inString = true;
		else if (code === 0x7b || code === 0x5b) deepest = Math.max(deepest, ++depth);
		else if (code === 0x7d || code === 0x5d) depth--;
	}
	return deepest;
}

function tooLarge() {
	return problem("body_too_large", `the body is larger than ${BODY_MAX_BYTES} bytes`);
}
