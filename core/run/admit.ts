/**
 * A decision's calls, one after the other: resolve identity -> tool-level permission -> normalize -> freeze -> policy and
 * approval (N1). What comes out is a call that is refused, waits for a human, or is pending; nothing is invoked here.
 */
import { judgeApproval } from "../approval/ask.ts";
import { summarize } from "../approval/grant.ts";
import { approvalId, toolCallId } from "../ids.ts";
import { type Json, type JsonObject, wellFormed } from "../json.ts";
import { APPROVAL_TTL_DEFAULT_MS, CALLS_PER_TURN_MAX } from "../limits.ts";
import { freeze } from "../normalize/freeze.ts";
import { normalize } from "../normalize/normalize.ts";
import { readArguments } from "../planner/arguments.ts";
import { fillPlaceholders } from "../planner/placeholders.ts";
import { validCall } from "../planner/repair-guard.ts";
import { judgeCall, judgeTool, mostRestrictive, type Verdict } from "../policy/permits.ts";
import type { PlannedCall } from "../ports.ts";
import type { FieldError } from "../refusal.ts";
import type { CompiledTool } from "../registry/register.ts";
import { unaffordable } from "./budget.ts";
import { admitCallerCall, callerFunction, isCallerToolId } from "./caller-call.ts";
import type { Draft } from "./draft.ts";
import { evidenceOf } from "./evidence-of.ts";
import { judgeCheck } from "./judge-check.ts";
import { iso } from "./kit.ts";
import type { RecordedCall } from "./recording.ts";
import { field, refuse, refuseCut } from "./refuse.ts";
import { endAsRecorded, judgeReplay, notRecorded, replayCallerCall } from "./replay.ts";
import { scopeOf } from "./scope.ts";
import type { CallRecord, ExposedTool, World } from "./state.ts";
import { scopeOfCall, taintFlags, taintOf } from "./taint-of.ts";

export type Admission = {
	readonly world: World;
	/** Results that placeholders of a scripted decision may name; null for every other planner. */
	readonly results: ReadonlyMap<string, Json> | null;
	/** The whole response was cut off: nothing of it runs (T03). */
	readonly cut: boolean;
	/** A replay's: how this call ended in the recorded run. */
	readonly recorded: RecordedCall | null;
};

export function admit(draft: Draft, planned: PlannedCall, index: number, admission: Admission): CallRecord {
	const exposed = draft.exposure?.tools.find((tool) => tool.function_name === planned.name);
	const call = blank(draft, planned, exposed);
	if (index >= CALLS_PER_TURN_MAX) {
		return refuse(draft, call, "normalize", "budget_exhausted", [
			field("", "too_large", `at most ${CALLS_PER_TURN_MAX} calls in one turn`, "send fewer calls"),
		]);
	}
	const { recorded } = admission;
	const replayed = draft.run.replay !== undefined && recorded !== null;
	if (replayed && isCallerToolId(recorded.tool_id))
		return replayCallerCall(draft, call, recorded, planned.arguments, admission.cut);
	const own = exposed === undefined ? callerFunction(draft.run, draft.exposure, planned.name) : undefined;
	if (own !== undefined) return admitCallerCall(draft, call, own, planned.arguments, admission.cut);
	if (exposed === undefined)
		return refuse(draft, call, "exposure", "unknown_tool", [unknownTool(planned.name)], "not exposed this turn");
	const tool = draft.kit.tool(exposed.definition_hash);
	const identified: CallRecord = {
		...call,
		tool_id: exposed.tool_id,
		tool_version: tool.version.descriptor.version,
		definition_hash: exposed.definition_hash,
	};
	// P1: permission comes before anything looks at the arguments, and its answer is the unknown tool's (decision 20).
	const permitted = judgeTool(draft.run.authority, tool.version.descriptor);
	if (permitted.decision === "deny") {
		return refuse(draft, call, "policy", "unknown_tool", [unknownTool(planned.name)], permitted.reason);
	}
	// Another tool has the function's name today: the arguments were not meant for it.
	if (replayed && recorded.tool_id !== exposed.tool_id)
		return notRecorded(draft, identified, "the recorded call was of another tool");
	if (admission.cut) return refuseCut(draft, identified);
	return judge(draft, identified, tool, planned.arguments, admission, permitted);
}

