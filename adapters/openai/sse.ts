/**
 * Server-sent events out of text pieces: comments, blank lines, CR, LF, CRLF and several data lines per event. Keeps
 * only `event` and `data`; knows nothing of what they mean. Called by the OpenAI planner.
 */
type SseEvent = { readonly event: string; readonly data: string };

/** One event may hold this much; a stream without line breaks must not grow in memory without end. */
const EVENT_MAX_CHARS = 4_194_304;

interface SseReader {
	/** Takes the next piece and returns the events that it completed. */
	push(text: string): SseEvent[];
	/** True once an event was larger than any may be: the stream cannot be trusted any more. */
	readonly broken: boolean;
}

export function createSseReader(): SseReader {
	let pending: string[] = [];
	let pendingChars = 0;
	let skipLf = false;
	let event = "";
	let data: string[] = [];
	let broken = false;

	function line(text: string, events: SseEvent[]): void {
		if (text === "") {
			if (data.length > 0) events.push({ event, data: data.join("\n") });
			event = "";
			data = [];
			return;
		}
		const colon = text.indexOf(":");
		if (colon === 0) return; // a comment: providers keep connections open with them
		const field = colon < 0 ? text : text.slice(0, colon);
		const value = colon < 0 ? "" : text.slice(text[colon + 1] === " " ? colon + 2 : colon + 1);
		if (field === "data") data.push(value);
		else if (field === "event") event = value;
	}

	return {
		get broken() {
			return broken;
		},
		push(text) {
			const events: SseEvent[] = [];
			// A CRLF may be cut between two pieces: its LF ends no second line.
			let from = skipLf && text.startsWith("\n") ? 1 : 0;
			if (text !== "") skipLf = false;
			const breaks = /\r\n|\n|\r/g;
			breaks.lastIndex = from;
			for (let found = breaks.exec(text); found !== null; found = breaks.exec(text)) {
				pending.push(text.slice(from, found.index));
				line(pending.join(""), events);
				pending = [];
				pendingChars = 0;
				from = breaks.lastIndex;
			}
			if (text.endsWith("\r")) skipLf = true;
			pending.push(text.slice(from));
			pendingChars += text.length - from;
			if (pendingChars + data.reduce((sum, one) => sum + one.length, 0) > EVENT_MAX_CHARS) broken = true;
			return events;
		},
	};
}
