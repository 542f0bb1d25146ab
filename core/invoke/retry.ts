/**
 * Whether an attempt that ended badly is made again, when, and with how much time (I2). Refuses whatever a repeat could
 * do twice or could not change. It never asks the runtime whether a fault is `retryable` (decision 32): what an adapter
 * of ours says of its own parts counts, and only for those. Called by the run machine when an attempt ends.
 */
import {
	RETRIES_MAX,
	RETRY_AFTER_MAX_MS,
	RETRY_BASE_MS,
	RETRY_FACTOR,
	RETRY_JITTER_RATIO,
	RETRY_TIMEOUT_FACTOR,
	TOOL_TIMEOUT_MIN_MS,
} from "../limits.ts";
import type { Failed, InvokeOutcome } from "../outcome.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";
import { repeatable } from "./repeatable.ts";

export type NextTry =
	| { readonly again: true; readonly wait_ms: number }
	/** `why` completes "not tried again: ...". */
	| { readonly again: false; readonly why: string };

/**
 * The next try of a call. `attempt` is the one that just ended, from 1; `turn_left_ms` is what remains of the turn;
 * `random` gives [0, 1) and is asked once at most.
 */
export function nextTry(ended: {
	readonly outcome: InvokeOutcome;
	readonly descriptor: ToolDescriptor;
	readonly attempt: number;
	readonly turn_left_ms: number;
	readonly random: () => number;
}): NextTry {
	const { outcome, descriptor, attempt, turn_left_ms } = ended;
	if (outcome.kind === "success") return no("it succeeded");
	if (outcome.kind === "failed" && !passing(outcome)) return no("a repeat would end the same way");
	if (repeatable(descriptor) === "no") return no("a repeat could act twice");
	if (attempt > RETRIES_MAX) return no(`all ${RETRIES_MAX} retries are spent`);
	const wait_ms = waitFor(outcome, attempt, ended.random);
	// Written so that a time that is no number refuses too.
	if (!(wait_ms + TOOL_TIMEOUT_MIN_MS <= turn_left_ms)) return no("the turn leaves no time for it");
	return { again: true, wait_ms };
}

/** Limit of attempt `attempt` (from 1), ms: half as much again with each retry, clipped to the turn, at least 1. */
export function retryTimeout(base_ms: number, attempt: number, turn_left_ms: number): number {
	const raised = Math.round(base_ms * RETRY_TIMEOUT_FACTOR ** (Math.max(1, attempt) - 1));
	return Math.max(1, Math.min(raised, turn_left_ms));
}

/** A fault that may be gone the next time. A 4xx is an answer, not a fault; 429 is the one that asks to come back. */
function passing(outcome: Failed): boolean {
	switch (outcome.code) {
		case "rate_limited":
		case "connection_lost":
		case "timeout":
			return true;
		case "http_error":
			return outcome.http_status === 429 || (outcome.http_status !== undefined && outcome.http_status >= 500);
		// No wire of the runtime's in these: the adapter alone knows whether its own part may recover.
		case "dataset_error":
		case "delivery_failed":
		case "interrupted":
			return outcome.retryable;
		default:
			return false;
	}
}

function waitFor(outcome: Exclude<InvokeOutcome, { kind: "success" }>, attempt: number, random: () => number): number {
	const told = outcome.kind === "failed" ? outcome.retry_after_ms : undefined;
	const asked = told !== undefined && told >= 0 ? Math.min(told, RETRY_AFTER_MAX_MS) : undefined;
	const limited = outcome.kind === "failed" && (outcome.code === "rate_limited" || outcome.http_status === 429);
	if (limited && asked !== undefined) return Math.ceil(asked);
	const base = RETRY_BASE_MS * RETRY_FACTOR ** (attempt - 1);
	const backOff = Math.round(base * (1 - RETRY_JITTER_RATIO + 2 * RETRY_JITTER_RATIO * random()));
	// A 503 may name a time too: never earlier than told, never hastier than the back-off.
	return Math.max(backOff, Math.ceil(asked ?? 0));
}

const no = (why: string): NextTry => ({ again: false, why });
