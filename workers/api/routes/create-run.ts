/** `POST /v1/runs`: names the run and its session, then hands the request to the run's object. */
import { D1Sessions } from "#adapters/d1/d1-sessions.ts";
import { hex, runId } from "#core/ids.ts";
import type { RunView } from "#core/run/view.ts";
import type { CreateRun } from "#objects/agent-run/api.ts";
import { idempotencyKey, newIdPart, requestHash, tenantMac } from "../idempotency.ts";
import { preferredWait } from "../middleware/prefer.ts";
import type { Ctx } from "../noun.ts";
import { problem } from "../problem.ts";
import { askRun } from "../run-object.ts";
import type { CreateRunBody } from "../wire/create-run.ts";

export async function createRunFrom(c: Ctx, body: CreateRunBody): Promise<RunView> {
	const caller = c.get("caller");
	const run_id = runId(newIdPart(c.env, caller, "POST /v1/runs", idempotencyKey(c.req.header("idempotency-key"))));
	const request: CreateRun = {
		run_id,
		request_hash: requestHash(body),
		trace_id: c.get("trace_id"),
		session_id: await session(c, body.session_id, run_id),
		goal: body.goal,
		messages: body.messages,
		tools: body.tools ?? null,
		planner: {
			kind: body.planner.kind,
			model: body.planner.model ?? null,
			...(body.planner.spotlight === true ? { spotlight: true } : {}),
			script: body.planner.script ?? [],
		},
		limits: body.limits,
		locale: body.locale,
		metadata: body.metadata,
		context: body.context,
	};
	const wait_ms = preferredWait(c.req.header("prefer")) ?? 0;
	return askRun(c.env, run_id, "write", (run) => run.create({ v: 1, caller, ...request, wait_ms }));
}

/**
 * Decision 21: a given id is bound to the principal at first use. A fresh one follows from the run id, so that a repeated
 * request names the same session, and is bound as well: nobody who reads it somewhere can take it over.
 */
export async function session(c: Ctx, given: string | undefined, run_id: string): Promise<string> {
	const { tenant_id, principal_id } = c.get("caller");
	const session_id = given ?? `sess_${hex(tenantMac(c.env, tenant_id, ["session", run_id]).subarray(0, 16))}`;
	const bound = await new D1Sessions(c.env.DB).bind(tenant_id, session_id, principal_id, new Date().toISOString());
	if (bound === "taken")
		throw problem("session_taken", "this `session_id` cannot be used; leave it out to get a fresh one");
	return session_id;
}
