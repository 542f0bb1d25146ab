/**
 * A step whose event cannot be had again, such as what a tool has answered: a passing fault of storage must not cost it, so it
 * is tried a few times while the event is still in memory. Only the step is repeated, never what led to it. Used by the runtime.
 */
import { STEP_PAUSES_MS } from "#core/limits.ts";
import { complain } from "./complain.ts";

/** Never throws: of one that keeps failing the timers in storage, which know of nothing but the loss, take care. */
export async function untilTaken(step: () => Promise<unknown>): Promise<void> {
	for (const pause_ms of [...STEP_PAUSES_MS, null]) {
		try {
			await step();
			return;
		} catch (error) {
			complain(pause_ms === null ? "a step was given up" : "a step failed and is tried again", error);
			if (pause_ms !== null) await new Promise((done) => setTimeout(done, pause_ms));
		}
	}
}
