/** A tool that pays after approval, for tests about approvals: it asks every time and writes to the ledger outside. */
import { env } from "cloudflare:workers";
import type { ApprovalView } from "#core/run/view.ts";
import type { AgentRunApi } from "#objects/agent-run/api.ts";
import { call, type TestTenant } from "./client.ts";

export type Payments = {
	/** An agent's call of `pay` that waits for approval. */
	pending(args?: object): Promise<ApprovalView>;
	/** A link to an approval for the tenant's approver, as a path. */
	link(approval: ApprovalView, more?: { view_only?: boolean }): Promise<string>;
	/** What was paid so far. */
	ledger(): Promise<unknown[]>;
};

export async function payments(tenant: TestTenant): Promise<Payments> {
	const key = crypto.randomUUID();
	const pay = {
		tool_id: "pay",
		name: "pay",
		version: "1.0.0",
		description: "pays; does not refund",
		category: "data_retrieval",
		effect: "write",
		risk: "high",
		approval: { mode: "always" },
		input_schema: {
			type: "object",
			properties: { to: { type: "string" }, memo: { type: "string" }, note: { type: "string" } },
		},
		implementation: { kind: "http", method: "POST", url: `https://ledger.test/${key}/ok`, body: "json" },
	};
	const published = await call("PUT", "/v1/tools/pay", pay, tenant.operator);
	if (published.status !== 201) throw new Error(published.text);

	return {
		async pending(args = { to: "A" }) {
			const goal = { goal: "pay <i>somebody</i>", planner: { kind: "external" } };
			const run = await call("POST", "/v1/runs", goal, tenant.agent);
			const asked = { id: "c1", type: "function", function: { name: "pay", arguments: JSON.stringify(args) } };
			const decision = { content: null, tool_calls: [asked] };
			const turn = await call("POST", `/v1/runs/${run.body.run_id}/decisions`, decision, tenant.agent);
			if (turn.status !== 200) throw new Error(turn.text);
			return turn.body.pending_approvals[0];
		},
		async link({ approval_id, run_id }, { view_only = false } = {}) {
			const { tenant_id } = tenant;
			const authority = { policy_rev: 0, roles: [], permissions: [], tools: [], data_scope: "own" as const };
			const name = "approver@example.com";
			const approver = { tenant_id, principal_id: "usr_approver", kind: "user" as const, name, authority };
			const run = env.AGENT_RUN.getByName(run_id) as unknown as AgentRunApi;
			const issued = await run.issueLink({ v: 1, tenant_id, approval_id, approver, view_only });
			if (!issued.ok) throw new Error(issued.problem.detail);
			return `/a/${issued.value.token}`;
		},
		async ledger() {
			return (await (await fetch(`https://ledger.test/_log?key=${key}`)).json()) as unknown[];
		},
	};
}
