/**
 * What a Worker may ask of an AgentRun, over RPC. Every message carries `v`: code rolls out gradually, and a new Worker
 * will call an old object. Answers are values; an error is a problem, never a thrown one.
 */

import type { Summarized } from "#core/approval/summarize.ts";
import type { Condition } from "#core/availability/available.ts";
import type { Json, JsonObject } from "#core/json.ts";
import type { WireDecision } from "#core/planner/decision.ts";
import type { FunctionDefinition } from "#core/ports.ts";
import type { Caller } from "#core/principal.ts";
import type { FieldError } from "#core/refusal.ts";
import type { Locale } from "#core/registry/explain-words.ts";
import type { RecordedTurn, Replay } from "#core/run/recording.ts";
import type {
	ApprovalView,
	CallView,
	Evidence,
	ExposureTrace,
	MessagesView,
	RunView,
	TurnView,
} from "#core/run/view.ts";

/** A problem as RFC 9457 will carry it; `code` is a frozen literal. */
export type Problem = {
	readonly status: number;
	readonly code: string;
	readonly detail: string;
	readonly errors?: readonly FieldError[];
	readonly retry_after_s?: number;
	/** More members for the body, e.g. the winner's decision of `already_decided`. */
	readonly extra?: JsonObject;
};
export type Reply<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: Problem };

export type Ask<T = object> = { readonly v: 1; readonly caller: Caller } & T;

export type PlannerSpec = {
	readonly kind: "openai" | "workers_ai" | "scripted" | "external";
	readonly model: string | null;
	/** Results are marked word by word for the model. */
	readonly spotlight?: true | undefined;
	/** A replay's is of `RecordedTurn`s. */
	readonly script: readonly ScriptEntry[];
};
export type ScriptEntry = WireDecision | RecordedTurn;
export type RunLimits = {
	readonly turns: number;
	readonly turn_timeout_ms: number;
	readonly session_timeout_ms: number;
	/** 0: no limit declared. */
	readonly max_tokens: number;
	/** Millionths of a US dollar; absent: no budget of money. */
	readonly max_calls?: number | undefined;
	readonly max_cost_micro_usd?: number | undefined;
};
export type CreateRun = {
	readonly run_id: string;
	/** SHA-256 of the canonical request, so that a repeated Idempotency-Key with another body is told apart. */
	readonly request_hash: string;
	readonly trace_id: string;
	readonly session_id: string;
	readonly goal: string;
	/** User, system and plain assistant text only (decision 39). */
	readonly messages: readonly { readonly role: "user" | "system" | "assistant"; readonly content: string }[];
	readonly tools: readonly string[] | null;
	/** Functions that the caller runs itself; absent when it brought none. */
	readonly caller_functions?: readonly FunctionDefinition[] | undefined;
	readonly planner: PlannerSpec;
	readonly replay?: Replay | undefined;
	readonly limits: RunLimits;
	/** The language of repair hints; absent: that of the goal. */
	readonly locale?: Locale | undefined;
	readonly metadata: JsonObject;
	readonly context: JsonObject;
};
/** What a finished run recorded: all that a replay of it is created from. */
export type Recording = Pick<CreateRun, "goal" | "messages" | "tools" | "limits" | "locale" | "metadata"> & {
	readonly script: readonly RecordedTurn[];
	readonly placeholders: boolean;
};
/**
 * From where to send the log. `creation_ms`: how long to wait for a run that is about to be created, because the planner's
 * text is in no log and only who listens before the first turn gets all of it.
 */
export type Listen = { readonly after_seq: number | null; readonly creation_ms?: number };
/** How long an answer may wait for the run to rest, ms; 0: answer at once. */
export type Wait = { readonly wait_ms: number };

export type Say = {
	readonly content: string;
	readonly idempotency_key: string | null;
	/** What the caller offers from here on; absent: as before. */
	readonly caller_functions?: readonly FunctionDefinition[] | undefined;
	/** All instructions that the caller gives, old ones included. */
	readonly system?: readonly string[] | undefined;
};
export type AnswerCalls = {
	/** Every call that waits for the caller, by the id that it was handed out with. */
	readonly answers: readonly { readonly tool_call_id: string; readonly content: string }[];
	/** The user's words that came with them. */
	readonly content: string | null;
	readonly caller_functions?: readonly FunctionDefinition[] | undefined;
	readonly system?: readonly string[] | undefined;
};

export type DecideApproval = {
	readonly approval_id: string;
	readonly decision: "approve" | "deny";
	readonly tool_id: string;
	readonly tool_call_id: string;
	readonly input_hash: string;
	readonly reason: string | null;
};
/** A link asked for under an Idempotency-Key: 32 bytes in hex that only this deployment can compute from it, and the request. */
export type LinkRequest = { readonly seed: string; readonly hash: string };
/** What a link's page shows: exactly the frozen call. */
export type LinkView = {
	readonly approval: ApprovalView;
	readonly approver: string;
	readonly csrf: string;
	readonly view_only: boolean;
	readonly goal: string;
	/** Why a superseded approval is that; null of others, and where it is not known. */
	readonly superseded?: SupersededBy | null;
	/** For a summary in the reader's language; an object of an earlier version does not say. */
	readonly tool?: Summarized;
};
/** `cancelled`, `ended`: its run was, or did. `refused`: the call was judged again and is not allowed any more. */
export type SupersededBy = "edited" | "cancelled" | "ended" | "taken_back" | "budget" | "refused";

