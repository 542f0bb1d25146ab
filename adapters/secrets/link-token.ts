/**
 * Tokens of approval links (decision 23): `<run part><256 random bits><MAC>` in lowercase hex, 128 digits. The MAC lets a
 * Worker turn guesses away before they wake an object; the random part is what the object knows the link by, as a hash.
 * A token has exactly one spelling: a JWS has several, and a changed last character still verified in many tries. Decides
 * nothing and stores nothing. Called by the page route (check) and the run's object (mint, check).
 */
import { timingSafeEqual } from "node:crypto";
import { hex } from "#core/ids.ts";
import { deriveKey, hmacSha256, type Master } from "./derive.ts";

const FORM = /^([0-9a-f]{32})([0-9a-f]{64})([0-9a-f]{32})$/;
/** 128 bits: nobody can try a token offline, and online each try is a request. */
const MAC_BYTES = 16;

/** The key of all links under one master. Not bound to a tenant: who opens a link has not said which one it is. */
export function linkKey(master: Master): Uint8Array {
	return deriveKey(master.bytes, "", "links");
}

/** A new token. `runPart` is the 32 hex digits of the run id, `random` 32 bytes. Throws when either has another size. */
export function mintLinkToken(runPart: string, random: Uint8Array, key: Uint8Array): string {
	const body = `${runPart}${hex(random)}`;
	const token = `${body}${mac(body, key)}`;
	if (!FORM.test(token)) throw new RangeError("a link token takes a run part of 32 hex digits and 32 random bytes");
	return token;
}

/** The run part of a token that was minted with `key`; undefined for anything else. Takes the same time wherever it differs. */
export function checkLinkToken(token: string, key: Uint8Array): { readonly run_part: string } | undefined {
	const [, runPart, random, given] = FORM.exec(token) ?? [];
	if (runPart === undefined || random === undefined || given === undefined) return undefined;
	const expected = mac(`${runPart}${random}`, key);
	return timingSafeEqual(Buffer.from(given, "hex"), Buffer.from(expected, "hex")) ? { run_part: runPart } : undefined;
}

function mac(body: string, key: Uint8Array): string {
	return hex(hmacSha256(key, `belay/link/v1\0${body}`).subarray(0, MAC_BYTES));
}
