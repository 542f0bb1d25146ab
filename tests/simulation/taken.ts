/** One saved step as the checkers look at it, and how they say that a promise was broken. */
import type { RunEvent } from "#core/run/event.ts";
import type { RunRecord, RunState } from "#core/run/state.ts";
import type { Step } from "#core/run/transition.ts";

export type Taken = {
	/** The working state before; null in a run's first step. */
	readonly before: RunState | null;
	/** The run record as it was saved before. */
	readonly saved: RunRecord | null;
	readonly event: RunEvent;
	readonly step: Step;
};

export function fail(message: string): never {
	throw new Error(message);
}