export type ExposureView = {
	readonly turn: number;
	readonly mode: "all" | "ranked";
	readonly definitions: FunctionDefinition[];
	readonly trace: ExposureTrace[];
	/** What was observed of this run; an older object does not say. */
	readonly conditions?: Condition[];
};

export type Decide = {
	readonly decision: WireDecision;
	readonly wait_ms: number | null;
	readonly idempotency_key: string | null;
	readonly as_text?: true;
};

export interface AgentRunApi {
	create(ask: Ask<CreateRun & Wait>): Promise<Reply<RunView>>;
	read(ask: Ask<Wait & { readonly after_seq: number | null }>): Promise<Reply<RunView>>;
	/**
	 * `wait_ms` null: what is left of the turn. `as_text`: the answer's JSON text, for a route that only passes it on; who does
	 * not ask for it (a Worker of an earlier version), and who asks an object of an earlier version, gets the view itself.
	 */
	decide(ask: Ask<Decide>): Promise<Reply<string | TurnView>>;
	messages(ask: Ask<{ readonly turn: number | null }>): Promise<Reply<MessagesView>>;
	say(ask: Ask<Wait & Say>): Promise<Reply<RunView>>;
	/** The caller's word on calls of its own functions; only the run's principal may give it. */
	answer(ask: Ask<AnswerCalls>): Promise<Reply<RunView>>;
	cancel(ask: Ask): Promise<Reply<RunView>>;
	resume(ask: Ask<Wait>): Promise<Reply<RunView>>;
	exposure(ask: Ask): Promise<Reply<ExposureView>>;
	/** A page of it; `next_seq` is what to go on after. */
	evidence(
		ask: Ask<{ readonly after_seq?: number; readonly limit?: number }>,
	): Promise<Reply<{ data: Evidence[]; next_seq?: number | null; head_hash: string }>>;
	verify(ask: Ask): Promise<Reply<{ valid: boolean; checked: number; broken_at: number | null }>>;
	/** 409 `not_replayable` while it moves, and when it recorded nothing. */
	recording(ask: Ask): Promise<Reply<Recording>>;
	settleOutcome(
		ask: Ask<{ tool_call_id: string; outcome: "happened" | "not_happened"; result: Json | null; reason: string }>,
	): Promise<Reply<RunView>>;
	/** One call, its result whole however large. */
	call(ask: Ask<{ readonly tool_call_id: string }>): Promise<Reply<CallView>>;
	cancelCall(ask: Ask<{ readonly tool_call_id: string }>): Promise<Reply<RunView>>;
	approval(ask: Ask<{ readonly approval_id: string }>): Promise<Reply<ApprovalView>>;
	decideApproval(ask: Ask<DecideApproval>): Promise<Reply<ApprovalView>>;
	editApproval(
		ask: Ask<{ readonly approval_id: string; readonly arguments: JsonObject }>,
	): Promise<Reply<ApprovalView>>;
	/**
	 * Makes a link for an approver and answers its token once. Called by the development print and by link senders; a
	 * token is never logged. `approver` is a registered user of the tenant.
	 */
	issueLink(ask: {
		v: 1;
		tenant_id: string;
		approval_id: string;
		approver: Caller;
		view_only: boolean;
		request?: LinkRequest;
	}): Promise<Reply<{ token: string; expires_at: string; tool?: Summarized }>>;
	/** What a repeated request for a link gets: that of the first, once its mail was taken; null when there is none. */
	linkOfRequest(
		ask: Ask<{ readonly approval_id: string; readonly request: LinkRequest }>,
	): Promise<Reply<{ expires_at: string } | null>>;
	/** Whether the mail with a requested link was taken. */
	linkMailed(ask: { v: 1; token: string; taken: boolean }): Promise<Reply<null>>;
	/** Shows; decides nothing (A4). `token` has had its MAC checked by the Worker already; it is checked again here. */
	openLink(ask: { v: 1; token: string }): Promise<Reply<LinkView>>;
	/** Decides once. `csrf` is the page's. */
	decideLink(ask: {
		v: 1;
		token: string;
		csrf: string;
		decision: "approve" | "deny";
		reason: string | null;
	}): Promise<Reply<ApprovalView>>;
	/** From another run's object: a place of its concurrency class is free for this call. A call that moved on gives it back. */
	woken(ask: { v: 1; tool_call_id: string }): Promise<void>;
	/** The event stream: a WebSocket upgrade with `x-belay-ask` (an Ask of `Listen`) as JSON; frames are `{seq, event, data}`. 429 with a problem when the run has listeners enough. */
	fetch(request: Request): Promise<Response>;
}
