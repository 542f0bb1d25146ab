/**
 * AgentRun: one Durable Object per run. It checks who asks, gathers, takes one synchronous step, and answers; every
 * decision is the core machine's. An agent's own planner, a person at a page and an alarm all come in here.
 */
import { DurableObject } from "cloudflare:workers";
import { isDevelopment } from "#adapters/http/address-rules.ts";
import type { ExecutorApi } from "#adapters/wasm/executor-api.ts";
import { EVIDENCE_PAGE_MAX_ROWS } from "#core/limits.ts";
import { toPlannerDecision } from "#core/planner/decision.ts";
import { mayRead, maySteer } from "#core/policy/run-access.ts";
import type { Caller } from "#core/principal.ts";
import type { StepProblem } from "#core/run/effect.ts";
import { inFlight } from "#core/run/flight.ts";
import type { RunState } from "#core/run/state.ts";
import { type ApprovalView, type CallView, RESTING, type RunView, type TurnView } from "#core/run/view.ts";
import type {
	AgentRunApi,
	Ask,
	CreateRun,
	Decide,
	DecideApproval,
	LinkView,
	Listen,
	Recording,
	Reply,
	Say,
	Wait,
} from "./api.ts";
import { ApprovalDesk } from "./approval-desk.ts";
import { answerCalls, sayWords } from "./caller-words.ts";
import { announceLink } from "./dev-link.ts";
import { checkEvidence, evidencePage } from "./evidence-desk.ts";
import { Links } from "./links.ts";
import { plannerMissing } from "./planners.ts";
import { pricesOf } from "./prices.ts";
import { recordingOf } from "./record.ts";
import { no, notFound, refusal } from "./replies.ts";
import { Runtime } from "./runtime.ts";
import { digestOf, tenantKeys } from "./signing.ts";
import { callView, exposureView, messagesView, runView, turnView } from "./views.ts";

export class AgentRun extends DurableObject<Env> implements AgentRunApi {
	readonly #runtime: Runtime;
	readonly #desk: ApprovalDesk;

	constructor(ctx: DurableObjectState, env: Env) {
		super(ctx, env);
		const exports = ctx.exports as unknown as { Executor: ExecutorApi };
		this.#runtime = new Runtime(ctx, env, exports.Executor);
		const links = new Links(env, this.#runtime);
		this.#desk = new ApprovalDesk(this.#runtime, links);
		if (isDevelopment())
			this.#runtime.onApproval = (approval_id) => announceLink(env, this.#runtime, links, approval_id);
	}

	async create(ask: Ask<CreateRun & Wait>): Promise<Reply<RunView>> {
		const runtime = this.#runtime;
		if (runtime.state !== null) return this.#again(ask);
		const missing = plannerMissing(this.env, ask.planner.kind);
		if (missing !== null) return no(503, "planner_unavailable", missing);
		const { caller } = ask;
		const world = await runtime.worldOf(caller.tenant_id, caller.principal_id, caller.authority, true);
		if (world.lease === null || world.tools === null)
			return no(503, "control_unavailable", "the tenant's control could not be reached; try again");
		if (runtime.state !== null) return this.#again(ask);
		runtime.begin(caller.tenant_id);
		const { v: _v, wait_ms, tools: pinned, planner: asked, ...request } = ask;
		const { script, ...planner } = asked;
		const step = runtime.step(
			{
				kind: "created",
				...request,
				pinned,
				planner,
				prices: pricesOf(this.env, asked),
				script_length: script.length,
				world,
			},
			{ before: () => runtime.store.create(script) },
		);
		if (step.problem !== null) return refusal(step.problem);
		await step.announced;
		await this.#rested(wait_ms);
		return this.#view();
	}

	/** A repeated Idempotency-Key: the same request gets its run, another one is told. */
	async #again(ask: Ask<CreateRun & Wait>): Promise<Reply<RunView>> {
		const state = await this.#runtime.ready();
		if (state === null || !mayRead(ask.caller, state.run)) return notFound();
		if (state.run.request_hash !== ask.request_hash)
			return no(409, "idempotency_conflict", "this Idempotency-Key was used for another request");
		await this.#rested(ask.wait_ms);
		return this.#view();
	}

