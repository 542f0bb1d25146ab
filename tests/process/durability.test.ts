/** What a `kill -9` of everything must not do: lose an approval, run a call twice, or guess what a lost call did. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView } from "#core/run/view.ts";
import { approve, callIn, callTool, newRun, registerPay } from "./calls.ts";
import { endAll, Instance, recordingUpstream, stateFolder, type Upstream, until } from "./instance.ts";

let upstream: Upstream;
let slow: Upstream;
let unnamed: Upstream;
let env: Record<string, string>;
let instance: Instance;

beforeAll(async () => {
	[upstream, slow, unnamed] = await Promise.all([recordingUpstream(), recordingUpstream(30_000), recordingUpstream()]);
	env = { BELAY_DEV_UPSTREAMS: `${upstream.address},${slow.address}` };
	instance = await Instance.start(stateFolder(), env);
});
afterAll(endAll);

const restart = async (): Promise<void> => {
	const { port, folder } = instance;
	await instance.kill();
	instance = await Instance.start(folder, { ...env, PORT: String(port) });
};

describe("kill -9 of the whole group", () => {
	it("keeps a call that waits for approval, which then runs exactly once", async () => {
		expect((await registerPay(instance, "pay", `http://${upstream.address}/pay`)).status).toBe(201);
		const run = await newRun(instance, ["pay"]);
		const turn = await callTool(instance, run.run_id, "one", "pay", { amount: 70, to: "acct-1" });
		expect(turn.run.status).toBe("awaiting_approval");
		expect(turn.messages).toMatchObject([{ tool_call_id: "one", final: false }]);
		const [approval] = turn.pending_approvals;
		if (approval === undefined) throw new Error("no approval");

		await restart();

		const kept = await instance.expect<RunView>(200, "operator_key", "GET", `/v1/runs/${run.run_id}`);
		expect(kept.status).toBe("awaiting_approval");
		expect(kept.pending_approvals).toMatchObject([
			{ approval_id: approval.approval_id, input_hash: approval.input_hash, status: "pending" },
		]);
		expect(upstream.received).toEqual([]);

		await approve(instance, approval);
		const done = await callIn(instance, run.run_id, approval.tool_call_id, ["COMPLETED"]);
		expect(done.attempts).toHaveLength(1);
		expect(upstream.received.map(({ body }) => JSON.parse(body))).toEqual([{ amount: 70, to: "acct-1" }]);

		await restart();

		await instance.expect(200, "operator_key", "GET", `/v1/runs/${run.run_id}`);
		const again = await instance.ask("approver_key", "POST", `/v1/approvals/${approval.approval_id}/decision`, {
			decision: "approve",
			tool_id: approval.tool_id,
			tool_call_id: approval.tool_call_id,
			input_hash: approval.input_hash,
		});
		expect([409, 410]).toContain(again.status);
		expect(upstream.received).toHaveLength(1);
		const verified = await instance.expect<{ valid: boolean; checked: number }>(
			200,
			"operator_key",
			"GET",
			`/v1/runs/${run.run_id}/evidence/verify`,
		);
		expect(verified).toMatchObject({ valid: true });
		expect(verified.checked).toBeGreaterThan(1);
	});

	it("leaves a payment that was under way unknown, and never sends it again", async () => {
		expect(
			(await registerPay(instance, "pay_slowly", `http://${slow.address}/pay`, { timeout_ms: 4_000 })).status,
		).toBe(201);
		const run = await newRun(instance, ["pay_slowly"]);
		const turn = await callTool(instance, run.run_id, "one", "pay_slowly", { amount: 5, to: "acct-2" });
		const [approval] = turn.pending_approvals;
		if (approval === undefined) throw new Error("no approval");
		await approve(instance, approval);
		await until("payment under way", 15_000, () => (slow.received.length > 0 ? true : undefined));

		await restart();

		const call = await callIn(instance, run.run_id, approval.tool_call_id, ["OUTCOME_UNKNOWN"]);
		expect(call.error?.code).toMatch(/unknown|interrupted|timeout/);
		expect(slow.received).toHaveLength(1);
	});
});

describe("private upstreams", () => {
	it("are out of reach unless BELAY_DEV_UPSTREAMS names them", async () => {
		const registered = await registerPay(instance, "pay_elsewhere", `http://${unnamed.address}/pay`);
		expect(registered.status).toBe(422);
		expect(registered.body.errors).toMatchObject([{ field: "/implementation/url", issue: "security_violation" }]);
		// Another address that ends up on this machine is not the one that was named.
		const port = upstream.address.split(":")[1];
		for (const host of ["localhost", "[::1]", "127.0.0.2", "0.0.0.0", "[::ffff:127.0.0.1]"]) {
			const spelled = await registerPay(instance, "pay_elsewhere", `http://${host}:${port}/pay`);
			expect(spelled.status, host).toBe(422);
		}
		expect(unnamed.received).toEqual([]);
	});
});
