/** Who may see and steer a run. Anybody else gets the answer for a run that does not exist. */
import type { Caller, Principal } from "../principal.ts";
import { permits } from "./permits.ts";

type OwnedRun = { readonly tenant_id: string; readonly principal: Principal };

/** Decision 18: agents read their own runs; others theirs, and every run of the tenant with `runs:read:*`. */
export function mayRead(caller: Caller, run: OwnedRun): boolean {
	if (caller.tenant_id !== run.tenant_id) return false;
	if (caller.principal_id === run.principal.principal_id) return true;
	return caller.kind !== "agent" && permits(caller.authority.permissions, "runs:read:*");
}

/** Steering is the owner's, and that of a person with `runs:write:*`. */
export function maySteer(caller: Caller, run: OwnedRun): boolean {
	if (caller.tenant_id !== run.tenant_id) return false;
	if (caller.principal_id === run.principal.principal_id) return true;
	return caller.kind === "user" && permits(caller.authority.permissions, "runs:write:*");
}

/** Whose word a call of the caller's own functions waits for: the run's principal, and nobody in its place. */
export const mayAnswer = (caller: Caller, run: OwnedRun): boolean =>
	caller.tenant_id === run.tenant_id && caller.principal_id === run.principal.principal_id;

/** An approval is seen by who may see its run, and by people who may decide it or read approvals. */
export function mayReadApproval(caller: Caller, run: OwnedRun, domain: string): boolean {
	if (mayRead(caller, run)) return true;
	if (caller.tenant_id !== run.tenant_id || caller.kind === "agent") return false;
	const { permissions } = caller.authority;
	return permits(permissions, "approval:read:*") || permits(permissions, `approval:decide:${domain}`);
}
