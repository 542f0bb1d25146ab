/**
 * A run, a call, an approval and a piece of evidence as the outside sees them (wire contract). The same schemas make the
 * OpenAPI document; the types inferred from them are what the Durable Object answers with.
 */
import * as z from "zod";
import { refusal } from "../refusal.ts";
import { RISKS } from "../registry/descriptor.ts";
import { LOCALES } from "../registry/explain-words.ts";

export { type Evidence, type EvidenceOutcome, evidence } from "../evidence/record.ts";

export const RUN_STATUSES = [
	"planning",
	"executing",
	"awaiting_approval",
	"awaiting_decision",
	"awaiting_caller",
	"completed",
	"failed",
	"cancelled",
	"suspended",
] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];
/** A run that is at rest moves only when somebody does something (`Prefer: wait` ends here). */
export const RESTING: ReadonlySet<RunStatus> = new Set([
	"awaiting_approval",
	"awaiting_decision",
	"awaiting_caller",
	"completed",
	"failed",
	"cancelled",
	"suspended",
]);
/** A run that will not move again. `suspended` is resumable and not among them. */
export const FINISHED: ReadonlySet<RunStatus> = new Set(["completed", "failed", "cancelled"]);

export const CALL_STATES = [
	"REFUSED",
	"AWAITING_APPROVAL",
	"AWAITING_CALLER",
	"DENIED",
	"EXPIRED",
	"PENDING",
	"DISPATCHED",
	"RUNNING",
	"COMPLETED",
	"FAILED",
	"TIMEOUT",
	"OUTCOME_UNKNOWN",
] as const;
export type CallState = (typeof CALL_STATES)[number];
/** States in which a call still moves. */
export const LIVE: ReadonlySet<CallState> = new Set([
	"AWAITING_APPROVAL",
	"AWAITING_CALLER",
	"PENDING",
	"DISPATCHED",
	"RUNNING",
]);

export const APPROVAL_STATUSES = ["pending", "approved", "denied", "expired", "superseded", "consumed"] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];

/** ISO 8601 UTC with milliseconds. */
const instant = z.string();

export const attempt = z.object({
	n: z.number().int(),
	started_at: instant,
	duration_ms: z.number().nullable(),
	outcome: z.string().nullable(),
	error: z.string().nullable(),
	http_status: z.number().int().nullable(),
	/** The planned delay before this attempt. */
	waited_ms: z.number(),
});
export type Attempt = z.infer<typeof attempt>;

export const callError = z.object({
	code: z.string(),
	message: z.string(),
	retryable: z.boolean(),
	detail: z.unknown().optional(),
});

export const call = z.object({
	tool_call_id: z.string(),
	provider_call_id: z.string(),
	turn: z.number().int(),
	tool_id: z.string(),
	tool_version: z.string(),
	function_name: z.string(),
	arguments: z.unknown(),
	input_hash: z.string().nullable(),
	state: z.enum(CALL_STATES),
	refusal: refusal.nullable(),
	approval_id: z.string().nullable(),
	attempts: z.array(attempt),
	error: callError.nullable(),
	parent_call_id: z.string().nullable(),
	/** `caller`: a function of the run's caller, which alone runs it; what came back is the caller's word. */
	source: z.enum(["live", "cache", "idempotent_replay", "fallback", "recorded", "caller"]),
	result: z.unknown(),
	notes: z.array(z.string()),
	/** Why a call does not go on yet, and until when at the latest; null when it waits for nothing, or for an approval. */
	waiting: z
		.object({
			reason: z.enum([
				"retry",
				"rate_limit",
				"paused",
				"claim",
				"concurrency",
				"control",
				"halt",
				"gate",
				"fallback",
				"caller",
			]),
			until: instant,
		})
		.nullable(),
	/** Where the result came from when it did not come from the tool itself, and how fresh it is (I6). */
	data_source: z.string().nullable(),
	data_freshness: z.string().nullable(),
	evidence_id: z.string().nullable(),
});
export type CallView = z.infer<typeof call>;

export const approvalDecision = z.object({
	by: z.string(),
	/** Names are for reading and may repeat; this is who it was. */
	principal_id: z.string(),
	decision: z.enum(["approve", "deny"]),
	reason: z.string().nullable(),
	at: instant,
	/** Through which door: the API with a key, or a link. */
	via: z.enum(["api", "link"]),
});

