/**
 * Turns what went wrong at the network into outcomes (decisions 31 and 32). workerd reports a refused, a reset and a lost
 * connection alike, and that is also the rule here: one sentence for all of them, so that no message tells a prober what
 * is reachable from inside. Called by the http and notify invokers.
 */
import { failed, type InvokeOutcome, type PossibleEffect } from "#core/outcome.ts";
import type { Deadline } from "./deadline.ts";

/** How far the attempt came. Nothing sent: no effect, whatever the tool. */
export type Progress = { phase: "headers" | "body"; sent: boolean };

/** The outcome of a thrown fetch or read. `writes`: the tool may act on the world once a request has left. */
export function networkFault(deadline: Deadline, progress: Progress, writes: boolean): InvokeOutcome {
	const effect: PossibleEffect = progress.sent && writes ? "possible" : "none";
	if (deadline.stopped === "timeout") return { kind: "timeout", phase: progress.phase, effect };
	if (deadline.stopped === "cancelled") return failed("interrupted", "the call was cancelled", { effect });
	return failed("connection_lost", "the connection to the upstream could not be made or was lost", {
		effect,
		retryable: true,
	});
}

export function securityBlocked(message: string): InvokeOutcome {
	return failed("security_blocked", message);
}
