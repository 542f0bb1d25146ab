/**
 * ToolGate: the one object per tenant and tool that says whether a call may start now (I2, I3, I5, I7): breaker, rate,
 * pause, claims, kept results. Every request is one synchronous step over storage, so an object that is evicted between
 * two requests knows what it knew. It judges no permission and calls no tool. Runs ask it, after policy and approval.
 */
import { DurableObject } from "cloudflare:workers";
import { invariant } from "#core/invariant.ts";
import { admit, endProbe, record, viewBreaker } from "#core/invoke/breaker.ts";
import { settleClaim, takeClaim } from "#core/invoke/claim-window.ts";
import { type GateNeeds, gateName } from "#core/invoke/gate-keys.ts";
import { pauseUntil, takeToken } from "#core/invoke/rate-bucket.ts";
import { CACHE_ENTRY_MAX_BYTES, RESULT_MAX_BYTES, SNAPSHOT_TTL_MS } from "#core/limits.ts";
import type { Clock } from "#core/ports.ts";
import type { GateAnswer, GateReport, ToolGateApi } from "./api.ts";
import { GateStore } from "./store.ts";

type Ask<M extends keyof ToolGateApi> = Parameters<ToolGateApi[M]>[0];
type Named = { readonly v: 1; readonly tenant_id: string; readonly tool_id: string };

/** The part of TenantControl that lists open breakers for every run of the tenant; null takes a tool off the list. */
export type BreakerBoard = { breaker(ask: Named & { readonly until: number | null }): Promise<unknown> };

export class ToolGate extends DurableObject<Env> implements ToolGateApi {
	readonly #store: GateStore;
	readonly #clock: Clock;
	#publishing = false;

	constructor(ctx: DurableObjectState, env: Env, clock: Clock = Date.now) {
		super(ctx, env);
		this.#store = new GateStore(ctx.storage);
		this.#clock = clock;
	}

	async enter(ask: Ask<"enter">): Promise<GateAnswer> {
		return this.#step(ask, (now) => this.#enter(ask, now));
	}

