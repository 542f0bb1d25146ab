/** Which calls are on their way: what `executing` means and what the limit of calls in flight counts. */
import type { CallRecord } from "./state.ts";
import type { CallState } from "./view.ts";

/** Still moving without a human: waiting for a slot, dispatched, or running. A call with a stand-in moves with that one. */
export const inFlight = (call: Pick<CallRecord, "state" | "child">): boolean =>
	isOut(call.state) || (call.state === "PENDING" && call.child === null);

/** Given to the world and not answered. */
export const isOut = (state: CallState): boolean => state === "DISPATCHED" || state === "RUNNING";

export const countOut = (calls: Iterable<CallRecord>): number => {
	let n = 0;
	for (const call of calls) if (isOut(call.state)) n += 1;
	return n;
};
