/**
 * A tool's gate in memory, built from the pure parts that the ToolGate object is built from, in its order: cache, claim,
 * breaker, pause, rate; nothing is taken before everything has said yes. Shared by all runs of a schedule. It stores
 * nothing on disk and never dies: its deaths are lost answers, which the town makes.
 */
import { admit, type Breaker, CLOSED_BREAKER, endProbe, record } from "#core/invoke/breaker.ts";
import { type Claim, settleClaim, takeClaim } from "#core/invoke/claim-window.ts";
import type { GateAnswer, Stored } from "#core/invoke/gate-answer.ts";
import type { GateNeeds } from "#core/invoke/gate-keys.ts";
import { pauseUntil, type RateBucket, takeToken } from "#core/invoke/rate-bucket.ts";
import { CLAIM_WINDOW_MS, SNAPSHOT_TTL_MS } from "#core/limits.ts";
import type { Effect } from "#core/run/effect.ts";

export type Leave = Extract<Effect, { kind: "leave" }>;
type Pass = { readonly entered_at: number; readonly hold_until: number; readonly generation: number };

export class GateTwin {
	breaker: Breaker = CLOSED_BREAKER;
	readonly passes = new Map<string, Pass>();
	readonly claims = new Map<string, Claim>();
	readonly #kept = new Map<string, { readonly stored: Stored; readonly until: number }>();
	#bucket: RateBucket | null = null;
	#paused: number | null = null;
	#generation = 0;

	enter(id: string, needs: GateNeeds, hold_ms: number, now: number): GateAnswer {
		const hold_until = now + Math.max(1, hold_ms);
		const out = this.passes.get(id);
		const again = out !== undefined && now < out.hold_until;
		if (needs.cache !== null && !again) {
			const stored = this.#read("cache", needs.cache.key, now);
			if (stored !== null) return { verdict: "cached", stored };
		}
		const { claim: wanted } = needs;
		const claim = wanted === null ? null : takeClaim(this.claims.get(wanted.key) ?? null, now, id, hold_until);
		if (claim?.kind === "in_progress") return { verdict: "wait", reason: "claim", retry_at: claim.retry_at };
		if (claim?.kind === "unknown") return { verdict: "replay_unknown", tool_call_id: claim.owner };
		if (claim?.kind === "done" && wanted !== null) {
			const first = this.#read("claim", wanted.key, now);
			return first === null ? { verdict: "replay_unknown", tool_call_id: claim.owner } : { verdict: "replay", first };
		}
		const admission = admit(this.breaker, now, id, hold_until);
		if (!admission.go) {
			const snapshot = needs.snapshot === null ? null : this.#read("snapshot", needs.snapshot.key, now);
			return { verdict: "open", until: admission.until, snapshot };
		}
		if (this.#paused !== null && now < this.#paused)
			return { verdict: "wait", reason: "paused", retry_at: this.#paused };
		const token = needs.rate_limit === null || again ? null : takeToken(this.#bucket, needs.rate_limit, now);
		if (token?.ok === false) return { verdict: "wait", reason: "rate_limit", retry_at: token.retry_at };
		this.passes.set(id, { entered_at: now, hold_until, generation: this.#generation });
		if (wanted !== null && claim?.kind === "owner") this.claims.set(wanted.key, claim.next);
		this.breaker = admission.next;
		if (token?.ok === true) this.#bucket = token.next;
		return { verdict: "go", probe: admission.probe, hold_until };
	}

	leave({ tool_call_id: id, needs, outcome, settle, stored, pause_ms }: Leave, now: number): void {
		if (needs.claim !== null) {
			const { key } = needs.claim;
			const claim = settleClaim(this.claims.get(key) ?? null, now, id, settle);
			if (claim === null) this.claims.delete(key);
			else if (claim !== "unchanged") {
				this.claims.set(key, claim);
				if (claim.state === "done" && stored !== null) this.#keep("claim", key, stored, claim.until);
			}
		}
		const pass = this.passes.get(id);
		if (pass === undefined) return;
		this.passes.delete(id);
		const ended = {
			successes: outcome === "success" ? 1 : 0,
			failures: outcome === "fault" ? 1 : 0,
			started_at: pass.entered_at,
		};
		this.breaker = endProbe(this.breaker, now, id, outcome) ?? record(this.breaker, now, needs.criticality, ended);
		this.#paused = pauseUntil(this.#paused, now, pause_ms);
		if (outcome !== "success" || stored === null || needs.claim !== null) return;
		const said = Math.min(stored.at, now);
		if (needs.cache !== null && pass.generation === this.#generation)
			this.#keep("cache", needs.cache.key, stored, said + needs.cache.ttl_ms);
		if (needs.snapshot !== null) this.#keep("snapshot", needs.snapshot.key, stored, said + SNAPSHOT_TTL_MS);
	}

	/** A failure of a call that needed no pass. */
	report(criticality: GateNeeds["criticality"], started_at: number, now: number): void {
		this.breaker = record(this.breaker, now, criticality, { successes: 0, failures: 1, started_at });
	}

	invalidate(): void {
		for (const key of this.#kept.keys()) if (key.startsWith("cache:")) this.#kept.delete(key);
		this.#generation += 1;
	}

	sweep(now: number): void {
		for (const [id, pass] of this.passes) if (pass.hold_until + CLAIM_WINDOW_MS <= now) this.passes.delete(id);
	}

	#read(kind: string, key: string, now: number): Stored | null {
		const found = this.#kept.get(`${kind}:${key}`);
		return found !== undefined && found.until > now ? found.stored : null;
	}

	#keep(kind: string, key: string, stored: Stored, until: number): void {
		this.#kept.set(`${kind}:${key}`, { stored, until });
	}
}
