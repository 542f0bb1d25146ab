/** The evidence and the audit entry of one call at one moment: masked input, what permitted it, what it proves. */

import { maskJson, maskText } from "../data/mask.ts";
import type { Evidence, EvidenceOutcome } from "../evidence/record.ts";
import { callerStatement, RECORDED, type Statement, statement, uninvoked } from "../evidence/statement.ts";
import type { Json } from "../json.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";
import { attemptCost } from "./budget.ts";
import type { Draft } from "./draft.ts";
import type { CallRecord } from "./state.ts";

export type Moment = {
	/** The rich reason: for evidence and audit, never for the planner. */
	readonly reason: string | null;
	readonly facts?: readonly string[];
	/** Null: policy was never asked. */
	readonly permission_decision: "allow" | "ask" | "deny" | null;
	readonly security_flags?: readonly string[];
	readonly duration_ms?: number;
	readonly artifacts?: readonly string[];
	/** What it proves, where that does not follow from the outcome: the end came from elsewhere than the tool. */
	readonly said?: Statement;
};

export function evidenceOf(draft: Draft, call: CallRecord, outcome: EvidenceOutcome, moment: Moment): Evidence {
	const { run } = draft;
	const tool = call.definition_hash === null ? null : draft.kit.tool(call.definition_hash);
	const approval = call.approval_id === null ? undefined : draft.approvals.get(call.approval_id);
	const input = maskJson((call.frozen ?? call.arguments ?? null) as Json);
	const flags = [...(moment.security_flags ?? []), ...call.security_flags];
	const said = moment.said ?? saidOf(call, outcome, tool?.version.descriptor ?? null);
	return draft.evidence(
		{
			tool_call_id: call.tool_call_id,
			tool_id: call.tool_id,
			tool_version: call.tool_version,
			input,
			input_hash: call.input_hash,
			outcome,
			reason: moment.reason === null ? null : maskText(moment.reason),
			facts: (moment.facts ?? []).map((fact) => maskText(fact)),
			artifacts: [...(moment.artifacts ?? [])],
			proves: [...said.proves],
			does_not_prove: [...said.does_not_prove],
			envelope: {
				principal_id: run.principal.principal_id,
				principal_kind: run.principal.kind,
				session_id: run.session_id,
				trace_id: run.trace_id,
				turn: call.turn,
				definition_hash: call.definition_hash,
				policy_rev: call.policy_rev,
				rule_ids: [...call.rule_ids],
				...(flags.length === 0 ? {} : { security_flags: flags }),
				permission_decision: moment.permission_decision,
				source: call.source,
				parent_call_id: call.parent_call_id,
				approval:
					approval === undefined
						? null
						: {
								approval_id: approval.approval_id,
								status: approval.status,
								decisions: approval.decisions.map(({ by, decision, at, via }) => ({ by, decision, at, via })),
							},
				attempts: call.attempts.length,
				...costed(tool?.version.descriptor, call),
				dispatched_at: call.attempts.at(-1)?.started_at ?? null,
			},
		},
		{
			tool_id: call.tool_id,
			action: `call.${outcome}`,
			input_params: input,
			duration_ms: moment.duration_ms ?? null,
			permission_decision: moment.permission_decision,
			security_flags: [...flags],
			status: call.state,
		},
	);
}

function saidOf(call: CallRecord, outcome: EvidenceOutcome, subject: ToolDescriptor | null): Statement {
	if (call.source === "recorded") return RECORDED;
	if (call.source === "caller") return callerStatement(outcome);
	return (call.attempts.length === 0 ? uninvoked(outcome) : null) ?? statement(outcome, subject);
}

/** What the call has cost so far, where its tool declares a cost that can be counted. */
function costed(descriptor: ToolDescriptor | undefined, { attempts }: CallRecord): { cost_micro_usd?: number } {
	if (descriptor?.cost === undefined) return {};
	const cost = attemptCost(descriptor);
	return cost === null ? {} : { cost_micro_usd: cost * attempts.length };
}
