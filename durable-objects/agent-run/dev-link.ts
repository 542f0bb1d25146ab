/**
 * The development build prints a link for every approval that appears, so that the first run needs no mail server. A
 * deployed build never calls this: tokens are logged nowhere.
 */
import { D1Principals } from "#adapters/d1/d1-principals.ts";
import type { Links } from "./links.ts";
import type { Runtime } from "./runtime.ts";

export async function announceLink(env: Env, runtime: Runtime, links: Links, approval_id: string): Promise<void> {
	const { state } = runtime;
	const approval = state?.approvals.get(approval_id);
	if (state === null || approval?.status !== "pending" || env.BELAY_DEV_APPROVER === "") return;
	const approver = await new D1Principals(env.DB).get(state.run.tenant_id, env.BELAY_DEV_APPROVER);
	if (approver === undefined) return;
	const { token } = links.issue(approval, { ...approver, tenant_id: state.run.tenant_id }, false);
	const url = `${env.BELAY_PUBLIC_URL}/a/${token}`;
	console.log(JSON.stringify({ belay_dev: "approval_link", approval_id, summary: approval.summary, url }));
}
