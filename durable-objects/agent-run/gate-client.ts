/**
 * A run's way to the gates of its tools. Every ask is repeatable, so a gate that is away costs a later try and never an
 * answer; what was learned of a breaker is handed on at once. Decides nothing.
 */
import type { GateAnswer } from "#core/invoke/gate-answer.ts";
import { type BreakerView, type GateNeeds, gateName, gateOutcome } from "#core/invoke/gate-keys.ts";
import type { InvokeOutcome } from "#core/outcome.ts";
import type { ToolDescriptor } from "#core/registry/descriptor.ts";
import type { Effect } from "#core/run/effect.ts";
import type { ToolGateApi } from "#objects/tool-gate/api.ts";

/** How long a failure's report may hold its step back, ms: the breaker is worth that, not more. */
const REPORT_MS = 1_000;

type Leave = Omit<Extract<Effect, { kind: "leave" }>, "kind">;

export class GateClient {
	readonly #env: Env;
	readonly #tenant_id: string;
	/** Tools whose failures this run has reported and whose window may still hold some. */
	readonly #troubled = new Set<string>();
	readonly #onBreaker: (tool_id: string, breaker: BreakerView) => void;

	constructor(env: Env, tenant_id: string, onBreaker: (tool_id: string, breaker: BreakerView) => void) {
		this.#env = env;
		this.#tenant_id = tenant_id;
		this.#onBreaker = onBreaker;
	}

	async enter(tool_id: string, tool_call_id: string, needs: GateNeeds, hold_ms: number): Promise<GateAnswer | null> {
		try {
			return await this.#gate(tool_id).enter({
				v: 1,
				tenant_id: this.#tenant_id,
				tool_id,
				tool_call_id,
				needs,
				hold_ms,
			});
		} catch {
			return null;
		}
	}

	/** True when the gate has taken it. */
	async leave(leave: Leave): Promise<boolean> {
		try {
			const { breaker } = await this.#gate(leave.tool_id).leave({ v: 1, tenant_id: this.#tenant_id, ...leave });
			this.#onBreaker(leave.tool_id, breaker);
			return true;
		} catch {
			return false;
		}
	}

	/**
	 * An attempt of a call that needed no pass. A failure is awaited; a success is worth a hop only while its tool's window
	 * holds failures, and is told after the fact. While a tool is well its calls pay nothing here.
	 */
	async report(descriptor: ToolDescriptor, outcome: InvokeOutcome, started_at: number): Promise<void> {
		const { tool_id, criticality } = descriptor;
		const counted = gateOutcome(outcome);
		if (counted === "success" && this.#troubled.has(tool_id)) void this.#succeeded(tool_id, criticality, started_at);
		if (counted !== "fault") return;
		this.#troubled.add(tool_id);
		const pause_ms = outcome.kind === "failed" && outcome.http_status === 429 ? (outcome.retry_after_ms ?? null) : null;
		const { promise: late, resolve } = Promise.withResolvers<null>();
		const timer = setTimeout(() => resolve(null), REPORT_MS);
		const report = this.#gate(tool_id)
			.report({
				v: 1,
				tenant_id: this.#tenant_id,
				tool_id,
				criticality,
				successes: 0,
				failures: 1,
				pause_ms,
				started_at,
			})
			.catch(() => null);
		const told = await Promise.race([report, late]);
		clearTimeout(timer);
		if (told !== null) this.#onBreaker(tool_id, told.breaker);
	}

	async #succeeded(tool_id: string, criticality: GateNeeds["criticality"], started_at: number): Promise<void> {
		try {
			const ask = { v: 1, tenant_id: this.#tenant_id, tool_id, criticality } as const;
			const { breaker } = await this.#gate(tool_id).report({
				...ask,
				successes: 1,
				failures: 0,
				pause_ms: null,
				started_at,
			});
			this.#onBreaker(tool_id, breaker);
			if (breaker.failures === 0) this.#troubled.delete(tool_id);
		} catch {
			// A success that was not counted closes nothing wrongly.
		}
	}

	async invalidate(tool_ids: readonly string[]): Promise<void> {
		await Promise.allSettled(
			tool_ids.map((tool_id) => this.#gate(tool_id).invalidate({ v: 1, tenant_id: this.#tenant_id, tool_id })),
		);
	}

	#gate(tool_id: string): ToolGateApi {
		return this.#env.TOOL_GATE.getByName(gateName(this.#tenant_id, tool_id)) as unknown as ToolGateApi;
	}
}
