/**
 * An external planner and an approver that live on while the instance dies under them: every request is repeated until it
 * is answered, under the same Idempotency-Key or after a look at what became of it, as a careful client does.
 */
import type { ApprovalView, CallView, RunView } from "#core/run/view.ts";
import type { Instance } from "./instance.ts";

/** What each tool is, as the checks need to know it. */
export const KILL_TOOLS = {
	kill_note: { path: "/slow", effect: "write", gated: false, keyed: false },
	kill_keyed: { path: "/flaky", effect: "write", gated: false, keyed: true },
	kill_keyed_slow: { path: "/slow", effect: "write", gated: false, keyed: true },
	kill_pay: { path: "/slow", effect: "write", gated: true, keyed: false },
	kill_keyed_pay: { path: "/flaky", effect: "write", gated: true, keyed: true },
	kill_find: { path: "/flaky", effect: "read", gated: false, keyed: false },
} as const;
export type KillTool = keyof typeof KILL_TOOLS;
const NAMES = Object.keys(KILL_TOOLS) as KillTool[];

export type Asked = { readonly id: string; readonly tool: KillTool };

export async function registerTools(instance: Instance, address: string): Promise<void> {
	for (const tool_id of NAMES) {
		const { path, effect, gated, keyed } = KILL_TOOLS[tool_id];
		await instance.expect(201, "operator_key", "PUT", `/v1/tools/${tool_id}`, {
			tool_id,
			name: tool_id,
			version: "1.0.0",
			description: "Acts on the world of the kill test. It does nothing else.",
			category: "interface",
			input_schema: {
				type: "object",
				properties: { id: { type: "string", maxLength: 64 } },
				required: ["id"],
				additionalProperties: false,
			},
			implementation: { kind: "http", method: "POST", url: `http://${address}${path}`, body: "json" },
			effect,
			approval: { mode: gated ? "always" : "never" },
			timeout_ms: 8_000,
			criticality: "non_core",
			...(keyed ? { idempotency: { mode: "key" } } : {}),
		});
	}
}

/** One run with one turn of calls, each with an id of its own by which the upstream knows it. */
export class KillRun {
	readonly asked: readonly Asked[];
	readonly #name: string;
	run_id: string | null = null;
	decided = false;

	constructor(name: string, pick: () => number) {
		this.#name = name;
		this.asked = Array.from({ length: 2 + Math.floor(pick() * 4) }, (_, n) => ({
			id: `${name}-${n}`,
			tool: NAMES[Math.floor(pick() * NAMES.length)] as KillTool,
		}));
	}

	/** As far as it gets; a lost answer is found out the next time. */
	async press(instance: Instance): Promise<void> {
		if (this.run_id === null) {
			const limits = { turns: 5, turn_timeout_ms: 3_600_000, session_timeout_ms: 7_200_000 };
			const body = { goal: this.#name, tools: NAMES, planner: { kind: "external" }, limits };
			const made = await instance.ask<RunView>("operator_key", "POST", "/v1/runs", body, {
				"idempotency-key": `run-${this.#name}`,
			});
			if (made.status !== 201 && made.status !== 200)
				throw new Error(`create: ${made.status} ${JSON.stringify(made.body)}`);
			this.run_id = made.body.run_id;
		}
		if (!this.decided) {
			const seen = await this.look(instance);
			if (seen.calls.length === 0) {
				const tool_calls = this.asked.map(({ id, tool }) => ({
					id,
					type: "function",
					function: { name: tool, arguments: JSON.stringify({ id }) },
				}));
				const path = `/v1/runs/${this.run_id}/decisions`;
				await instance.expect(200, "operator_key", "POST", path, { content: null, tool_calls }, { prefer: "wait=0" });
			}
			this.decided = true;
		}
	}

	async look(instance: Instance): Promise<RunView> {
		return instance.expect<RunView>(200, "operator_key", "GET", `/v1/runs/${this.run_id}`);
	}

	/** Approves what waits. Somebody else's earlier word, or a lost answer to it, shows as already decided. */
	async approve(instance: Instance): Promise<void> {
		if (this.run_id === null) return;
		for (const { approval_id, tool_id, tool_call_id, input_hash } of (await this.look(instance)).pending_approvals) {
			const body = { decision: "approve", tool_id, tool_call_id, input_hash };
			const path = `/v1/approvals/${approval_id}/decision`;
			const answer = await instance.ask<ApprovalView>("approver_key", "POST", path, body);
			if (answer.status !== 200 && answer.status !== 409)
				throw new Error(`approve: ${answer.status} ${JSON.stringify(answer.body)}`);
		}
	}

	callOf(run: RunView, { id }: Asked): CallView | undefined {
		return run.calls.find((one) => one.provider_call_id === id);
	}
}
