/**
 * Makes an outcome of an HTTP response: parsed, bounded, scrubbed. A 4xx did not act, a 5xx may have (decision 31). It
 * sends nothing. Called by the http invoker.
 */
import { type Json, type JsonObject, parseJson } from "#core/json.ts";
import {
	HTTP_BODY_MAX_BYTES,
	HTTP_ERROR_BODY_MAX_BYTES,
	HTTP_EXCERPT_MAX_CHARS,
	JSON_DEPTH_MAX,
} from "#core/limits.ts";
import { failed, type InvokeOutcome, type PossibleEffect } from "#core/outcome.ts";
import type { Deadline } from "./deadline.ts";
import type { Arrival } from "./egress.ts";
import { networkFault, type Progress } from "./fault.ts";
import { decodeText, isJsonType, isTextType, mediaType, readBody } from "./read-body.ts";
import { retryAfterMs } from "./retry-after.ts";
import type { Scrubber } from "./scrubber.ts";

/** What a planner may see of the headers; the rest is between machines, and may hold cookies. */
const SHOWN_HEADERS = [
	"content-type",
	"date",
	"etag",
	"last-modified",
	"location",
	"retry-after",
	"x-request-id",
] as const;
const HEADER_SHOWN_MAX_CHARS = 1_024;
const NAMED_INTEGERS_MAX = 20;

export type ResultDeps = {
	readonly deadline: Deadline;
	readonly scrubber: Scrubber;
	readonly progress: Progress;
	readonly writes: boolean;
	readonly now: number;
};

export async function httpResult(arrival: Arrival, deps: ResultDeps): Promise<InvokeOutcome> {
	deps.progress.phase = "body";
	const { response } = arrival;
	const effect: PossibleEffect = deps.writes ? "possible" : "none";
	const failing = response.status >= 400;
	const max = failing ? HTTP_ERROR_BODY_MAX_BYTES : HTTP_BODY_MAX_BYTES;
	let body: { bytes: Uint8Array; cut: boolean };
	try {
		body = await readBody(response, max, deps.deadline);
	} catch {
		if (failing && deps.deadline.stopped === undefined) return failure(arrival, "", deps); // the status has said enough
		return networkFault(deps.deadline, deps.progress, deps.writes);
	}
	if (failing) return failure(arrival, excerpt(response, body, deps.scrubber), deps);
	if (body.cut) {
		const message = `the response is larger than ${HTTP_BODY_MAX_BYTES} bytes`;
		return failed("response_too_large", message, { effect, http_status: response.status });
	}
	const read = readValue(response, body.bytes, deps.scrubber);
	if (read === undefined)
		return failed("invalid_response", "the response holds bytes that must not be shown", {
			effect,
			http_status: response.status,
		});
	const hops =
		arrival.redirects === 0 ? [] : [`${arrival.redirects} redirect${arrival.redirects === 1 ? "" : "s"} followed`];
	return {
		kind: "success",
		result: { status: response.status, headers: shownHeaders(response, deps.scrubber), body: read.value },
		facts: [deps.scrubber.text(`HTTP ${response.status} from ${arrival.url.host}`), ...hops],
		notes: read.notes,
		http_status: response.status,
	};
}

function failure(arrival: Arrival, text: string, deps: ResultDeps): InvokeOutcome {
	const { status, headers } = arrival.response;
	const wait = retryAfterMs(headers.get("retry-after"), deps.now);
	const mayHaveActed = arrival.acted || (status >= 500 && deps.writes);
	return failed(status === 429 ? "rate_limited" : "http_error", `the upstream answered ${status}`, {
		effect: mayHaveActed ? "possible" : "none",
		retryable: status === 429 || status >= 500,
		http_status: status,
		...(wait === undefined ? {} : { retry_after_ms: wait }),
		...(text === "" ? {} : { detail: { excerpt: text } }),
	});
}

/** Scrubbed before it is cut, so that no half of a secret stays at the edge; and short of where the reading stopped. */
function excerpt(response: Response, body: { bytes: Uint8Array; cut: boolean }, scrubber: Scrubber): string {
	if (!isTextType(mediaType(response))) return "";
	const text = scrubber.text(decodeText(body.bytes, response.headers.get("content-type")));
	const whole = body.cut ? text.slice(0, Math.max(0, text.length - scrubber.longest)) : text;
	return whole.slice(0, HTTP_EXCERPT_MAX_CHARS).toWellFormed();
}

function readValue(
	response: Response,
	bytes: Uint8Array,
	scrubber: Scrubber,
): { value: Json; notes: string[] } | undefined {
	if (bytes.byteLength === 0) return { value: null, notes: [] };
	const type = mediaType(response);
	const contentType = response.headers.get("content-type");
	if (!isTextType(type)) return binaryValue(bytes, type, scrubber);
	const text = decodeText(bytes, contentType);
	if (!isJsonType(type) && type !== "") return { value: scrubber.text(text), notes: [] };
	// Digits of big integers stay exact as strings (decision 27): 2512292042121000001 must not become …000000.
	const parsed = parseJson(text, "string");
	if (!parsed.ok) {
		const notes = type === "" ? [] : ["the body is declared as JSON and does not parse; it is given as text"];
		return { value: scrubber.text(text), notes };
	}
	const value = scrubber.json(parsed.value);
	if (value === undefined) {
		return {
			value: scrubber.text(text),
			notes: [`the body is nested deeper than ${JSON_DEPTH_MAX}; it is given as text`],
		};
	}
	return { value, notes: integerNotes(parsed.unsafe_integers, scrubber) };
}

function integerNotes(found: readonly { pointer: string }[], scrubber: Scrubber): string[] {
	if (found.length === 0) return [];
	const named = found.slice(0, NAMED_INTEGERS_MAX).map((one) => (one.pointer === "" ? "the whole body" : one.pointer));
	const more = found.length > NAMED_INTEGERS_MAX ? ` and ${found.length - NAMED_INTEGERS_MAX} more` : "";
	return [scrubber.text(`integers too large for a JSON number are given as strings: ${named.join(", ")}${more}`)];
}

function binaryValue(
	bytes: Uint8Array,
	type: string,
	scrubber: Scrubber,
): { value: Json; notes: string[] } | undefined {
	const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	// A secret cannot be masked inside bytes without breaking them, so such a body is not shown at all.
	if (scrubber.holds(data.toString("latin1")) || scrubber.holds(data.toString("utf8"))) return undefined;
	return {
		value: {
			encoding: "base64",
			content_type: scrubber.text(type),
			bytes: bytes.byteLength,
			data: data.toString("base64"),
		},
		notes: [],
	};
}

function shownHeaders(response: Response, scrubber: Scrubber): JsonObject {
	const shown: JsonObject = {};
	for (const name of SHOWN_HEADERS) {
		const value = response.headers.get(name);
		if (value !== null) shown[name] = scrubber.text(value).slice(0, HEADER_SHOWN_MAX_CHARS);
	}
	return shown;
}