	async leave(ask: Ask<"leave">): Promise<GateReport> {
		return this.#step(ask, (now) => {
			this.#leave(ask, now);
			return this.#report(ask.needs.criticality, now);
		});
	}

	async report(ask: Ask<"report">): Promise<GateReport> {
		return this.#step(ask, (now) => {
			const { breaker, paused_until } = this.#store.state();
			const ended = { successes: ask.successes, failures: ask.failures, started_at: ask.started_at ?? null };
			this.#store.patch({
				breaker: record(breaker, now, ask.criticality, ended),
				paused_until: pauseUntil(paused_until, now, ask.pause_ms),
			});
			return this.#report(ask.criticality, now);
		});
	}

	async invalidate(ask: Ask<"invalidate">): Promise<void> {
		this.#step(ask, () => {
			this.#store.dropCached();
			this.#store.patch({ generation: this.#store.state().generation + 1 });
		});
	}

	async view(ask: Ask<"view">): Promise<Awaited<ReturnType<ToolGateApi["view"]>>> {
		return this.#step(ask, (now) => {
			const { hits, misses, paused_until } = this.#store.state();
			return {
				...this.#report(ask.criticality, now),
				cached: this.#store.count("cached", now),
				claims: this.#store.count("claims", now),
				hits,
				misses,
				paused_until: paused_until !== null && paused_until > now ? paused_until : null,
			};
		});
	}

	override async alarm(): Promise<void> {
		const now = this.#clock();
		this.#store.transaction(() => {
			this.#store.patch({ alarm_at: null });
			this.#store.sweep(now);
			this.#store.arm(now);
		});
	}

	/** What costs least is asked first, and nothing is taken before everything has said yes. */
	#enter({ tool_call_id: id, needs, hold_ms }: Ask<"enter">, now: number): GateAnswer {
		const store = this.#store;
		const state = store.state();
		const hold_until = now + Math.max(1, hold_ms);
		const out = store.pass(id);
		// Its answer was lost: what it took, it has.
		const again = out !== null && now < out.hold_until;

		if (needs.cache !== null && !again) {
			const stored = store.read("cache", needs.cache.key, now);
			if (stored !== null) {
				store.patch({ hits: state.hits + 1 });
				return { verdict: "cached", stored };
			}
		}
		const claim = needs.claim === null ? null : takeClaim(store.claim(needs.claim.key), now, id, hold_until);
		if (claim?.kind === "in_progress") return { verdict: "wait", reason: "claim", retry_at: claim.retry_at };
		if (claim?.kind === "unknown") return { verdict: "replay_unknown", tool_call_id: claim.owner };
		if (claim?.kind === "done" && needs.claim !== null) {
			const first = store.read("claim", needs.claim.key, now);
			// Done, but its result could not be kept: that it is done holds all the same.
			return first === null ? { verdict: "replay_unknown", tool_call_id: claim.owner } : { verdict: "replay", first };
		}
		const admission = admit(state.breaker, now, id, hold_until);
		if (!admission.go) {
			const snapshot = needs.snapshot === null ? null : store.read("snapshot", needs.snapshot.key, now);
			return { verdict: "open", until: admission.until, snapshot };
		}
		if (state.paused_until !== null && now < state.paused_until)
			return { verdict: "wait", reason: "paused", retry_at: state.paused_until };
		const token = needs.rate_limit === null || again ? null : takeToken(state.bucket, needs.rate_limit, now);
		if (token?.ok === false) return { verdict: "wait", reason: "rate_limit", retry_at: token.retry_at };

		store.putPass(id, { entered_at: now, hold_until, generation: state.generation });
		if (needs.claim !== null && claim?.kind === "owner") store.putClaim(needs.claim.key, claim.next);
		store.patch({
			breaker: admission.next,
			bucket: token?.ok ? token.next : state.bucket,
			misses: state.misses + (needs.cache !== null && !again ? 1 : 0),
		});
		return { verdict: "go", probe: admission.probe, hold_until };
	}

	#leave({ tool_call_id: id, needs, outcome, settle, stored, pause_ms }: Ask<"leave">, now: number): void {
		const store = this.#store;
		if (needs.claim !== null) {
			const claim = settleClaim(store.claim(needs.claim.key), now, id, settle);
			if (claim !== "unchanged") store.putClaim(needs.claim.key, claim);
			if (claim !== "unchanged" && claim?.state === "done" && stored !== null)
				store.keep("claim", needs.claim.key, stored, claim.until, now, RESULT_MAX_BYTES);
		}
		const pass = store.pass(id);
		if (pass === null) return;
		store.dropPass(id);
		const { breaker, paused_until, generation } = store.state();
		const ended = {
			successes: outcome === "success" ? 1 : 0,
			failures: outcome === "fault" ? 1 : 0,
			started_at: pass.entered_at,
		};
		store.patch({
			breaker: endProbe(breaker, now, id, outcome) ?? record(breaker, now, needs.criticality, ended),
			paused_until: pauseUntil(paused_until, now, pause_ms),
		});
		// O13: no failure is kept, and nothing of a call that acts; a claim says that it does.
		if (outcome !== "success" || stored === null || needs.claim !== null) return;
		// Age counts from when the tool said it, however late that arrives here.
		const said = Math.min(stored.at, now);
		if (needs.cache !== null && pass.generation === generation)
			store.keep("cache", needs.cache.key, stored, said + needs.cache.ttl_ms, now, CACHE_ENTRY_MAX_BYTES);
		if (needs.snapshot !== null)
			store.keep("snapshot", needs.snapshot.key, stored, said + SNAPSHOT_TTL_MS, now, CACHE_ENTRY_MAX_BYTES);
	}

	#report(criticality: GateNeeds["criticality"], now: number): GateReport {
		return { breaker: viewBreaker(this.#store.state().breaker, now, criticality) };
	}

	/** One request: one transaction without an await, then what it changed is made known. */
	#step<T>(named: Named, work: (now: number) => T): T {
		const name = this.ctx.id.name;
		// Asked under another name, this object would mix two tenants' results.
		invariant(
			name === undefined || name === gateName(named.tenant_id, named.tool_id),
			"a gate answers to its own name",
		);
		const now = this.#clock();
		const answer = this.#store.transaction(() => {
			this.#store.sweep(now);
			const done = work(now);
			this.#store.arm(now);
			return done;
		});
		this.ctx.waitUntil(this.#publish(named));
		return answer;
	}

	/**
	 * Tells TenantControl until the two agree, in order. It answers for nothing: when it fails, the report that caused it is
	 * saved all the same, and the next request to this gate tries again.
	 */
	async #publish({ tenant_id, tool_id }: Named): Promise<void> {
		if (this.#publishing) return;
		this.#publishing = true;
		try {
			for (;;) {
				const { breaker, published } = this.#store.state();
				const { until } = breaker;
				if (until === published) return;
				const board = this.env.TENANT_CONTROL.getByName(tenant_id) as unknown as BreakerBoard;
				await board.breaker({ v: 1, tenant_id, tool_id, until });
				this.#store.patch({ published: until });
			}
		} catch {
			// Runs that are not told pay a refused call each, or a hop; the gate itself stays exact.
		} finally {
			this.#publishing = false;
		}
	}
}
