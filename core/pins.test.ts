/**
 * Frozen literals: clients, stored rows and other releases know these words. A change here is a change of the wire
 * contract and needs a decision record; adding a word is fine, renaming or dropping one is not.
 */
import { expect, it } from "vitest";
import { EVIDENCE_OUTCOMES } from "./evidence/record.ts";
import { FAULT_CODES } from "./outcome.ts";
import { PIPELINE } from "./pipeline.ts";
import { ISSUES, REFUSAL_REASONS } from "./refusal.ts";
import { APPROVAL_STATUSES, CALL_STATES, EVENT_NAMES, RUN_STATUSES } from "./run/view.ts";

it.each([
	["pipeline", PIPELINE, "registry surface availability exposure normalize policy approval invoke evidence"],
	[
		"run status",
		RUN_STATUSES,
		"planning executing awaiting_approval awaiting_decision awaiting_caller completed failed cancelled suspended",
	],
	[
		"call state",
		CALL_STATES,
		"REFUSED AWAITING_APPROVAL AWAITING_CALLER DENIED EXPIRED PENDING DISPATCHED RUNNING COMPLETED FAILED TIMEOUT OUTCOME_UNKNOWN",
	],
	["approval status", APPROVAL_STATUSES, "pending approved denied expired superseded consumed"],
	["evidence outcome", EVIDENCE_OUTCOMES, "success failed timeout denied refused waiting unknown answered"],
	[
		"event",
		EVENT_NAMES,
		"run.status turn.started exposure.selected message.delta call.state approval.requested approval.decided evidence.recorded chain.step run.finished",
	],
	[
		"refusal reason",
		REFUSAL_REASONS,
		"unknown_tool arguments_not_json integer_out_of_range validation_failed semantic_failed security_blocked policy_denied budget_exhausted definition_changed control_unavailable truncated_output duplicate_of_denied run_cancelled superseded unavailable not_recorded",
	],
	[
		"issue",
		ISSUES,
		"required_field_missing type_mismatch enum_out_of_range format_invalid pattern_mismatch out_of_range unknown_field not_unique too_deep too_large schema_violation semantic_violation security_violation not_json integer_out_of_range unknown_name cut_off",
	],
	[
		"fault code",
		FAULT_CODES,
		"http_error rate_limited connection_lost timeout redirect_refused security_blocked response_too_large invalid_response code_error cpu_exceeded wall_exceeded oom instruction_limit not_configured dataset_error delivery_failed circuit_open outcome_unknown interrupted internal",
	],
])("every known %s is still there, spelled the same", (_name, present, pinned) => {
	for (const word of pinned.split(" ")) expect(present).toContain(word);
	for (const word of present) expect(word).toMatch(/^[A-Za-z][A-Za-z_.]*$/);
});
