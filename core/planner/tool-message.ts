/**
 * The JSON text that a planner gets for one call (contract: tool message). What a tool returned stays inside a JSON
 * value, cleaned and cut to size, so it cannot pose as another message; a cut is always said in `notes`.
 * Called by core/run for every final and every waiting call.
 */
import { cutText, utf8Bytes } from "../data/well-formed.ts";
import { type Json, put, wellFormed } from "../json.ts";
import { JSON_DEPTH_MAX, RESULT_TO_PLANNER_MAX_BYTES } from "../limits.ts";
import { fitJson } from "./fit-json.ts";

type ToolMessageStatus =
	| "success"
	| "error"
	| "denied"
	| "refused"
	| "timeout"
	| "outcome_unknown"
	| "awaiting_approval";

export type ToolMessage = {
	readonly status: ToolMessageStatus;
	readonly data?: Json | undefined;
	readonly error?: Json | undefined;
	readonly evidence_id: string | null;
	readonly notes?: readonly string[] | undefined;
};

const NOTES_MAX = 20;
const NOTE_MAX_BYTES = 512;
/** Kept free for what surrounds the data and for the note about the cut. */
const FRAME_BYTES = 512;

/** @param maxBytes of the whole text in UTF-8; at least 1,024, so that status and note always fit */
export function toolMessage(message: ToolMessage, maxBytes: number = RESULT_TO_PLANNER_MAX_BYTES): string {
	const limit = Math.max(maxBytes, 1024);
	const notes: string[] = [];
	// Notes may take a quarter of the room at most.
	let noteRoom = Math.floor(limit / 4);
	for (const note of (message.notes ?? []).slice(0, NOTES_MAX)) {
		const text = cutText(cleanText(note), NOTE_MAX_BYTES);
		noteRoom -= utf8Bytes(JSON.stringify(text)) + 1;
		if (noteRoom >= 0) notes.push(text);
	}
	const member = message.data !== undefined ? "data" : message.error !== undefined ? "error" : undefined;
	const value = member === undefined ? undefined : clean(message[member] as Json, 0);
	const text = (body: Json | undefined, said: readonly string[]): string =>
		JSON.stringify({
			status: message.status,
			...(member === undefined ? {} : { [member]: body }),
			evidence_id: message.evidence_id,
			...(said.length === 0 ? {} : { notes: said }),
		});
	const whole = text(value, notes);
	if (value === undefined || utf8Bytes(whole) <= limit) return whole;
	const fitted = fitJson(value, limit - utf8Bytes(text(null, notes)) - FRAME_BYTES);
	const total = utf8Bytes(JSON.stringify(value));
	const shown = utf8Bytes(JSON.stringify(fitted));
	return text(fitted, [
		...notes,
		`${member} was cut from ${total} to ${shown} bytes: parts are missing; ask for less at a time`,
	]);
}

/** Well-formed text, without control characters, deeper levels than any schema allows cut. */
function clean(value: Json, depth: number): Json {
	if (typeof value === "string") return cleanText(value);
	if (typeof value !== "object" || value === null) return value;
	if (depth >= JSON_DEPTH_MAX) return "[cut: nested too deep]";
	if (Array.isArray(value)) return value.map((item) => clean(item, depth + 1));
	const copy = {};
	for (const [key, child] of Object.entries(value)) {
		let name = cleanText(key);
		while (Object.hasOwn(copy, name)) name += "_"; // two names that differ in a control character
		put(copy, name, clean(child, depth + 1));
	}
	return copy;
}

/**
 * C0 without tab and line breaks, DEL, C1: terminal escapes and bells. Tag characters are invisible text that models
 * read ("ASCII smuggling"); only a flag sequence has an honest use for them.
 */
const CONTROL = /(?![\t\n\r])\p{Cc}|(?<!\u{1f3f4}[\u{e0020}-\u{e007f}]{0,7})[\u{e0000}-\u{e007f}]/gu;

function cleanText(text: string): string {
	return wellFormed(text).replace(CONTROL, "");
}
