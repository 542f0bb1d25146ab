/** Decision 36 from outside: what a deployed build must not do, even when somebody sets the development variables. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApprovalView } from "#core/run/view.ts";
import { bundleWorker } from "#ops/local/bundle.ts";
import { type DevelopmentKeys, seedWithFreshKeys } from "#ops/local/development-keys.ts";
import { migrate, type Served, serve } from "#ops/local/serve.ts";
import { freePort } from "#ops/local/state.ts";
import { endAll, recordingUpstream, stateFolder, type Upstream } from "./instance.ts";

let served: Served;
let base: string;
let keys: DevelopmentKeys["keys"];
let upstream: Upstream;
const log: string[] = [];

beforeAll(async () => {
	upstream = await recordingUpstream();
	const bundle = await bundleWorker(false);
	const port = await freePort(0);
	base = `http://127.0.0.1:${port}`;
	const vars = {
		BELAY_MASTER_SECRET: randomBytes(32).toString("base64"),
		BELAY_PUBLIC_URL: "https://belay.example.com",
		BELAY_DEV_UPSTREAMS: upstream.address,
		BELAY_DEV_APPROVER: "usr_approver",
	};
	served = await serve({ bundle, port, state: stateFolder(), vars, onLog: (_, message) => void log.push(message) });
	for (const [binding, migrations] of Object.entries(bundle.plan.migrations))
		await migrate(await served.database(binding), migrations);
	keys = (await seedWithFreshKeys(await served.database("DB"))).keys;
});
afterAll(async () => {
	await served?.stop();
	await endAll();
});

async function ask<T>(method: string, path: string, body: unknown): Promise<{ status: number; body: T }> {
	const headers = { authorization: `Bearer ${keys.operator}`, "content-type": "application/json" };
	const answer = await fetch(`${base}${path}`, { method, headers, body: JSON.stringify(body) });
	return { status: answer.status, body: (await answer.json()) as T };
}

const tool = (tool_id: string, implementation: unknown): Record<string, unknown> => ({
	tool_id,
	name: tool_id,
	version: "1.0.0",
	description: "Returns what it is given. It does nothing else.",
	category: "interface",
	input_schema: { type: "object", properties: {}, additionalProperties: false },
	implementation,
	approval: { mode: "always" },
});

describe("a deployed build", () => {
	it("reaches no private upstream, named or not", async () => {
		const http = { kind: "http", method: "POST", url: `http://${upstream.address}/pay`, body: "json" };
		const answer = await ask<{ errors: unknown[] }>("PUT", "/v1/tools/pay", tool("pay", http));
		expect(answer.status).toBe(422);
		expect(answer.body.errors).toMatchObject([{ field: "/implementation/url", issue: "security_violation" }]);
		expect(upstream.received).toEqual([]);
	});

	it("has no Workers AI where it is served locally: that would need a login and a network, and the kind is said to be missing", async () => {
		const answer = await ask<{ code: string }>("POST", "/v1/runs", { goal: "x", planner: { kind: "workers_ai" } });
		expect([answer.status, answer.body.code]).toEqual([503, "planner_unavailable"]);
	});

	it("prints no link of an approval", async () => {
		expect((await ask("PUT", "/v1/tools/asking", tool("asking", { kind: "builtin", name: "echo" }))).status).toBe(201);
		const run = await ask<{ run_id: string }>("POST", "/v1/runs", {
			goal: "ask",
			tools: ["asking"],
			planner: { kind: "external" },
		});
		const call = { id: "one", type: "function", function: { name: "asking", arguments: "{}" } };
		const turn = await ask<{ pending_approvals: ApprovalView[] }>("POST", `/v1/runs/${run.body.run_id}/decisions`, {
			content: null,
			tool_calls: [call],
		});
		expect(turn.body.pending_approvals).toHaveLength(1);
		expect(log.join("\n")).not.toMatch(/belay_dev|\/a\//);
	});
});
