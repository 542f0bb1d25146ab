/**
 * The circuit breaker of one tool of one tenant (I3) as a pure state machine: closed, open until a time, then one probe.
 * It counts and decides; it keeps no clock and stores nothing. Called by ToolGate.
 */
import {
	BREAKER_FAILURES_MIN_RATIO,
	BREAKER_MEMORY_MS,
	BREAKER_OPEN_MS,
	BREAKER_WINDOW_MAX_SAMPLES,
} from "../limits.ts";
import type { BreakerView, Criticality, GateOutcome } from "./gate-keys.ts";

export type Breaker = {
	/** Last attempts, oldest first; true is a failure. */
	readonly window: readonly boolean[];
	/** Null while closed. In the past while half-open. */
	readonly until: number | null;
	/** The one call that tries a half-open breaker. Past `hold_until` it counts as lost and the next call may try. */
	readonly probe: { readonly id: string; readonly hold_until: number } | null;
	/** When it last opened, reopened or closed: what started earlier says nothing about the time since. */
	readonly changed_at: number;
};

export const CLOSED_BREAKER: Breaker = { window: [], until: null, probe: null, changed_at: 0 };

/**
 * How many of the last attempts are looked at, and how many must have been seen (I3). `core` looks at three and opens at
 * two: a window of ten would let a tool with a good past fail six times first. `non_core` waits for all ten.
 */
const RULES: Record<Criticality, { readonly window: number; readonly seen: number }> = {
	core: { window: 3, seen: 3 },
	normal: { window: BREAKER_WINDOW_MAX_SAMPLES, seen: 5 },
	non_core: { window: BREAKER_WINDOW_MAX_SAMPLES, seen: BREAKER_WINDOW_MAX_SAMPLES },
};

export type Admission = { readonly next: Breaker } & (
	| { readonly go: true; readonly probe: boolean }
	/** When to ask again: the end of the opening, or of the probe that is out. */
	| { readonly go: false; readonly until: number }
);

/** May call `id` go? Repeatable: the call that holds the probe gets it again. */
export function admit(breaker: Breaker, now: number, id: string, hold_until: number): Admission {
	const { until, probe } = breaker;
	if (until === null) return { go: true, probe: false, next: breaker };
	if (now < until) return { go: false, until, next: breaker };
	// O09: one probe, and a flood behind it that fails fast. A probe that never comes back frees the slot by time alone.
	if (probe !== null && probe.id !== id && now < probe.hold_until)
		return { go: false, until: probe.hold_until, next: breaker };
	return { go: true, probe: true, next: { ...breaker, probe: { id, hold_until } } };
}

/** How attempts ended that were no probe. `started_at`: of the earliest; null when not known. Successes came first. */
export function record(
	breaker: Breaker,
	now: number,
	criticality: Criticality,
	ended: { readonly successes: number; readonly failures: number; readonly started_at: number | null },
): Breaker {
	// Attempts that were under way when it opened neither reopen nor close it, and do not count against the time after.
	if (breaker.until !== null) {
		// After so long nobody is told of it any more, so nobody comes to probe: what is reported then is a new beginning.
		if (breaker.until + BREAKER_MEMORY_MS > now) return breaker;
		return record({ ...CLOSED_BREAKER, changed_at: breaker.until }, now, criticality, ended);
	}
	if (ended.started_at !== null && ended.started_at < breaker.changed_at) return breaker;
	let next = breaker;
	for (const [failure, count] of [
		[false, ended.successes],
		[true, ended.failures],
	] as const) {
		for (let i = 0; i < Math.min(count, BREAKER_WINDOW_MAX_SAMPLES); i++) {
			next = { ...next, window: [...next.window, failure].slice(-BREAKER_WINDOW_MAX_SAMPLES) };
			if (trips(next, criticality)) return opened(now);
		}
	}
	return next;
}

/**
 * The probe's end; null when `id` is not the probe (any more), so that its outcome decides nothing. An answer of any kind
 * shows that the tool is alive, so a 4xx closes (O09); a probe that was never sent shows nothing and only frees the slot.
 */
export function endProbe(breaker: Breaker, now: number, id: string, outcome: GateOutcome): Breaker | null {
	if (breaker.probe?.id !== id) return null;
	if (outcome === "not_asked") return { ...breaker, probe: null };
	return outcome === "fault" ? opened(now) : { ...CLOSED_BREAKER, changed_at: now };
}

export function viewBreaker(breaker: Breaker, now: number, criticality: Criticality): BreakerView {
	const seen = breaker.window.slice(-RULES[criticality].window);
	const state = breaker.until === null ? "closed" : now < breaker.until ? "open" : "half_open";
	return { state, until: breaker.until, samples: seen.length, failures: failuresIn(seen) };
}

function trips(breaker: Breaker, criticality: Criticality): boolean {
	const rule = RULES[criticality];
	const seen = breaker.window.slice(-rule.window);
	// Rounded against binary fractions: 6 of 10 is 60 %.
	return seen.length >= rule.seen && failuresIn(seen) >= Math.ceil(seen.length * BREAKER_FAILURES_MIN_RATIO - 1e-9);
}

const failuresIn = (window: readonly boolean[]): number => window.filter((failure) => failure).length;

const opened = (now: number): Breaker => ({ window: [], until: now + BREAKER_OPEN_MS, probe: null, changed_at: now });
