/**
 * Ids that route (decision 23): approvals, links and calls embed the run's part, so that any of them reaches its object
 * without a look-up. Randomness comes in as bytes; nothing here makes any.
 */
const HEX_32 = /^[0-9a-f]{32}$/;

/** Random bytes from the shell, `n` of them. */
export type RandomBytes = (n: number) => Uint8Array;

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function hex(bytes: Uint8Array): string {
	let text = "";
	for (const byte of bytes) text += HEX[byte];
	return text;
}

/** `run_` and 32 hex digits: 128 random bits, or the leading half of an HMAC over an idempotency key. */
export function runId(part: string): string {
	return `run_${part}`;
}

/** The routing part of a run id, or undefined when the text is not a run id. */
export function runPart(id: string): string | undefined {
	const part = id.startsWith("run_") ? id.slice(4) : "";
	return HEX_32.test(part) ? part : undefined;
}

export const approvalId = (part: string, random: RandomBytes): string => `apr_${part}_${hex(random(16))}`;
export const toolCallId = (part: string, random: RandomBytes): string => `call_${part}_${hex(random(16))}`;
export const evidenceId = (part: string, random: RandomBytes): string => `ev_${part}_${hex(random(16))}`;
export const artifactId = (part: string, random: RandomBytes): string => `art_${part}_${hex(random(16))}`;

/** The run id that an approval, call, evidence or artifact id belongs to, or undefined when the text is none of them. */
export function runOf(id: string): string | undefined {
	const found = /^(?:apr|call|ev|art)_([0-9a-f]{32})_[0-9a-f]{32}$/.exec(id);
	return found?.[1] === undefined ? undefined : runId(found[1]);
}

/** Decision 21. */
export const SESSION_ID = /^sess_[A-Za-z0-9_-]{1,64}$/;
/** A W3C trace id: 32 hex digits, not all zero. */
export const traceId = (random: RandomBytes): string => hex(random(16));

/** `traceparent` (W3C Trace Context): the trace id it names, or undefined when it is malformed. */
export function traceIdOf(traceparent: string | null | undefined): string | undefined {
	const found = /^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent ?? "");
	return found?.[1] === undefined || /^0+$/.test(found[1]) ? undefined : found[1];
}
