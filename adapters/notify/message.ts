/**
 * What a notify tool's arguments mean, whatever its input schema is called: `message` (required text), `subject` and `to`
 * (optional text), and everything else as details, so that no argument is dropped in silence. It refuses what could write
 * into a mail's header. Called by the notify invoker.
 */
import { type Json, type JsonObject, own, put, wellFormed } from "#core/json.ts";

export type Message = {
	readonly message: string;
	readonly subject: string | undefined;
	readonly to: string | undefined;
	readonly details: JsonObject;
};
export type ReadMessage =
	| { readonly ok: true; readonly message: Message }
	| { readonly ok: false; readonly reason: string };

/** RFC 5322 bounds a header line at 998 octets; a subject is for people. */
const SUBJECT_MAX_CHARS = 250;
const MESSAGE_MAX_CHARS = 20_000;

export function readMessage(args: JsonObject): ReadMessage {
	const message = own(args, "message");
	if (typeof message !== "string" || message.trim() === "")
		return no("argument `message` must be a text that is not empty");
	if (message.length > MESSAGE_MAX_CHARS)
		return no(`argument \`message\` is longer than ${MESSAGE_MAX_CHARS} characters`);
	const subject = optionalLine(own(args, "subject"));
	if (subject === null) return no("argument `subject` must be one line of text");
	if (subject !== undefined && subject.length > SUBJECT_MAX_CHARS)
		return no(`argument \`subject\` is longer than ${SUBJECT_MAX_CHARS} characters`);
	const to = optionalLine(own(args, "to"));
	if (to === null) return no("argument `to` must be one address");
	const details: JsonObject = {};
	for (const [name, value] of Object.entries(args))
		if (!["message", "subject", "to"].includes(name)) put(details, name, value);
	return { ok: true, message: { message: wellFormed(message), subject, to, details } };
}

/** Absent stays undefined; null means refused. Any line or paragraph separator would begin a header of the planner's own. */
function optionalLine(value: Json | undefined): string | undefined | null {
	if (value === undefined || value === null || value === "") return undefined;
	// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this line refuses
	if (typeof value !== "string" || /[\u0000-\u001f\u007f\u0085\u2028\u2029]/.test(value)) return null;
	return wellFormed(value);
}

const no = (reason: string): ReadMessage => ({ ok: false, reason });
