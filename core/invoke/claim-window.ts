/**
 * Keyed idempotency over one key (I5, decision 30): who may act, who waits, who gets the first one's result. A claim is
 * never freed by time alone while its owner may have acted. Pure; called by ToolGate, which keeps one row per key.
 */
import { CLAIM_RECHECK_MS, CLAIM_WINDOW_MS } from "../limits.ts";

export type Claim = {
	/** The call that acts, or acted, under this key; its id goes upstream as `Idempotency-Key`. */
	readonly owner: string;
	readonly state: "held" | "done" | "unknown";
	/** `held`: when the owner counts as lost. Settled: the end of the window. */
	readonly until: number;
};

export type ClaimAnswer =
	| { readonly kind: "owner"; readonly next: Claim }
	| { readonly kind: "in_progress"; readonly retry_at: number }
	| { readonly kind: "done"; readonly owner: string }
	| { readonly kind: "unknown"; readonly owner: string };

/**
 * Asks for a key. The owner gets it again: while it holds it (its answer was lost), and after an end that is not known,
 * since a repeat under the same upstream key is one operation. After `done` even the owner gets the result, not a repeat.
 * A lost owner may have acted, so others get `unknown` for a window from then on, never the key.
 */
export function takeClaim(claim: Claim | null, now: number, tool_call_id: string, hold_until: number): ClaimAnswer {
	const next: Claim = { owner: tool_call_id, state: "held", until: hold_until };
	if (claim === null || now >= claimEnds(claim)) return { kind: "owner", next };
	if (claim.state === "done") return { kind: "done", owner: claim.owner };
	if (claim.owner === tool_call_id) return { kind: "owner", next };
	if (claim.state === "held" && now < claim.until)
		return { kind: "in_progress", retry_at: Math.min(claim.until, now + CLAIM_RECHECK_MS) };
	return { kind: "unknown", owner: claim.owner };
}

/**
 * What the owner says became of it; `keep` when it tries again. The new claim, null when the key is free, or `unchanged`:
 * another's key, or one that is settled. A lost owner may still tell the truth, however late, while the key is its own.
 */
export function settleClaim(
	claim: Claim | null,
	now: number,
	tool_call_id: string,
	settle: "done" | "unknown" | "free" | "keep",
): Claim | null | "unchanged" {
	if (claim === null || claim.owner !== tool_call_id || claim.state !== "held" || settle === "keep") return "unchanged";
	return settle === "free" ? null : { owner: tool_call_id, state: settle, until: now + CLAIM_WINDOW_MS };
}

/** From when on a claim binds nobody; ms since the epoch. */
export function claimEnds(claim: Claim): number {
	return claim.state === "held" ? claim.until + CLAIM_WINDOW_MS : claim.until;
}
