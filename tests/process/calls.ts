/** An external planner's moves against a running instance, in the shapes of the wire contract. */
import type { ApprovalView, CallView, RunView } from "#core/run/view.ts";
import { type Instance, until } from "./instance.ts";

export type Turn = {
	readonly run: RunView;
	readonly messages: { readonly tool_call_id: string; readonly content: string; readonly final: boolean }[];
	readonly pending_approvals: ApprovalView[];
};

/** Registers a tool that posts its arguments to `url`, after approval unless `approval` says otherwise. */
export function registerPay(
	instance: Instance,
	tool_id: string,
	url: string,
	more: Record<string, unknown> = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
	const descriptor = {
		tool_id,
		name: tool_id,
		version: "1.0.0",
		description: "Pays an amount to an account. It does not look anything up.",
		category: "interface",
		input_schema: {
			type: "object",
			properties: { amount: { type: "integer", minimum: 1 }, to: { type: "string", maxLength: 64 } },
			required: ["amount", "to"],
			additionalProperties: false,
		},
		implementation: { kind: "http", method: "POST", url, body: "json" },
		effect: "external",
		risk: "high",
		approval: { mode: "always" },
		timeout_ms: 20_000,
		...more,
	};
	return instance.ask("operator_key", "PUT", `/v1/tools/${tool_id}`, descriptor);
}

export async function newRun(instance: Instance, tools: string[]): Promise<RunView> {
	return instance.expect<RunView>(201, "operator_key", "POST", "/v1/runs", {
		goal: "pay what is due",
		tools,
		planner: { kind: "external" },
	});
}

/** One turn with one call; the functions of a run are named by its exposure. */
export async function callTool(
	instance: Instance,
	run_id: string,
	provider_call_id: string,
	tool_id: string,
	args: unknown,
	prefer = "wait=30",
): Promise<Turn> {
	const decision = {
		content: null,
		tool_calls: [
			{ id: provider_call_id, type: "function", function: { name: tool_id, arguments: JSON.stringify(args) } },
		],
	};
	return instance.expect<Turn>(200, "operator_key", "POST", `/v1/runs/${run_id}/decisions`, decision, { prefer });
}

export function approve(instance: Instance, approval: ApprovalView): Promise<ApprovalView> {
	const { tool_id, tool_call_id, input_hash } = approval;
	return instance.expect<ApprovalView>(200, "approver_key", "POST", `/v1/approvals/${approval.approval_id}/decision`, {
		decision: "approve",
		tool_id,
		tool_call_id,
		input_hash,
	});
}

/** The run's call once it is in one of `states`. */
export function callIn(
	instance: Instance,
	run_id: string,
	tool_call_id: string,
	states: readonly string[],
	wait_ms = 60_000,
): Promise<CallView> {
	return until(`call in ${states.join(" or ")}`, wait_ms, async () => {
		const run = await instance.expect<RunView>(200, "operator_key", "GET", `/v1/runs/${run_id}`);
		const call = run.calls.find((one) => one.tool_call_id === tool_call_id);
		return call !== undefined && states.includes(call.state) ? call : undefined;
	});
}
