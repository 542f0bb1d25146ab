/**
 * `POST /v1/runs/:run_id/replay`: a new run of the caller's that plays what a finished run recorded. Who may not read the run
 * gets the answer for a run that does not exist; who may, replays it with permissions of their own.
 */
import * as z from "zod";
import { runId } from "#core/ids.ts";
import type { RunView } from "#core/run/view.ts";
import type { Recording } from "#objects/agent-run/api.ts";
import { idempotencyKey, newIdPart, requestHash } from "../idempotency.ts";
import { preferredWait } from "../middleware/prefer.ts";
import type { Ctx } from "../noun.ts";
import { ApiProblem } from "../problem.ts";
import { askRun, runStub } from "../run-object.ts";
import { session } from "./create-run.ts";

export const replayRun = z.strictObject({
	mode: z
		.enum(["recorded", "live"])
		.default("recorded")
		.describe(
			"`recorded` gives each call its recorded end and invokes nothing; `live` calls the tools, and every write asks",
		),
});

export async function replayRunFrom(c: Ctx, of: string, { mode }: z.infer<typeof replayRun>): Promise<RunView> {
	const caller = c.get("caller");
	const key = idempotencyKey(c.req.header("idempotency-key"));
	const run_id = runId(newIdPart(c.env, caller, `POST /v1/runs/${of}/replay`, key));
	const wait_ms = preferredWait(c.req.header("prefer")) ?? 0;
	let recording: Recording;
	try {
		recording = await askRun(c.env, of, "read", (run) => run.recording({ v: 1, caller }));
	} catch (error) {
		if (key === null || !(error instanceof ApiProblem) || error.code !== "not_replayable") throw error;
		// A repeat gets the run that the first request made, although the recorded one has gone on since.
		const made = await runStub(c.env, run_id).read({ v: 1, caller, after_seq: null, wait_ms });
		if (made.ok && made.value.replay?.mode === mode) return made.value;
		throw error;
	}
	const { script, placeholders, ...same } = recording;
	const session_id = await session(c, undefined, run_id);
	return askRun(c.env, run_id, "write", (run) =>
		run.create({
			v: 1,
			caller,
			run_id,
			request_hash: requestHash({ replay: of, mode }),
			trace_id: c.get("trace_id"),
			session_id,
			...same,
			// Device and workspace are its who named them.
			context: {},
			planner: { kind: "scripted", model: null, script },
			replay: { run_id: of, mode, placeholders },
			wait_ms,
		}),
	);
}
