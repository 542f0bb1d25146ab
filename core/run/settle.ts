/** Reports from the world on attempts that are out. */
import { advance } from "./advance.ts";
import { conclude } from "./conclude.ts";
import type { Draft } from "./draft.ts";
import type { Running, Settled } from "./event.ts";
import { isOut } from "./flight.ts";

/** A late or doubled report (an attempt that is not the present one) changes nothing. */
export function settled(draft: Draft, event: Settled): void {
	const call = draft.calls.get(event.tool_call_id);
	if (call === undefined || !isOut(call.state) || call.attempts.length !== event.attempt) return;
	conclude(draft, call, event.outcome);
	advance(draft, event.world);
}

export function running(draft: Draft, event: Running): void {
	const call = draft.calls.get(event.tool_call_id);
	if (call?.state !== "DISPATCHED" || call.attempts.length !== event.attempt) return;
	draft.call({ ...call, state: "RUNNING", running_logged: true });
}
