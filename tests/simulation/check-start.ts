/** What must be so at the moment a call is given to the world: checked against the world that the step was given. */
import { LEASE_TTL_MS } from "#core/limits.ts";
import type { ToolDescriptor } from "#core/registry/descriptor.ts";
import type { CallRecord } from "#core/run/state.ts";
import { FINISHED } from "#core/run/view.ts";
import { checkHeld } from "./check-semantic.ts";
import { permits } from "./permits.ts";
import type { RunTwin } from "./run-twin.ts";
import { fail, type Taken } from "./taken.ts";
import { toolOf } from "./tools.ts";
import type { Town } from "./town.ts";

/** A caller's late answer resumes its run. */
const RESUMES: ReadonlySet<string> = new Set(["resumed", "answered"]);

export function checkStart(
	town: Town,
	run: RunTwin,
	{ before, event, step }: Taken,
	call: CallRecord,
	timeout_ms: number,
): ToolDescriptor {
	const { descriptor } = toolOf(call.definition_hash ?? "").version;
	const { tool_id, effect } = descriptor;
	if (tool_id !== call.tool_id) fail("a call of one tool started another");
	const world = "world" in event ? event.world : fail(`${event.kind} started a call`);
	const gated =
		descriptor.approval.mode === "always" || (run.played?.replay.mode === "live" && descriptor.effect !== "read");
	const { lease, authority } = world;
	if (lease === null || town.now - lease.issued_at > LEASE_TTL_MS) {
		if (gated || effect !== "read") fail(`${tool_id} started without control's word`);
	} else {
		if (lease.halts.some(({ scope }) => scope === "tenant" || scope === `tool:${tool_id}`))
			fail(`${tool_id} started in a halt`);
		if (lease.revoked_principals.includes(run.run?.principal.principal_id ?? ""))
			fail("a revoked principal started a call");
	}
	const { permissions } = authority ?? fail("a call started without authority");
	if (!permits(permissions, descriptor)) fail(`${tool_id} started without permission`);
	if (world.tools !== null && !world.tools.some((one) => one.definition_hash === call.definition_hash))
		fail(`${tool_id} started in a version that is not online`);
	const status = before?.run.status;
	if (status !== undefined && (FINISHED.has(status) || (status === "suspended" && !RESUMES.has(event.kind))))
		fail(`a call started in a run that is ${status}`);
	checkHeld(town, call);
	if (gated) checkGrant(town, run, event, call);
	if (timeout_ms > 0 && step.state !== null) {
		const { clocks, limits } = step.state.run;
		const left = limits.turn_timeout_ms - clocks.turn_spent_ms - (clocks.since === null ? 0 : town.now - clocks.since);
		if (left <= 0) fail("a call started in a turn without time");
		if (timeout_ms > left) fail("an attempt may outlive its turn");
		const now = run.calls.get(call.tool_call_id);
		if (now?.state !== "DISPATCHED" || now.boot_id !== `boot${run.boot}`)
			fail("an attempt was not saved as this life's");
		const waited_for = before?.calls.get(call.tool_call_id)?.retry_at ?? null;
		if (waited_for !== null && waited_for > town.now) fail("a call was tried again before its time");
		if (now.attempts.at(-1)?.outcome !== null) fail("an attempt began as ended");
		if (descriptor.idempotency.mode === "key") checkClaim(town, call);
	}
	return descriptor;
}

/** The grant names this call and hash, a person gave it, and this start has spent it. */
function checkGrant(town: Town, run: RunTwin, event: Taken["event"], call: CallRecord): void {
	const approval = run.approvals.get(call.approval_id ?? "") ?? fail(`${call.tool_id} started without an approval`);
	if (approval.status !== "consumed") fail(`${call.tool_id} started on an approval that is ${approval.status}`);
	if (approval.tool_call_id !== call.tool_call_id || approval.input_hash !== call.input_hash)
		fail("a call started on another's approval");
	const now =
		event.kind === "approval_decided" && event.approval_id === approval.approval_id && event.decision === "approve";
	if (now ? event.input_hash !== call.input_hash : town.granted.get(approval.approval_id) !== call.input_hash)
		fail("a call started on a word that nobody gave");
	if (call.attempts.length <= 1 && town.endOf(approval) <= town.now) fail("a call started on an expired approval");
}

/** A keyed write starts only while its own key is its own. */
function checkClaim(town: Town, call: CallRecord): void {
	const claims = [...town.gateOf(call.tool_id).claims.values()].filter((claim) => claim.owner === call.tool_call_id);
	if (call.gate !== "passed" || claims.length === 0) fail("a keyed write started without its claim");
}
