/** A listener that is at a run's object before the run: it hears everything from the first frame, and only its own run. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { Caller } from "#core/principal.ts";
import { listen } from "../../workers/api/chat/listen.ts";
import { runStub } from "../../workers/api/run-object.ts";
import { createRun } from "../../workers/api/wire/create-run.ts";
import { seedTenant } from "../support/client.ts";

const caller = (tenant_id: string, principal_id: string): Caller => ({
	tenant_id,
	principal_id,
	kind: "agent",
	name: principal_id,
	authority: { policy_rev: 0, roles: [], permissions: ["runs:read:*"], tools: [], data_scope: "own" },
});

describe("listening before a run is created", () => {
	it("hears its first frames, and nobody hears another's run that way", async () => {
		const { tenant_id } = await seedTenant();
		const other = await seedTenant();
		const run_id = `run_${crypto.randomUUID().replaceAll("-", "")}`;
		const run = runStub(env, run_id);
		const owner = caller(tenant_id, "agent_a");
		const mine = listen(run, owner, null);
		const theirs = listen(run, caller(other.tenant_id, "agent_a"), null);
		const colleague = listen(run, caller(tenant_id, "agent_b"), null);
		const { goal, messages, limits, metadata, context } = createRun.parse({ goal: "x" });
		const made = await run.create({
			v: 1,
			caller: owner,
			run_id,
			request_hash: "h",
			trace_id: "t",
			session_id: "sess_x",
			goal,
			messages,
			tools: null,
			planner: { kind: "external", model: null, script: [] },
			limits,
			metadata,
			context,
			wait_ms: 0,
		});
		expect(made.ok).toBe(true);
		expect([await theirs, await colleague]).toEqual([null, null]);
		const socket = await mine;
		const first = new Promise<string>((done) =>
			socket?.addEventListener("message", ({ data }) => done(String(data)), { once: true }),
		);
		socket?.accept();
		expect(JSON.parse(await first)).toMatchObject({ seq: 1, data: { run_id } });
		socket?.close(1000, "done");
	});
});
