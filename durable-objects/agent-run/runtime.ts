/**
 * The life of one run in memory: load -> transition -> persist -> perform. Steps are synchronous (apply.ts); what is
 * asynchronous happens before one (gather) or after it (effects). Holds no policy. Used by the AgentRun object.
 */
import { D1EvidenceLedger } from "#adapters/d1/d1-evidence-ledger.ts";
import { R2Artifacts } from "#adapters/r2/r2-artifacts.ts";
import { storeLargeResult } from "#adapters/r2/store-large-result.ts";
import { randomBytes } from "#adapters/random.ts";
import type { ExecutorApi } from "#adapters/wasm/executor-api.ts";
import { hex, runOf } from "#core/ids.ts";
import { invariant } from "#core/invariant.ts";
import { APPROVAL_FLUSH_MS, RUNNING_AFTER_MS } from "#core/limits.ts";
import { derivedTimers } from "#core/run/derived-timers.ts";
import type { Effect, LogRow } from "#core/run/effect.ts";
import type { RunEvent } from "#core/run/event.ts";
import { isOut } from "#core/run/flight.ts";
import type { Kit } from "#core/run/kit.ts";
import type { CallRecord, DueKind, RunState, World } from "#core/run/state.ts";
import type { Step } from "#core/run/transition.ts";
import { FINISHED, LIVE } from "#core/run/view.ts";
import type { AgentRunApi } from "./api.ts";
import { type Alongside, apply, type Holder } from "./apply.ts";
import { type Invokers, invokeTool } from "./choke-point.ts";
import { Deadlines } from "./deadlines.ts";
import { definition, offer } from "./definitions.ts";
import { Flusher } from "./flush.ts";
import { GateClient } from "./gate-client.ts";
import { Gatherer } from "./gather.ts";
import { makeInvokers } from "./invokers.ts";
import { makeKit } from "./make-kit.ts";
import { places } from "./places.ts";
import { planThrew, planTurn } from "./planners.ts";
import { RecentCalls } from "./recent-calls.ts";
import { SemanticChecks } from "./semantic-checks.ts";
import { RunStore } from "./store.ts";
import { Stream } from "./stream.ts";
import { untilTaken } from "./until-taken.ts";
import { Waiters } from "./waiters.ts";

export class Runtime {
	readonly store: RunStore;
	readonly stream: Stream;
	readonly #deadlines = new Deadlines();
	readonly waiters = new Waiters(this.#deadlines);
	readonly #ctx: DurableObjectState;
	readonly #env: Env;
	readonly #executor: ExecutorApi;
	readonly #boot_id = hex(randomBytes(8));
	readonly #holder: Holder;
	readonly flusher: Flusher;
	readonly checks: SemanticChecks;
	readonly #flights = new Map<string, AbortController>();
	#planning: AbortController | null = null;
	#invokers: Invokers | null = null;
	#gatherer: Gatherer | null = null;
	#gates: GateClient | null = null;
	readonly #artifacts: R2Artifacts;
	#recovered: Promise<void> | null = null;
	readonly recent: RecentCalls;
	/** Asks for a link of a new approval and prints it; the development build only. */
	onApproval: ((approval_id: string) => Promise<void>) | null = null;

	constructor(ctx: DurableObjectState, env: Env, executor: ExecutorApi) {
		this.#ctx = ctx;
		this.#env = env;
		this.#executor = executor;
		this.store = new RunStore(ctx.storage, () => derivedTimers(this.state));
		this.store.timers.over = () => this.state !== null && FINISHED.has(this.state.run.status);
		this.stream = new Stream(ctx, this.store, () => this.state?.run.run_id ?? "");
		this.recent = new RecentCalls(this.store);
		this.#artifacts = new R2Artifacts(env.ARTIFACTS, randomBytes);
		this.flusher = new Flusher(ctx, this.store, new D1EvidenceLedger(env.DB), () => this.state?.run ?? null);
		this.#holder = { state: null, store: this.store, kit: () => this.#kit() };
		this.checks = new SemanticChecks(executor, this.#holder, () => this.world(true));
		if (this.store.exists()) {
			void ctx.blockConcurrencyWhile(async () => {
				await this.store.timers.remember();
				this.store.upgrade();
				this.#holder.state = this.store.load();
			});
		}
	}

	get state(): RunState | null {
		return this.#holder.state;
	}

	/** Before anything else in a new life: attempts of the last one are recovered by class of call (I9). */
	async ready(): Promise<RunState | null> {
		if (this.state !== null) {
			// A recovery that failed is tried by the next request; remembered, its fault would answer all of this life.
			this.#recovered ??= this.#recover().catch((error: unknown) => {
				this.#recovered = null;
				throw error;
			});
			await this.#recovered;
		}
		return this.state;
	}