export const approval = z.object({
	approval_id: z.string(),
	run_id: z.string(),
	tool_id: z.string(),
	tool_version: z.string(),
	tool_call_id: z.string(),
	input_hash: z.string(),
	definition_hash: z.string(),
	summary: z.string(),
	arguments: z.unknown(),
	risk: z.enum(RISKS),
	rule_ids: z.array(z.string()),
	requested_by: z.string(),
	/** The permission an approver needs. */
	approvers: z.array(z.string()),
	required: z.number().int(),
	status: z.enum(APPROVAL_STATUSES),
	created_at: instant,
	expires_at: instant,
	decisions: z.array(approvalDecision),
});
export type ApprovalView = z.infer<typeof approval>;

/** A call that waits for the caller, who runs its own functions. */
export const callerCall = z.object({
	tool_call_id: z.string(),
	function_name: z.string(),
	arguments: z.unknown(),
	/** When the run stops waiting and rests as `suspended`; null before it rests for this call. */
	expires_at: instant.nullable(),
});
export type CallerCall = z.infer<typeof callerCall>;

export const runView = z.object({
	run_id: z.string(),
	session_id: z.string(),
	trace_id: z.string(),
	tenant_id: z.string(),
	status: z.enum(RUN_STATUSES),
	goal: z.string(),
	/** The language of its hints and notices; only where it is not English. */
	locale: z.enum(LOCALES).optional(),
	answer: z.string().nullable(),
	planner: z.object({
		kind: z.enum(["openai", "workers_ai", "scripted", "external"]),
		model: z.string().nullable(),
		/** Only where it was asked for. */
		spotlight: z.literal(true).optional(),
	}),
	/** Only of a replay: the run whose recording it plays, and how. */
	replay: z.object({ run_id: z.string(), mode: z.enum(["recorded", "live"]) }).optional(),
	turn: z.number().int(),
	usage: z.object({
		prompt_tokens: z.number().int(),
		completion_tokens: z.number().int(),
		tool_definition_tokens: z.number().int(),
		/** Of `prompt_tokens`, those that the planner's provider had in its cache; only where it says. */
		prompt_cache_hit_tokens: z.number().int().optional(),
		/** Calls that have started, only under `limits.max_calls`: each once, however often it was tried. */
		calls: z.number().int().optional(),
		/** What the run has cost so far, in millionths of a US dollar; null when nobody has said a price of something it used. */
		cost_micro_usd: z.number().int().nullable(),
	}),
	calls: z.array(call),
	pending_approvals: z.array(approval),
	/** Calls of the caller's own functions that have no answer yet, in the planner's order. */
	caller_calls: z.array(callerCall),
	error: z.object({ code: z.string(), message: z.string() }).nullable(),
	metadata: z.record(z.string(), z.unknown()),
	/** The newest entry of the run's log: hand it back as `after_seq`. */
	seq: z.number().int(),
	created_at: instant,
	updated_at: instant,
});
export type RunView = z.infer<typeof runView>;

/** One tool message of a turn; `final: false` while the call awaits approval or runs. */
export const turnMessage = z.object({
	role: z.literal("tool"),
	tool_call_id: z.string(),
	content: z.string(),
	final: z.boolean(),
});
export const turnView = z.object({
	run: runView,
	messages: z.array(turnMessage),
	pending_approvals: z.array(approval),
});
/** The tool messages of a turn, and what an external planner's user said in it, or, where no turn was named, since. */
export const messagesView = z.object({
	turn: z.number().int(),
	messages: z.array(turnMessage),
	said: z
		.array(z.string())
		.describe(
			"words of `POST …/messages` to a run with an external planner, in this turn or, without `turn`, since it",
		),
});
export type MessagesView = z.infer<typeof messagesView>;
export type TurnMessage = z.infer<typeof turnMessage>;
export type TurnView = z.infer<typeof turnView>;

export const exposureTrace = z.object({
	tool_id: z.string(),
	function_name: z.string().nullable(),
	exposed: z.boolean(),
	reason: z.string(),
	recall_score: z.number().nullable(),
	rerank_score: z.number().nullable(),
});
export type ExposureTrace = z.infer<typeof exposureTrace>;

/** Event names of the stream and of the log, frozen. */
export const EVENT_NAMES = [
	"run.status",
	"turn.started",
	"exposure.selected",
	"message.delta",
	"call.state",
	"approval.requested",
	"approval.decided",
	"evidence.recorded",
	"chain.step",
	"run.finished",
] as const;
export type EventName = (typeof EVENT_NAMES)[number];