function judge(
	draft: Draft,
	call: CallRecord,
	tool: CompiledTool,
	text: string | null,
	admission: Admission,
	permitted: Verdict,
): CallRecord {
	const read = readArguments(text);
	if (!read.ok) return refuse(draft, call, "normalize", read.reason, read.errors);
	let value: JsonObject = read.value;
	if (admission.results !== null) {
		const filled = fillPlaceholders(value, admission.results);
		if (!filled.ok) return refuse(draft, call, "normalize", "validation_failed", filled.errors);
		value = filled.value;
	}
	return judgeArguments(
		draft,
		{ ...call, arguments: value, arguments_text: text },
		tool,
		value,
		permitted,
		admission.world,
		admission.recorded,
	);
}

/** Also the way of an edited approval: arguments that are an object already, judged from the start. */
export function judgeArguments(
	draft: Draft,
	call: CallRecord,
	tool: CompiledTool,
	value: JsonObject,
	permitted: Verdict,
	world: World,
	recorded: RecordedCall | null = null,
): CallRecord {
	const scope = scopeOf(draft, value);
	let tainted: readonly string[] | undefined;
	const taint = (args: JsonObject): readonly string[] => {
		tainted = taintOf(draft, call.turn, args);
		return tainted;
	};
	const normal = normalize(tool, value, {
		scope,
		judgeUrl: draft.kit.judgeUrl,
		locale: draft.run.locale ?? "en",
		taint,
	});
	if (!normal.ok)
		return refuse(
			draft,
			{ ...call, security_flags: taintFlags(tainted) },
			normal.refusal.stage,
			normal.refusal.reason,
			normal.refusal.errors,
			undefined,
			normal.refusal.blocked,
		);
	const { descriptor } = tool.version;
	const frozenScope = scopeOfCall(draft, call, tool, normal.arguments);
	const { input_hash } = freeze(
		{
			tenant_salt: draft.kit.tenant_salt,
			descriptor,
			definition_hash: tool.version.definition_hash,
			arguments: normal.arguments,
			context: {
				cwd: null,
				env: null,
				timeout_ms: descriptor.timeout_ms ?? 0,
				target: null,
				egress: null,
				credential_version: null,
			},
		},
		draft.kit.digest,
	);
	const frozen: CallRecord = {
		...call,
		arguments: normal.arguments,
		frozen: normal.arguments,
		input_hash,
		notes: normal.notes,
		security_flags: [...taintFlags(frozenScope.args_taint), ...normal.flags],
	};
	const objected = judgeCheck(draft, frozen, tool);
	if (objected !== null) return objected;
	draft.set({ repair_guard: validCall(draft.run.repair_guard, call.function_name) });
	if (draft.run.denied.some((denied) => denied.tool_id === call.tool_id && denied.input_hash === input_hash)) {
		const hint = "a person has decided against exactly this call in this run; do not ask for it again";
		return refuse(draft, frozen, "approval", "duplicate_of_denied", [
			field("", "semantic_violation", "a call that was not denied before", hint),
		]);
	}
	const verdict = mostRestrictive(
		permitted,
		judgeCall(draft.run.authority, descriptor, normal.arguments, frozenScope),
		judgeApproval(tool, normal.arguments, frozenScope),
		...judgeReplay(draft.run, descriptor),
	);
	const judged: CallRecord = { ...frozen, rule_ids: verdict.rule_ids, policy_rev: world.lease?.policy_rev ?? null };
	if (verdict.decision === "deny") {
		return refuse(
			draft,
			judged,
			"policy",
			"policy_denied",
			[field("", "semantic_violation", "a call that policy allows", "policy does not allow this call")],
			verdict.reason,
		);
	}
	if (draft.run.replay?.mode === "recorded") return endAsRecorded(draft, judged, recorded, verdict.decision);
	const short = unaffordable(draft, descriptor);
	if (short !== null) return refuse(draft, judged, "invoke", "budget_exhausted", [short], short.error);
	if (verdict.decision === "ask") return ask(draft, judged, tool, verdict);
	const pending: CallRecord = { ...judged, state: "PENDING" };
	draft.call(pending);
	return pending;
}

