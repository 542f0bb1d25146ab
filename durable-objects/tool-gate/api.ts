/**
 * What a run asks of the gate of one tool of one tenant (decisions 16, 30, 34): breaker, rate, claims, cache. Only calls
 * that declare a rate limit, a key or a cache, or whose breaker is known not to be closed, come here before they start;
 * every other call reports afterwards, and a success pays no hop at all.
 */
import type { Json } from "#core/json.ts";

/** How an attempt ended, for the breaker: refusals, denials and 4xx other than 429 are `neutral` (I3). */
export type GateOutcome = "success" | "fault" | "neutral";

export type GateNeeds = {
	readonly criticality: "core" | "normal" | "non_core";
	readonly rate_limit: { readonly requests_per_minute: number; readonly burst: number } | null;
	/** Keyed idempotency: one key per tool + arguments + session + principal + target. */
	readonly claim: { readonly key: string } | null;
	/** Declared reads: one key per tool version + arguments + data scope. */
	readonly cache: { readonly key: string; readonly ttl_ms: number } | null;
	/** The last good result under this key may stand in when the tool is down (`fallback: snapshot`). */
	readonly snapshot: { readonly key: string } | null;
};

export type Stored = { readonly result: Json; readonly notes: readonly string[]; readonly at: number; readonly tool_call_id: string };

export type GateAnswer =
	/** Go, and `leave` afterwards. `probe`: this one call tries a half-open breaker. */
	| { readonly verdict: "go"; readonly probe: boolean }
	/** Not now. `retry_at` is when to ask again, ms since the epoch. */
	| { readonly verdict: "wait"; readonly reason: "rate_limit" | "paused" | "claim"; readonly retry_at: number }
	/** The breaker is open: no call. `snapshot` is the last good result, where one was asked for and is kept. */
	| { readonly verdict: "open"; readonly until: number; readonly snapshot: Stored | null }
	/** An equal call has settled within the window: its first result, not a second execution. */
	| { readonly verdict: "replay"; readonly first: Stored }
	/** An equal call ended with an unknown outcome: it must not be done again blindly. */
	| { readonly verdict: "replay_unknown"; readonly tool_call_id: string }
	| { readonly verdict: "cached"; readonly stored: Stored };

export type BreakerView = { readonly state: "closed" | "open" | "half_open"; readonly until: number | null; readonly samples: number; readonly failures: number };

export type GateReport = { readonly breaker: BreakerView };

type Named = { readonly v: 1; readonly tenant_id: string; readonly tool_id: string };

export interface ToolGateApi {
	/** Repeatable by the same call: a claim that is its own, a probe that is its own, a token that it has paid for. `hold_ms`: how long the pass may be out before it counts as lost. */
	enter(ask: Named & { readonly tool_call_id: string; readonly needs: GateNeeds; readonly hold_ms: number }): Promise<GateAnswer>;
	/**
	 * The pass comes back. `settle` says what became of the claim: `done` keeps the result for the window (5 min from now),
	 * `unknown` keeps that, `free` lets the next one try. A success stores cache and snapshot where `needs` names keys.
	 * Repeatable: a second `leave` of the same call changes nothing.
	 */
	leave(
		ask: Named & {
			readonly tool_call_id: string;
			readonly needs: GateNeeds;
			readonly outcome: GateOutcome;
			readonly settle: "done" | "unknown" | "free";
			readonly stored: Stored | null;
			/** 429: nobody of this tenant calls the tool before this has passed. */
			readonly pause_ms: number | null;
		},
	): Promise<GateReport>;
	/** Attempts of calls that needed no pass: failures at once, successes in bulk. */
	report(ask: Named & { readonly criticality: GateNeeds["criticality"]; readonly successes: number; readonly failures: number; readonly pause_ms: number | null }): Promise<GateReport>;
	/** Drops cached results (a declared write happened). */
	invalidate(ask: Named): Promise<void>;
	view(ask: Named & { readonly criticality: GateNeeds["criticality"] }): Promise<GateReport & { readonly cached: number; readonly claims: number; readonly hits: number; readonly misses: number; readonly paused_until: number | null }>;
}
