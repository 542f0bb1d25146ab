/**
 * A gate for tests. `Gate` builds a new object over the same storage for every single request, with a clock of its own:
 * nothing that lives in memory survives between two requests, so each protocol runs as if the object were evicted at
 * every point. `live` is the deployed object, through RPC.
 */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import type { GateNeeds } from "#core/invoke/gate-keys.ts";
import type { GateAnswer, GateReport, Stored, ToolGateApi } from "#objects/tool-gate/api.ts";
import { type BreakerBoard, ToolGate } from "#objects/tool-gate/tool-gate.ts";

export const NEEDS: GateNeeds = { criticality: "normal", rate_limit: null, claim: null, cache: null, snapshot: null };
export const CLAIM: GateNeeds = { ...NEEDS, claim: { key: "k" } };
export const CACHE: GateNeeds = { ...NEEDS, cache: { key: "c", ttl_ms: 600_000 }, snapshot: { key: "s" } };

type Leaving = Partial<Pick<Parameters<ToolGateApi["leave"]>[0], "outcome" | "settle" | "stored" | "pause_ms">>;

let count = 0;
export const named = () => ({ v: 1 as const, tenant_id: "tenant_gate", tool_id: `tool_${count++}` });

export const stored = (tool_call_id: string, result: Stored["result"], at: number): Stored => ({
	result,
	notes: ["note"],
	at,
	tool_call_id,
});

export function live(who: { tenant_id: string; tool_id: string }) {
	const stub = env.TOOL_GATE.getByName(`${who.tenant_id}:${who.tool_id}`);
	return { stub, api: stub as unknown as ToolGateApi };
}

export class Gate {
	readonly who = named();
	now = 1_800_000_000_000;
	/** What TenantControl was told; an error makes it unreachable. */
	readonly told: (number | null)[] = [];
	away = false;

	enter(tool_call_id: string, needs: GateNeeds = NEEDS, hold_ms = 60_000): Promise<GateAnswer> {
		return this.#ask((gate) => gate.enter({ ...this.who, tool_call_id, needs, hold_ms }));
	}
	leave(tool_call_id: string, needs: GateNeeds = NEEDS, how: Leaving = {}): Promise<GateReport> {
		const said = { outcome: "success", settle: "free", stored: null, pause_ms: null, ...how } as const;
		return this.#ask((gate) => gate.leave({ ...this.who, tool_call_id, needs, ...said }));
	}
	report(
		successes: number,
		failures: number,
		more: { pause_ms?: number; started_at?: number } = {},
	): Promise<GateReport> {
		const ask = { ...this.who, criticality: "normal" as const, successes, failures, pause_ms: null, ...more };
		return this.#ask((gate) => gate.report(ask));
	}
	invalidate(): Promise<void> {
		return this.#ask((gate) => gate.invalidate(this.who));
	}
	view(): ReturnType<ToolGateApi["view"]> {
		return this.#ask((gate) => gate.view({ ...this.who, criticality: "normal" }));
	}
	alarm(): Promise<void> {
		return this.#ask((gate) => gate.alarm());
	}
	/** Opens the breaker; the time when it is half-open. */
	async open(): Promise<number> {
		return (await this.report(0, 5)).breaker.until as number;
	}
	rows(table: string): Promise<number> {
		return runInDurableObject(live(this.who).stub, (_object, state) =>
			Number(state.storage.sql.exec(`SELECT count(*) AS n FROM ${table}`).one().n),
		);
	}

	#ask<T>(request: (gate: ToolGate) => Promise<T>): Promise<T> {
		const board: BreakerBoard = {
			breaker: async ({ until }) => {
				if (this.away) throw new Error("tenant control is away");
				this.told.push(until);
			},
		};
		const world = { ...env, TENANT_CONTROL: { getByName: () => board } } as unknown as Env;
		return runInDurableObject(live(this.who).stub, async (_object, state) => {
			const answer = await request(new ToolGate(state, world, () => this.now));
			// What is told to TenantControl is told after the answer.
			for (let i = 0; i < 5; i++) await Promise.resolve();
			return answer;
		});
	}
}
