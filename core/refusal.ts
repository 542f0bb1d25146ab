/**
 * Refusals are values. The reason a planner or prober sees is coarse and frozen; the rich reason goes to the evidence.
 */
import * as z from "zod";

/** Frozen literals (pinned by a test): what a refused call says. */
export const REFUSAL_REASONS = [
	"unknown_tool",
	"arguments_not_json",
	"integer_out_of_range",
	"validation_failed",
	"semantic_failed",
	"security_blocked",
	"policy_denied",
	"budget_exhausted",
	"definition_changed",
	"control_unavailable",
	"truncated_output",
	"duplicate_of_denied",
	"run_cancelled",
	"superseded",
	"unavailable",
	"not_recorded",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Frozen literals: what is wrong with one field. */
export const ISSUES = [
	"required_field_missing",
	"type_mismatch",
	"enum_out_of_range",
	"format_invalid",
	"pattern_mismatch",
	"out_of_range",
	"unknown_field",
	"not_unique",
	"too_deep",
	"too_large",
	"schema_violation",
	"semantic_violation",
	"security_violation",
	"not_json",
	"integer_out_of_range",
	"unknown_name",
	"cut_off",
] as const;
export type Issue = (typeof ISSUES)[number];

/** V4: one thing to repair. `field` is a JSON Pointer ("" is the whole); nothing here echoes a value that may be secret. */
export const fieldError = z.object({
	error: z.string(),
	field: z.string(),
	issue: z.enum(ISSUES),
	expected: z.string(),
	hint: z.string(),
});
export type FieldError = z.infer<typeof fieldError>;

export const refusal = z.object({
	stage: z.string(),
	reason: z.enum(REFUSAL_REASONS),
	blocked: z.boolean(),
	errors: z.array(fieldError),
});
export type Refusal = z.infer<typeof refusal>;
