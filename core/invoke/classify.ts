/**
 * What an attempt's outcome makes of its call. The one place where "it may have happened" becomes OUTCOME_UNKNOWN.
 * Called by the run machine when an attempt settles.
 */
import type { Json } from "../json.ts";
import type { InvokeOutcome } from "../outcome.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";

export type Classified = {
	readonly state: "COMPLETED" | "FAILED" | "TIMEOUT" | "OUTCOME_UNKNOWN";
	readonly evidence: "success" | "failed" | "timeout" | "unknown";
	readonly error: {
		readonly code: string;
		readonly message: string;
		readonly retryable: boolean;
		readonly detail?: Json;
	} | null;
};

/**
 * Decision 31: a write whose answer did not arrive is unknown, whatever the runtime says of the connection (decision 32);
 * one that may be repeated has been, before it comes here. A read that times out is a time-out; a fault without effect
 * is a failure.
 */
export function classify(outcome: InvokeOutcome, descriptor: ToolDescriptor): Classified {
	if (outcome.kind === "success") return { state: "COMPLETED", evidence: "success", error: null };
	const mayHaveActed = outcome.effect === "possible" && descriptor.effect !== "read";
	if (mayHaveActed) {
		const how = outcome.kind === "timeout" ? `no answer in time (${outcome.phase})` : outcome.message;
		const message = `the tool was asked and its answer is not known: ${how}; it may or may not have acted`;
		return {
			state: "OUTCOME_UNKNOWN",
			evidence: "unknown",
			error: { code: "outcome_unknown", message, retryable: false },
		};
	}
	if (outcome.kind === "timeout") {
		const message = `no answer in time (${outcome.phase})`;
		return { state: "TIMEOUT", evidence: "timeout", error: { code: "timeout", message, retryable: true } };
	}
	const error = { code: outcome.code, message: outcome.message, retryable: outcome.retryable };
	return {
		state: "FAILED",
		evidence: "failed",
		error: outcome.detail === undefined ? error : { ...error, detail: outcome.detail },
	};
}
