/**
 * Timers that the state says already: when an attempt that is out is looked after, and when the turn's or session's time is
 * spent. They move with every call, so nobody stores them; a new life of the object works them out from what it loads.
 */
import { WATCHDOG_GRACE_MS } from "../limits.ts";
import { isOut } from "./flight.ts";
import type { DueKind, RunState } from "./state.ts";

export const DERIVED: ReadonlySet<DueKind> = new Set<DueKind>(["watchdog", "clock"]);

/** Ringing early or twice does no harm; being missed would, so each stands wherever a step may have set it. */
export function derivedTimers(state: RunState | null): { kind: DueKind; ref: string; at: number }[] {
	if (state === null) return [];
	const { clocks, limits } = state.run;
	const timers: { kind: DueKind; ref: string; at: number }[] = [];
	if (clocks.since !== null) {
		const turn_left = limits.turn_timeout_ms - clocks.turn_spent_ms;
		const session_left = limits.session_timeout_ms - clocks.session_spent_ms;
		timers.push({ kind: "clock", ref: "", at: clocks.since + Math.max(1, Math.min(turn_left, session_left)) });
	}
	for (const call of state.calls.values())
		if (isOut(call.state))
			timers.push({ kind: "watchdog", ref: call.tool_call_id, at: (call.deadline_at ?? 0) + WATCHDOG_GRACE_MS });
	return timers;
}
