/**
 * What a run asks of the gate of one tool of one tenant (decisions 16, 30, 34): breaker, rate, claims, cache. Only calls
 * that declare a rate limit, a key or a cache, or whose breaker is known not to be closed, come here before they start;
 * every other call reports afterwards, and a success pays no hop at all.
 */

import type { GateAnswer, Stored } from "#core/invoke/gate-answer.ts";
import type { BreakerView, GateNeeds, GateOutcome } from "#core/invoke/gate-keys.ts";

export type { GateAnswer, Stored };

export type GateReport = { readonly breaker: BreakerView };

type Named = { readonly v: 1; readonly tenant_id: string; readonly tool_id: string };

export interface ToolGateApi {
	/** Repeatable by the same call: a claim that is its own, a probe that is its own, a token that it has paid for. `hold_ms`: how long the pass may be out before it counts as lost. */
	enter(
		ask: Named & { readonly tool_call_id: string; readonly needs: GateNeeds; readonly hold_ms: number },
	): Promise<GateAnswer>;
	/**
	 * The pass comes back. `settle` says what became of the claim: `done` keeps the result for the window (5 min from now),
	 * `unknown` keeps that, `free` lets the next one try, `keep` leaves it with this call, which tries again: freed between
	 * two attempts of a keyed write, an equal call would act under a second upstream key. A success stores cache and snapshot where `needs` names keys.
	 * Repeatable: a second `leave` of the same call changes nothing.
	 */
	leave(
		ask: Named & {
			readonly tool_call_id: string;
			readonly needs: GateNeeds;
			readonly outcome: GateOutcome;
			readonly settle: "done" | "unknown" | "free" | "keep";
			readonly stored: Stored | null;
			/** 429: nobody of this tenant calls the tool before this has passed. */
			readonly pause_ms: number | null;
		},
	): Promise<GateReport>;
	/**
	 * Attempts of calls that needed no pass: failures at once, successes in bulk. `started_at`: of the earliest of them, ms;
	 * what started before the breaker last changed does not count.
	 */
	report(
		ask: Named & {
			readonly criticality: GateNeeds["criticality"];
			readonly successes: number;
			readonly failures: number;
			readonly pause_ms: number | null;
			readonly started_at?: number;
		},
	): Promise<GateReport>;
	/** Drops cached results (a declared write happened). */
	invalidate(ask: Named): Promise<void>;
	view(ask: Named & { readonly criticality: GateNeeds["criticality"] }): Promise<
		GateReport & {
			readonly cached: number;
			readonly claims: number;
			readonly hits: number;
			readonly misses: number;
			readonly paused_until: number | null;
		}
	>;
}
