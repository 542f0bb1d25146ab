/** An approval's id names its run (decision 23): the way from the one to the other's object. Called by the approval routes. */
import { runOf } from "#core/ids.ts";
import type { Caller } from "#core/principal.ts";
import type { ApprovalView } from "#core/run/view.ts";
import type { AgentRunApi, Reply } from "#objects/agent-run/api.ts";
import type { Ctx } from "../noun.ts";
import { notFound } from "../problem.ts";
import { askRun } from "../run-object.ts";

type Said = { readonly v: 1; readonly caller: Caller };

/** Any id that is no approval's gets the answer for an unknown one. */
export function ofRun<T>(
	c: Ctx,
	approvalId: string,
	kind: "read" | "write",
	ask: (run: AgentRunApi, said: Said) => Promise<Reply<T>>,
): Promise<T> {
	const runId = approvalId.startsWith("apr_") ? runOf(approvalId) : undefined;
	if (runId === undefined) throw notFound();
	return askRun(c.env, runId, kind, (run) => ask(run, { v: 1, caller: c.get("caller") }));
}

export function readApproval(c: Ctx, approval_id: string): Promise<ApprovalView> {
	return ofRun(c, approval_id, "read", (run, said) => run.approval({ ...said, approval_id }));
}
