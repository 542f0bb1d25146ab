/**
 * The evidence chain of one run: `hash = SHA-256(JCS({…record, prev_hash}))`, the record without hash and signature
 * (decision 3), each hash signed. Shared by the run machine (seal) and by anybody who checks (verify).
 */
import { canonicalJson, type Digest } from "../json.ts";
import type { Evidence } from "./record.ts";

/** The parent of a run's first record. */
export const GENESIS = "0".repeat(64);

export type EvidenceBody = Omit<Evidence, "hash" | "signature">;

export function sealEvidence(body: EvidenceBody, digest: Digest, sign: (text: string) => string): Evidence {
	const hash = digest(canonicalJson(body));
	return { ...body, hash, signature: sign(hash) };
}

export type ChainVerdict = { readonly valid: boolean; readonly checked: number; readonly broken_at: number | null };

/**
 * Walks the records in order. `anchor` is what the run itself remembers of its head and length: without it a chain whose
 * newest records were dropped would still look whole. `broken_at` is the seq of the first record that does not hold, or
 * the seq after the last one when the tail is missing.
 */
export function verifyEvidence(
	records: Iterable<Evidence>,
	anchor: { readonly head_hash: string; readonly count: number },
	digest: Digest,
	verify: (text: string, signature: string) => boolean,
): ChainVerdict {
	let prev_hash = GENESIS;
	let last_seq = 0;
	let checked = 0;
	for (const { hash, signature, ...body } of records) {
		const holds =
			body.prev_hash === prev_hash &&
			body.seq > last_seq &&
			digest(canonicalJson(body)) === hash &&
			verify(hash, signature);
		if (!holds) return { valid: false, checked, broken_at: body.seq };
		prev_hash = hash;
		last_seq = body.seq;
		checked += 1;
	}
	if (checked !== anchor.count || prev_hash !== anchor.head_hash) {
		return { valid: false, checked, broken_at: last_seq + 1 };
	}
	return { valid: true, checked, broken_at: null };
}
