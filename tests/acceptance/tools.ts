/** Tools and small steps that the acceptance tests share. The ledger is an outside service that records every request. */
import { call, type TestTenant } from "../support/client.ts";

export type Run = Record<string, any>;

/** Registers a tool of kind `http` against the recording ledger, under its own key. */
export async function ledgerTool(
	tenant: TestTenant,
	tool_id: string,
	more: Record<string, unknown> = {},
	action = "ok",
): Promise<string> {
	const key = `${tenant.tenant_id}-${tool_id}`;
	const descriptor = {
		tool_id,
		name: tool_id,
		version: "1.0.0",
		description: `Test tool ${tool_id}. It writes to the test ledger; it does not read from it.`,
		category: "data_retrieval",
		effect: "write",
		approval: { mode: "never" },
		input_schema: {
			type: "object",
			properties: {
				to: { type: "string" },
				amount: { type: "number" },
				text: { type: "string" },
				q: { type: "string" },
			},
		},
		implementation: {
			kind: "http",
			method: "POST",
			url: `https://ledger.test/${key}/${action}`,
			auth: { type: "none" },
		},
		...more,
	};
	const answer = await call("PUT", `/v1/tools/${tool_id}`, descriptor, tenant.operator);
	if (answer.status !== 201 && answer.status !== 200)
		throw new Error(`tool ${tool_id}: ${answer.status} ${answer.text}`);
	return key;
}

export const PAY = { approval: { mode: "always" }, risk: "high" };
export const READ = { effect: "read", approval: { mode: "never" } };

/** What the ledger saw under a key: method, url, headers, body as text. */
export async function ledger(
	key: string,
): Promise<{ method: string; url: string; headers: Record<string, string>; body: string }[]> {
	return (await fetch(`https://ledger.test/_log?key=${key}`)).json();
}

export async function externalRun(
	tenant: TestTenant,
	more: Record<string, unknown> = {},
	key = tenant.operator,
): Promise<Run> {
	const answer = await call("POST", "/v1/runs", { goal: "test", planner: { kind: "external" }, ...more }, key);
	if (answer.status !== 201) throw new Error(`run: ${answer.status} ${answer.text}`);
	return answer.body;
}

/** A planner's turn: `name#id{args}` as [name, id, args]; arguments may be raw text. */
export function turn(...calls: [name: string, id: string, args: unknown][]): Record<string, unknown> {
	return {
		content: null,
		tool_calls: calls.map(([name, id, args]) => ({
			id,
			type: "function",
			function: { name, arguments: typeof args === "string" || args === null ? args : JSON.stringify(args) },
		})),
	};
}

export async function decide(
	tenant: TestTenant,
	run_id: string,
	decision: unknown,
	key = tenant.operator,
	headers = {},
): Promise<Run> {
	const answer = await call("POST", `/v1/runs/${run_id}/decisions`, decision, key, headers);
	if (answer.status !== 200) throw new Error(`decision: ${answer.status} ${answer.text}`);
	return answer.body;
}

export const getRun = async (tenant: TestTenant, run_id: string, query = "", headers = {}): Promise<Run> =>
	(await call("GET", `/v1/runs/${run_id}${query}`, undefined, tenant.operator, headers)).body;

export function approve(
	tenant: TestTenant,
	approval: Run,
	decision: "approve" | "deny" = "approve",
	more = {},
	key = tenant.approver,
) {
	const { tool_id, tool_call_id, input_hash, approval_id } = approval;
	return call(
		"POST",
		`/v1/approvals/${approval_id}/decision`,
		{ decision, tool_id, tool_call_id, input_hash, ...more },
		key,
	);
}

/** Waits until the run has moved past `seq` and rests. */
export const rested = (tenant: TestTenant, run_id: string, after_seq = -1): Promise<Run> =>
	getRun(tenant, run_id, `?after_seq=${after_seq}`, { prefer: "wait=20" });

export const callOf = (run: Run, provider_call_id: string, nth = 0): Run =>
	run.calls.filter((one: Run) => one.provider_call_id === provider_call_id)[nth];
export const messageOf = (messages: Run[], nth = 0): Run => JSON.parse(messages[nth]?.content);
