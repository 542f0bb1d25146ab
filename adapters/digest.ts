/** SHA-256 as core asks for it: synchronous, because a run object hashes inside a step, where nothing may be awaited. */
import { hash } from "node:crypto";
import type { Digest } from "#core/json.ts";

const SCRATCH_BYTES = 16_384;
const scratch = new Uint8Array(SCRATCH_BYTES);
const encoder = new TextEncoder();

/** Of the text in UTF-8 (half a character counts as U+FFFD), in lower-case hex. What was hashed does not stay in memory. */
export const sha256: Digest = (text) => {
	// A hash object is a whole stream, and a buffer of its own is garbage: a governed call hashes several times.
	const { read, written } = encoder.encodeInto(text, scratch);
	const digest = hash("sha256", read === text.length ? scratch.subarray(0, written) : text, "hex");
	scratch.fill(0, 0, written);
	return digest;
};