	async #recover(): Promise<void> {
		const { state } = this;
		if (state === null) return;
		if (state.run.seq > this.store.flushed()) this.flusher.soon();
		const orphaned = [...state.calls.values()].some((call) => isOut(call.state) && call.boot_id !== this.#boot_id);
		// A plan that waits for its next try was not lost: its timer is.
		const unplanned = state.run.status === "planning" && !this.store.timers.has("plan");
		if (orphaned || unplanned) this.step({ kind: "booted", world: await this.world() });
	}

	#kit(): Kit {
		const tenant_id = this.state?.run.tenant_id ?? this.#tenant_id;
		invariant(tenant_id !== null, "a run has a tenant");
		return makeKit(this.#env, {
			tenant_id,
			boot_id: this.#boot_id,
			store: this.store,
			takePlace: (concurrency, tool_call_id) => places.take(concurrency, tenant_id, tool_call_id, this.#wake),
		});
	}
	#tenant_id: string | null = null;

	/** For a run that is only coming to be: whose keys sign it. */
	begin(tenant_id: string): void {
		this.#tenant_id = tenant_id;
		this.#recovered = Promise.resolve();
	}

	get gates(): GateClient {
		const tenant_id = this.state?.run.tenant_id;
		invariant(tenant_id !== undefined, "only a run that exists has gates");
		this.#gates ??= new GateClient(this.#env, tenant_id, (tool_id, breaker) =>
			this.#gatherer?.breakerSeen(tool_id, breaker),
		);
		return this.#gates;
	}

	/** What the next step has to know. `fresh` where a person acts. */
	async world(fresh = false): Promise<World> {
		const { state } = this;
		invariant(state !== null, "only a run that exists looks at the world");
		return this.worldOf(state.run.tenant_id, state.run.principal.principal_id, state.run.authority, fresh);
	}

	async worldOf(
		tenant_id: string,
		principal_id: string,
		authority: Parameters<Gatherer["world"]>[2],
		fresh: boolean,
	): Promise<World> {
		this.#gatherer ??= new Gatherer(this.#env, tenant_id);
		const world = await this.#gatherer.world(this.state, principal_id, authority, fresh);
		if (world.tools !== null) offer([...world.tools, ...(world.pinned ?? [])]);
		return world;
	}

	/** One step, and what follows from it. Resolves nothing: `announced` is for who must answer after an approval is known. */
	step(event: RunEvent, alongside?: Alongside): Step & { readonly announced: Promise<void> } {
		const step = apply(this.#holder, event, alongside);
		const announced: Promise<void>[] = [];
		if (step.rows.length > 0) {
			const logged: LogRow[] = [];
			let pressing = this.state !== null && FINISHED.has(this.state.run.status);
			for (const row of step.rows)
				if (row.table === "log") logged.push(row.doc);
				else if (row.table === "call") this.#moved(row.doc);
				else if (row.table === "approval") pressing = true;
			this.stream.publish(logged);
			this.flusher.saw(logged, pressing);
		}
		for (const effect of step.effects)
			if (effect.kind === "announce") announced.push(this.#announce(effect.approval_id));
			else if (effect.kind === "abort") for (const id of effect.tool_call_ids) this.#flights.get(id)?.abort();
			else this.#ctx.waitUntil(this.#perform(effect));
		// Nobody waits for the answer of a planner whose run was stopped.
		if (this.state?.run.status !== "planning") this.#planning?.abort();
		this.waiters.look();
		return { ...step, announced: Promise.all(announced).then(() => undefined) };
	}

	#moved(call: CallRecord): void {
		this.recent.remember(call);
		// What ended while it stood in line leaves the line; what is out gives its place back itself.
		const { tool_call_id, state } = call;
		if (!LIVE.has(state) && !this.#flights.has(tool_call_id)) places.release(tool_call_id, this.#wake);
	}

	#perform(effect: Exclude<Effect, { kind: "announce" | "abort" }>): Promise<void> {
		switch (effect.kind) {
			case "invoke":
				return this.#invoke(effect);
			case "plan":
				return this.#plan(effect.turn);
			case "enter":
				return this.#enter(effect);
			case "leave":
				return this.#leave(effect);
			case "invalidate":
				return this.gates.invalidate(effect.tool_ids);
		}
	}

	async #invoke({ call, attempt, timeout_ms }: Extract<Effect, { kind: "invoke" }>): Promise<void> {
		const { state } = this;
		invariant(state !== null, "an effect belongs to a run");
		// Before the call counts as out: a deployment whose tools cannot be set up keeps no place and says nothing of running.
		this.#invokers ??= makeInvokers(this.#env, this.#executor);
		const cancel = new AbortController();
		this.#flights.set(call.tool_call_id, cancel);
		const early = this.#deadlines.set(RUNNING_AFTER_MS, () =>
			this.step({ kind: "running", tool_call_id: call.tool_call_id, attempt }),
		);
		const tool = definition(this.store, call.definition_hash ?? "");
		const dispatched = { run: state.run, call, attempt, timeout_ms, tool };
		const answer = await invokeTool(this.#invokers, dispatched, cancel, this.#deadlines);
		early();
		places.release(call.tool_call_id, this.#wake);
		const place = { tenant_id: state.run.tenant_id, run_id: state.run.run_id, tool_call_id: call.tool_call_id };
		const outcome = await storeLargeResult(answer, place, this.#artifacts);
		// Decision 16: a failure is reported before the next step, which then sees the breaker; a success pays no hop.
		if (call.gate !== "passed")
			await this.gates.report(tool.version.descriptor, outcome, Date.parse(call.attempts.at(-1)?.started_at ?? ""));
		if (this.#flights.get(call.tool_call_id) === cancel) this.#flights.delete(call.tool_call_id);
		const settled = { kind: "settled", tool_call_id: call.tool_call_id, attempt, outcome } as const;
		await untilTaken(async () => this.step({ ...settled, world: await this.world() }));
	}

	/** Hands a place on to the next call, whosever run it is of. */
	readonly #wake = async (tool_call_id: string): Promise<void> => {
		const run_id = runOf(tool_call_id);
		invariant(run_id !== undefined, "a call id names its run");
		await (this.#env.AGENT_RUN.getByName(run_id) as unknown as AgentRunApi).woken({ v: 1, tool_call_id });
	};

	/** A place of the call's concurrency class is free for it now. */
	async woken(tool_call_id: string): Promise<void> {
		if ((await this.ready()) !== null)
			this.step({ kind: "due", what: "start", ref: tool_call_id, world: await this.world() });
		// Not started after all: it asks again when it may start, and keeps nobody from the place until then.
		if (!this.#flights.has(tool_call_id)) places.release(tool_call_id, this.#wake);
	}

	async #enter({ call, needs, hold_ms }: Extract<Effect, { kind: "enter" }>): Promise<void> {
		const answer = await this.gates.enter(call.tool_id, call.tool_call_id, needs, hold_ms);
		// No answer: the timer in storage asks again.
		if (answer !== null)
			this.step({ kind: "gated", tool_call_id: call.tool_call_id, answer, world: await this.world() });
	}

	async #leave({ kind: _kind, ...effect }: Extract<Effect, { kind: "leave" }>): Promise<void> {
		if (await this.gates.leave(effect))
			this.step({ kind: "left", tool_call_id: effect.tool_call_id, settle: effect.settle });
	}

	async #plan(turn: number): Promise<void> {
		const { state } = this;
		if (state === null || state.run.status !== "planning" || state.run.turn !== turn) return;
		this.#planning?.abort();
		const cancel = new AbortController();
		this.#planning = cancel;
		const outcome = await planTurn(
			state,
			{
				env: this.#env,
				store: this.store,
				tool: (hash) => definition(this.store, hash),
				onDelta: (content) => this.stream.delta({ turn, content }),
			},
			cancel.signal,
		);
		if (this.#planning !== cancel) return;
		this.#planning = null;
		try {
			const event = outcome.kind === "plan_failed" ? outcome : { ...outcome, world: await this.world() };
			this.step(event.kind === "planned" && this.checks.needed(event) ? await this.checks.gather(event) : event);
		} catch (error) {
			this.step(planThrew(state.run, error, "heard"));
		}
	}

	/** Decision 41: the approval's index row goes first, within 2 s; with D1 away the cursor brings it later. */
	async #announce(approval_id: string): Promise<void> {
		await this.flusher.within(APPROVAL_FLUSH_MS);
		if (this.onApproval !== null) await this.onApproval(approval_id);
	}

	/** Serves the timers that are due and returns: a tool or a planner is started, never awaited (decision 5). */
	async alarm(): Promise<void> {
		const ready = async (): Promise<boolean> => (await this.ready()) !== null;
		await this.store.timers.ring(Date.now, ready, (kind, ref) => this.#serve(kind, ref));
	}

	async #serve(kind: DueKind, ref: string): Promise<void> {
		// Moves its own timer: left in the past, it would ring again at once for as long as D1 takes.
		if (kind === "flush") return this.flusher.soon();
		const world = await this.world();
		if (kind === "leave") this.step({ kind: "due", what: kind, ref, call: this.store.call(ref) ?? null, world });
		else this.step({ kind: "due", what: kind, ref, world });
	}
}