	async read(ask: Ask<Wait & { readonly after_seq: number | null }>): Promise<Reply<RunView>> {
		if (!(await this.#readable(ask.caller))) return notFound();
		await this.#rested(ask.wait_ms, ask.after_seq ?? -1);
		return this.#view();
	}

	async decide(ask: Ask<Decide>): Promise<Reply<string | TurnView>> {
		const runtime = this.#runtime;
		const state = await this.#steerable(ask.caller);
		if (state === null) return notFound();
		if (state.run.planner.kind !== "external")
			return no(409, "not_external", "this run has a planner of its own and takes no decisions from outside");
		const decision = toPlannerDecision(ask.decision);
		const world = await runtime.world();
		// The turn is said below, when nothing can move it any more.
		const planned = { kind: "planned", turn: 0, decision, call_as_text: false, results: null, world } as const;
		const event = runtime.checks.needed(planned) ? await runtime.checks.gather(planned) : planned;
		// Nothing is awaited from here to the step: two requests under one key are one decision.
		const key = ask.idempotency_key === null ? null : `decide:${ask.idempotency_key}`;
		const hash = key === null ? "" : digestOf(ask.decision);
		const before = key === null ? undefined : runtime.store.request(key);
		if (before !== undefined && before.hash !== hash)
			return no(409, "idempotency_conflict", "this Idempotency-Key was used for another decision");
		let turn = before?.turn ?? null;
		if (turn === null) {
			const at = runtime.state?.run.turn ?? 0;
			const step = runtime.step(
				{ ...event, turn: at },
				{ after: () => key !== null && runtime.store.rememberRequest(key, hash, at) },
			);
			if (step.problem !== null) return refusal(step.problem);
			await step.announced;
			turn = at;
		}
		await this.#turnSettled(turn, ask.wait_ms);
		const view = turnView(runtime.state as RunState, runtime.store, runtime.recent.ofTurn(turn));
		return { ok: true, value: ask.as_text === true ? JSON.stringify(view) : view };
	}

	async messages(ask: Parameters<AgentRunApi["messages"]>[0]): ReturnType<AgentRunApi["messages"]> {
		const state = await this.#readable(ask.caller);
		if (state === null) return notFound();
		return { ok: true, value: messagesView(state.run, this.#runtime.store, ask.turn) };
	}

	async say(ask: Ask<Wait & Say>): Promise<Reply<RunView>> {
		if ((await this.#steerable(ask.caller)) === null) return notFound();
		const problem = await sayWords(this.#runtime, ask);
		if (problem !== null) return problem;
		await this.#rested(ask.wait_ms);
		return this.#view();
	}

	async answer(ask: Parameters<AgentRunApi["answer"]>[0]): Promise<Reply<RunView>> {
		return answerCalls(this.#runtime, ask);
	}

	async cancel(ask: Ask): Promise<Reply<RunView>> {
		if ((await this.#steerable(ask.caller)) === null) return notFound();
		return (
			this.#act(this.#runtime.step({ kind: "cancelled", by: ask.caller.name, world: await this.#runtime.world() })) ??
			this.#view()
		);
	}

	async resume(ask: Ask<Wait>): Promise<Reply<RunView>> {
		if ((await this.#steerable(ask.caller)) === null) return notFound();
		const problem = this.#act(this.#runtime.step({ kind: "resumed", world: await this.#runtime.world(true) }));
		if (problem !== null) return problem;
		await this.#rested(ask.wait_ms);
		return this.#view();
	}

	async cancelCall(ask: Ask<{ readonly tool_call_id: string }>): Promise<Reply<RunView>> {
		if ((await this.#steerable(ask.caller)) === null) return notFound();
		const world = await this.#runtime.world();
		return (
			this.#act(
				this.#runtime.step({ kind: "call_cancelled", tool_call_id: ask.tool_call_id, by: ask.caller.name, world }),
			) ?? this.#view()
		);
	}

	async recording(ask: Ask): Promise<Reply<Recording>> {
		const state = await this.#readable(ask.caller);
		return state === null ? notFound() : recordingOf(state.run, this.#runtime.store);
	}

	async settleOutcome(ask: Parameters<AgentRunApi["settleOutcome"]>[0]): Promise<Reply<RunView>> {
		if ((await this.#steerable(ask.caller)) === null) return notFound();
		const world = await this.#runtime.world(true);
		const call = this.#runtime.store.call(ask.tool_call_id);
		if (call === undefined) return notFound();
		const { outcome, result, reason, caller: by } = ask;
		return (
			this.#act(this.#runtime.step({ kind: "outcome_stated", call, outcome, result, reason, by, world })) ??
			this.#view()
		);
	}

	async call(ask: Ask<{ readonly tool_call_id: string }>): Promise<Reply<CallView>> {
		if ((await this.#readable(ask.caller)) === null) return notFound();
		const call = this.#runtime.store.call(ask.tool_call_id);
		return call === undefined ? notFound() : { ok: true, value: callView(call, true) };
	}

	async exposure(ask: Ask): ReturnType<AgentRunApi["exposure"]> {
		const state = await this.#readable(ask.caller);
		if (state === null) return notFound();
		return { ok: true, value: exposureView(state, this.#runtime.store) };
	}

	async evidence(ask: Parameters<AgentRunApi["evidence"]>[0]): ReturnType<AgentRunApi["evidence"]> {
		const state = await this.#readable(ask.caller);
		if (state === null) return notFound();
		const page = evidencePage(this.#runtime.store, ask.after_seq ?? 0, ask.limit ?? EVIDENCE_PAGE_MAX_ROWS);
		return { ok: true, value: { ...page, head_hash: state.run.head_hash } };
	}

	async verify(ask: Ask): ReturnType<AgentRunApi["verify"]> {
		const state = await this.#readable(ask.caller);
		if (state === null) return notFound();
		const { verify } = tenantKeys(this.env.BELAY_MASTER_SECRET, state.run.tenant_id);
		return { ok: true, value: checkEvidence(this.#runtime.store, state.run, verify) };
	}

	async approval(ask: Ask<{ readonly approval_id: string }>): Promise<Reply<ApprovalView>> {
		return this.#desk.view(ask.caller, ask.approval_id);
	}
	async decideApproval(ask: Ask<DecideApproval>): Promise<Reply<ApprovalView>> {
		return this.#desk.decide(ask);
	}
	async editApproval(ask: Parameters<AgentRunApi["editApproval"]>[0]): Promise<Reply<ApprovalView>> {
		return this.#desk.edit(ask);
	}
	async issueLink(ask: Parameters<AgentRunApi["issueLink"]>[0]): ReturnType<AgentRunApi["issueLink"]> {
		return this.#desk.issueLink(ask);
	}
	async linkOfRequest(ask: Parameters<AgentRunApi["linkOfRequest"]>[0]): ReturnType<AgentRunApi["linkOfRequest"]> {
		return this.#desk.linkOfRequest(ask);
	}
	async linkMailed(ask: Parameters<AgentRunApi["linkMailed"]>[0]): Promise<Reply<null>> {
		return this.#desk.linkMailed(ask);
	}
	async openLink(ask: { v: 1; token: string }): Promise<Reply<LinkView>> {
		return this.#desk.openLink(ask.token);
	}
	async decideLink(ask: Parameters<AgentRunApi["decideLink"]>[0]): Promise<Reply<ApprovalView>> {
		return this.#desk.decideLink(ask);
	}

	async woken(ask: Parameters<AgentRunApi["woken"]>[0]): Promise<void> {
		await this.#runtime.woken(ask.tool_call_id);
	}

	/** The event stream: a WebSocket whose first frames are what the client has not seen yet. */
	override async fetch(request: Request): Promise<Response> {
		const ask = JSON.parse(request.headers.get("x-belay-ask") ?? "null") as Ask<Listen> | null;
		if (!ask || !(await this.#readable(ask.caller, ask.creation_ms))) return new Response(null, { status: 404 });
		if (request.headers.get("upgrade") !== "websocket") return new Response(null, { status: 426 });
		return this.#runtime.stream.open(ask.after_seq ?? 0, ask.caller.principal_id);
	}

	override async webSocketMessage(): Promise<void> {
		// A listener only listens.
	}

	override async webSocketClose(socket: WebSocket): Promise<void> {
		socket.close();
	}

	override async alarm(): Promise<void> {
		await this.#runtime.alarm();
	}

	async #readable(caller: Caller, creation_ms = 0): Promise<RunState | null> {
		await this.#runtime.waiters.until(() => this.#runtime.state !== null, creation_ms);
		const state = await this.#runtime.ready();
		return state !== null && mayRead(caller, state.run) ? state : null;
	}
	async #steerable(caller: Caller): Promise<RunState | null> {
		const state = await this.#runtime.ready();
		return state !== null && maySteer(caller, state.run) ? state : null;
	}

	#act(step: { readonly problem: StepProblem | null }): { ok: false; problem: StepProblem } | null {
		return step.problem === null ? null : refusal(step.problem);
	}

	async #rested(wait_ms: number, after_seq = -1): Promise<void> {
		await this.#runtime.waiters.until(() => {
			const run = this.#runtime.state?.run;
			return run === undefined || (RESTING.has(run.status) && run.seq > after_seq);
		}, wait_ms);
	}

	/** No call of the turn is on its way any more: each has ended or waits for a human. */
	async #turnSettled(turn: number, wait_ms: number | null): Promise<void> {
		const { waiters, state } = this.#runtime;
		const limit = wait_ms ?? state?.run.limits.turn_timeout_ms ?? 0;
		await waiters.until(
			() => ![...(this.#runtime.state?.calls.values() ?? [])].some((call) => call.turn === turn && inFlight(call)),
			limit,
		);
	}

	#view(): Reply<RunView> {
		const { state, store } = this.#runtime;
		return state === null ? notFound() : { ok: true, value: runView(state, store, this.#runtime.recent.list()) };
	}
}
