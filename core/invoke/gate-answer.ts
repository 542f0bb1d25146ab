/** What a tool's gate answers to a call that is about to start (decisions 16, 30, 34). Shared by the gate and the run machine. */
import type { Json } from "../json.ts";

export type Stored = {
	readonly result: Json;
	readonly notes: readonly string[];
	readonly at: number;
	readonly tool_call_id: string;
};

export type GateAnswer =
	/** Go, and `leave` afterwards; what was taken is held until then, ms since the epoch. `probe`: this one call tries a half-open breaker. */
	| { readonly verdict: "go"; readonly probe: boolean; readonly hold_until: number }
	/** Not now. `retry_at` is when to ask again, ms since the epoch. */
	| { readonly verdict: "wait"; readonly reason: "rate_limit" | "paused" | "claim"; readonly retry_at: number }
	/** The breaker is open: no call. `snapshot` is the last good result, where one was asked for and is kept. */
	| { readonly verdict: "open"; readonly until: number; readonly snapshot: Stored | null }
	/** An equal call has settled within the window: its first result, not a second execution. */
	| { readonly verdict: "replay"; readonly first: Stored }
	/** An equal call ended with an unknown outcome: it must not be done again blindly. */
	| { readonly verdict: "replay_unknown"; readonly tool_call_id: string }
	| { readonly verdict: "cached"; readonly stored: Stored };
