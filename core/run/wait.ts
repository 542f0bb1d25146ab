/** A call that may not start yet. */
import type { Draft } from "./draft.ts";
import { iso } from "./kit.ts";
import type { CallRecord } from "./state.ts";

/** Shows as waiting, can be cancelled, and is looked at again by a timer in storage: no promise sleeps. */
export function wait(
	draft: Draft,
	call: CallRecord,
	reason: NonNullable<CallRecord["waiting"]>["reason"],
	until: number,
): void {
	draft.due("start", call.tool_call_id, until);
	draft.call({ ...call, waiting: { reason, until: iso(until) } });
}