/** Puts exactly this frozen call before a human (A1). */
function ask(draft: Draft, call: CallRecord, tool: CompiledTool, verdict: Verdict): CallRecord {
	const { descriptor } = tool.version;
	const approval_id = approvalId(draft.part, draft.kit.random);
	const expires_at_ms = draft.kit.now + APPROVAL_TTL_DEFAULT_MS;
	const waiting: CallRecord = { ...call, approval_id, state: "AWAITING_APPROVAL" };
	draft.call(waiting);
	draft.approval(
		{
			approval_id,
			run_id: draft.run.run_id,
			tool_id: call.tool_id,
			tool_version: call.tool_version,
			tool_call_id: call.tool_call_id,
			input_hash: call.input_hash ?? "",
			definition_hash: call.definition_hash ?? "",
			summary: summarize(descriptor, call.frozen ?? {}),
			arguments: call.frozen,
			risk: descriptor.risk,
			// Whose words these may be is what the approver has to know.
			rule_ids: [...verdict.rule_ids, ...call.security_flags.filter((flag) => flag.startsWith("taint:"))],
			requested_by: draft.run.principal.principal_id,
			approvers: [`approval:decide:${descriptor.category}`],
			required: 1,
			status: "pending",
			created_at: draft.at,
			expires_at: iso(expires_at_ms),
			decisions: [],
			domain: descriptor.category,
			expires_at_ms,
		},
		"approval.requested",
	);
	const recorded = evidenceOf(draft, waiting, "waiting", { reason: verdict.reason, permission_decision: "ask" });
	const told: CallRecord = { ...waiting, evidence_id: recorded.evidence_id };
	draft.call(told);
	draft.effect({ kind: "announce", approval_id });
	return told;
}

/** A call that has been asked for and nothing more. */
export function blank(draft: Draft, planned: PlannedCall, exposed: ExposedTool | undefined): CallRecord {
	const n = draft.nextCall();
	return {
		tool_call_id: toolCallId(draft.part, draft.kit.random),
		provider_call_id: planned.id,
		turn: draft.run.turn,
		// Evidence names it, and canonical JSON knows no half characters.
		tool_id: exposed?.tool_id ?? wellFormed(planned.name),
		tool_version: "",
		function_name: planned.name,
		arguments: null,
		input_hash: null,
		state: "PENDING",
		refusal: null,
		approval_id: null,
		attempts: [],
		error: null,
		parent_call_id: null,
		source: "live",
		result: null,
		notes: [],
		evidence_id: null,
		n,
		ordinal: n,
		definition_hash: null,
		frozen: null,
		boot_id: null,
		rule_ids: [],
		security_flags: [],
		policy_rev: null,
		deadline_at: null,
		running_logged: false,
		retry_at: null,
		gate: "none",
		pass_out: false,
		child: null,
		unsettled: false,
		waiting: null,
		data_source: null,
		data_freshness: null,
		superseded_by: null,
		arguments_text: null,
	};
}

/** One answer for a tool that does not exist, is not exposed, or may not be called: a prober learns nothing (decision 20). */
function unknownTool(name: string): FieldError {
	const shown = name.slice(0, 64);
	return {
		error: `unknown tool \`${shown}\``,
		field: "",
		issue: "unknown_name",
		expected: "the name of one of the offered tools",
		hint: "choose from the tools offered this turn",
	};
}
