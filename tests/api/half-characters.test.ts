/** Half a character (a lone surrogate) has no canonical JSON. Wherever a request can say one, the answer is never Belay's own fault. */
import { beforeAll, describe, expect, it } from "vitest";
import { decide, externalRun, getRun, ledgerTool, PAY, type Run, turn } from "../acceptance/tools.ts";
import { type Answer, call, seedTenant, type TestTenant } from "../support/client.ts";

const HALF = "a\ud83d";
let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	await ledgerTool(tenant, "pay", PAY);
});
const external = { kind: "external" };
const post = (path: string, body: unknown, key = tenant.operator, headers = {}): Promise<Answer> =>
	call("POST", path, body, key, headers);
const waiting = async (): Promise<{ run: Run; approval: Run }> => {
	const run = await externalRun(tenant);
	const turned = await decide(tenant, run.run_id, turn(["pay", "c1", { to: "A" }]));
	return { run, approval: turned.pending_approvals[0] };
};

describe("a run that is asked for", () => {
	it.each([
		["/goal", { goal: HALF, planner: external }],
		["/messages/0/content", { goal: "x", messages: [{ role: "user", content: HALF }], planner: external }],
		["/metadata/a", { goal: "x", metadata: { a: HALF }, planner: external }],
		["/metadata", { goal: "x", metadata: { [HALF]: 1 }, planner: external }],
		["/context/workspace_id", { goal: "x", context: { workspace_id: HALF }, planner: external }],
		["/planner/model", { goal: "x", planner: { kind: "openai", model: HALF } }],
		["/planner/script/0/content", { goal: "x", planner: { kind: "scripted", script: [{ content: HALF }] } }],
	])("with one at %s is 422 and named", async (field, body) => {
		const answer = await post("/v1/runs", body);
		expect([answer.status, answer.body.code]).toEqual([422, "invalid_request"]);
		expect(answer.body.errors).toMatchObject([{ field, issue: "format_invalid" }]);
	});
});

describe("a decision", () => {
	it.each([
		["its content", { content: HALF }],
		["a function's name", turn([HALF, "c1", {}])],
		["a call's id", turn(["pay", HALF, { to: "A" }])],
		["arguments that are none", turn(["pay", "c1", `{"to":"${HALF}"}`])],
		["arguments that spell one", turn(["pay", "c1", { to: HALF }])],
	])("with one in %s is taken, with and without an Idempotency-Key, and its evidence holds", async (_where, body) => {
		for (const headers of [{}, { "idempotency-key": "k" }]) {
			const { run_id } = await externalRun(tenant);
			const path = `/v1/runs/${run_id}/decisions`;
			expect((await post(path, body, tenant.operator, headers)).status).toBe(200);
			if ("idempotency-key" in headers) expect((await post(path, body, tenant.operator, headers)).status).toBe(200);
			const checked = await call("GET", `/v1/runs/${run_id}/evidence/verify`, undefined, tenant.operator);
			expect(checked.body.valid).toBe(true);
		}
	});
});

describe("people's words", () => {
	it("that deny an approval are taken, and the evidence holds", async () => {
		const { run, approval } = await waiting();
		const { tool_id, tool_call_id, input_hash, approval_id } = approval;
		const body = { decision: "deny", reason: HALF, tool_id, tool_call_id, input_hash };
		expect((await post(`/v1/approvals/${approval_id}/decision`, body, tenant.approver)).status).toBe(200);
		expect((await getRun(tenant, run.run_id)).calls[0].state).toBe("DENIED");
		const { body: page } = await call("GET", `/v1/runs/${run.run_id}/evidence`, undefined, tenant.operator);
		expect(page.data.at(-1).reason).toBe("a\ufffd");
	});

	it("are no fault of Belay's anywhere else", async () => {
		const { run, approval } = await waiting();
		const link = `/v1/approvals/${approval.approval_id}/links`;
		const answers = [
			await post(link, { channel: HALF, to: "approver@example.com" }, tenant.operator, { "idempotency-key": "k" }),
			await post(`/v1/runs/${run.run_id}/messages`, { content: HALF }, tenant.operator, { "idempotency-key": "k" }),
			await post(`/v1/approvals/${approval.approval_id}/edit`, { arguments: { to: HALF } }, tenant.approver),
			await post(`/v1/runs/${run.run_id}/cancel`, {}),
			await post("/v1/chat/completions", { model: HALF, messages: [{ role: "user", content: HALF }], user: HALF }),
			await call("PUT", "/v1/tools/half", { tool_id: "half", name: HALF }, tenant.operator),
		];
		for (const { status, text } of answers) expect(status, text).toBeLessThan(500);
	});
});
