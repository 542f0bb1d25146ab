/**
 * A run's evidence as it is read: in pages, and checked record by record. However long the chain, only a few records are in
 * memory at once. Shows and verifies; writes nothing. Part of the AgentRun object, which has checked who asks.
 */
import { sha256 } from "#adapters/digest.ts";
import { type ChainVerdict, verifyEvidence } from "#core/evidence/chain.ts";
import type { Evidence } from "#core/evidence/record.ts";
import { EVIDENCE_PAGE_MAX_CHARS } from "#core/limits.ts";
import type { RunRecord } from "#core/run/state.ts";
import type { RunStore } from "./store.ts";

export type EvidencePage = {
	readonly data: Evidence[];
	/** `seq` to go on after; null on the last page. */
	readonly next_seq: number | null;
};

/** Every record after `after_seq`, in order. */
function* records(store: RunStore, after_seq: number): Generator<Evidence> {
	for (const { event, data } of store.log.after(after_seq))
		if (event === "evidence.recorded") yield data as unknown as Evidence;
}

/** At most `limit` records and EVIDENCE_PAGE_MAX_CHARS of text, but never none while there is one. */
export function evidencePage(store: RunStore, after_seq: number, limit: number): EvidencePage {
	const data: Evidence[] = [];
	let room = EVIDENCE_PAGE_MAX_CHARS;
	for (const record of records(store, after_seq)) {
		const last = data.at(-1);
		room -= JSON.stringify(record).length;
		if (last !== undefined && (data.length >= limit || room < 0)) return { data, next_seq: last.seq };
		data.push(record);
	}
	return { data, next_seq: null };
}

/** Walks the whole chain against what the run remembers of its head and length. */
export function checkEvidence(
	store: RunStore,
	{ head_hash, evidence_count }: RunRecord,
	verify: (text: string, signature: string) => boolean,
): ChainVerdict {
	return verifyEvidence(records(store, 0), { head_hash, count: evidence_count }, sha256, verify);
}
