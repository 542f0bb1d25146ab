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

	/** A failure of a call that needed no pass; successes are not worth a hop while the tool is well. */
	async report({ tool_id, criticality }: ToolDescriptor, outcome: InvokeOutcome, started_at: number): Promise<void> {
		if (gateOutcome(outcome) !== "fault") return;
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

	async invalidate(tool_ids: readonly string[]): Promise<void> {
		await Promise.allSettled(
			tool_ids.map((tool_id) => this.#gate(tool_id).invalidate({ v: 1, tenant_id: this.#tenant_id, tool_id })),
		);
	}

	#gate(tool_id: string): ToolGateApi {
		return this.#env.TOOL_GATE.getByName(gateName(this.#tenant_id, tool_id)) as unknown as ToolGateApi;
	}
}
