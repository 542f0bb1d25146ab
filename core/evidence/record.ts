/** One piece of evidence as it is stored, hashed, signed and shown (contract). */
import * as z from "zod";

/** `answered`: a caller's own function; the answer is the caller's word, and nothing was invoked here. */
export const EVIDENCE_OUTCOMES = [
	"success",
	"failed",
	"timeout",
	"denied",
	"refused",
	"waiting",
	"unknown",
	"answered",
] as const;
export type EvidenceOutcome = (typeof EVIDENCE_OUTCOMES)[number];

export const evidence = z.object({
	v: z.literal(1),
	evidence_id: z.string(),
	seq: z.number().int(),
	at: z.string(),
	run_id: z.string(),
	tool_call_id: z.string(),
	tool_id: z.string(),
	tool_version: z.string(),
	/** Masked; the hash covers the true input. */
	input: z.unknown(),
	input_hash: z.string().nullable(),
	outcome: z.enum(EVIDENCE_OUTCOMES),
	reason: z.string().nullable(),
	facts: z.array(z.string()),
	artifacts: z.array(z.string()),
	proves: z.array(z.string()),
	does_not_prove: z.array(z.string()),
	/** What permitted the call: principal, definition, policy revision, rules, approval (signed with the record). */
	envelope: z.record(z.string(), z.unknown()),
	prev_hash: z.string(),
	hash: z.string(),
	signature: z.string(),
});
export type Evidence = z.infer<typeof evidence>;
