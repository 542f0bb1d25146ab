/** Everything that can happen to a run. An event carries what the shell gathered; the step itself fetches nothing. */
import type { GateAnswer } from "../invoke/gate-answer.ts";
import type { Json, JsonObject } from "../json.ts";
import type { InvokeOutcome } from "../outcome.ts";
import type { Compaction } from "../planner/context-window.ts";
import type { PlannerDecision, PlannerFault } from "../ports.ts";
import type { Caller } from "../principal.ts";
import type { Locale } from "../registry/explain-words.ts";
import type { TokenPrices } from "./budget.ts";
import type { Effect } from "./effect.ts";
import type { RecordedCall, Replay } from "./recording.ts";
import type { SemanticVerdicts } from "./semantic-check.ts";
import type { ApprovalRecord, CallerFunction, CallRecord, PlannerKind, RunLimits, World } from "./state.ts";

export type Created = {
	readonly kind: "created";
	readonly run_id: string;
	readonly request_hash: string;
	readonly trace_id: string;
	readonly session_id: string;
	readonly goal: string;
	readonly messages: readonly { readonly role: "user" | "system" | "assistant"; readonly content: string }[];
	readonly pinned: readonly string[] | null;
	readonly planner: {
		readonly kind: PlannerKind;
		readonly model: string | null;
		readonly spotlight?: true | undefined;
	};
	/** Of a managed planner's tokens; absent when nobody has said them. */
	readonly prices?: TokenPrices | undefined;
	readonly script_length: number;
	readonly replay?: Replay | undefined;
	readonly limits: RunLimits;
	/** The language of repair hints; absent: that of the goal. */
	readonly locale?: Locale | undefined;
	readonly metadata: JsonObject;
	readonly context: JsonObject;
	/** Functions that the caller runs itself; absent when it brought none. */
	readonly caller_functions?: readonly CallerFunction[] | undefined;
	readonly caller: Caller;
	readonly world: World;
};

export type Planned = {
	readonly kind: "planned";
	readonly turn: number;
	readonly decision: PlannerDecision;
	/** Managed planners only: the text looked like a tool call (T11). */
	readonly call_as_text: boolean;
	/** Scripted decisions: results of earlier calls by the script's own call ids; null where nothing may be put in. */
	readonly results: ReadonlyMap<string, Json> | null;
	readonly compacted?: Compacting | undefined;
	/** A replay's: how each call of the decision ended in the recorded run, and what the user said behind it. */
	readonly recorded?: readonly (RecordedCall | null)[] | undefined;
	readonly said?: readonly string[] | undefined;
	/** What the tools' own checks said; absent where no call needs one. */
	readonly checks?: SemanticVerdicts | undefined;
	readonly world: World;
};

/**
 * What was done to the conversation before the planner was asked: it is kept, and paid for, whatever the planner answered.
 * `usage` of the summary; null when none could be had, which like any failed attempt counts as nothing.
 */
export type Compacting = { readonly record: Compaction; readonly usage: PlannerDecision["usage"] | null };

export type PlanFailed = {
	readonly kind: "plan_failed";
	readonly turn: number;
	readonly fault: PlannerFault;
	readonly compacted?: Compacting | undefined;
};

export type Running = { readonly kind: "running"; readonly tool_call_id: string; readonly attempt: number };

export type Settled = {
	readonly kind: "settled";
	readonly tool_call_id: string;
	readonly attempt: number;
	readonly outcome: InvokeOutcome;
	readonly world: World;
};

/** The gate has taken back the pass of a call that ended. */
export type Left = {
	readonly kind: "left";
	readonly tool_call_id: string;
	/** What it was told: only an end settles what is owed, never the word between two attempts. */
	readonly settle: Extract<Effect, { kind: "leave" }>["settle"];
};

/** The tool's gate answered an `enter`. */
export type Gated = {
	readonly kind: "gated";
	readonly tool_call_id: string;
	readonly answer: GateAnswer;
	readonly world: World;
};

export type ApprovalDecided = {
	readonly kind: "approval_decided";
	readonly approval_id: string;
	/** From storage, for one whose turn is closed; null when there is none. */
	readonly approval: ApprovalRecord | null;
	readonly decision: "approve" | "deny";
	readonly tool_id: string;
	readonly tool_call_id: string;
	readonly input_hash: string;
	readonly reason: string | null;
	readonly by: Caller;
	readonly via: "api" | "link";
	readonly world: World;
};

export type ApprovalEdited = {
	readonly kind: "approval_edited";
	readonly approval_id: string;
	readonly approval: ApprovalRecord | null;
	readonly arguments: JsonObject;
	readonly checks?: SemanticVerdicts | undefined;
	readonly by: Caller;
	readonly world: World;
};

export type Said = {
	readonly kind: "said";
	readonly content: string;
	/** What the caller offers from here on; absent: as before. */
	readonly caller_functions?: readonly CallerFunction[] | undefined;
	/** Its instructions that the run does not hold yet. */
	readonly system?: readonly string[] | undefined;
	readonly world: World;
};

/** What the caller says its own functions answered: all that wait, in one step. */
export type Answered = {
	readonly kind: "answered";
	readonly answers: readonly {
		readonly tool_call_id: string;
		readonly content: string;
		/** From storage, for one whose turn is closed; null when there is none. */
		readonly call: CallRecord | null;
	}[];
	/** The user's words that came with the answers. */
	readonly content: string | null;
	readonly caller_functions?: readonly CallerFunction[] | undefined;
	readonly system?: readonly string[] | undefined;
	readonly world: World;
};
export type Cancelled = { readonly kind: "cancelled"; readonly by: string; readonly world: World };
export type CallCancelled = {
	readonly kind: "call_cancelled";
	readonly tool_call_id: string;
	readonly by: string;
	readonly world: World;
};
export type Resumed = { readonly kind: "resumed"; readonly world: World };

/** A human says what became of a call whose outcome was unknown. `call` comes from storage: its turn may be long closed. */
export type OutcomeStated = {
	readonly kind: "outcome_stated";
	readonly call: CallRecord;
	readonly outcome: "happened" | "not_happened";
	readonly result: Json | null;
	readonly reason: string;
	readonly by: Caller;
	readonly world: World;
};

/** The alarm found these timers due. */
export type Due =
	| { readonly kind: "due"; readonly what: "approval_expiry"; readonly ref: string; readonly world: World }
	| { readonly kind: "due"; readonly what: "watchdog"; readonly ref: string; readonly world: World }
	| { readonly kind: "due"; readonly what: "clock"; readonly ref: string; readonly world: World }
	| { readonly kind: "due"; readonly what: "start"; readonly ref: string; readonly world: World }
	| { readonly kind: "due"; readonly what: "plan"; readonly ref: string; readonly world: World }
	/** `call` comes from storage: its turn may be closed. */
	| {
			readonly kind: "due";
			readonly what: "leave";
			readonly ref: string;
			readonly call: CallRecord | null;
			readonly world: World;
	  }
	| { readonly kind: "due"; readonly what: "caller"; readonly ref: string; readonly world: World }
	| { readonly kind: "due"; readonly what: "unsettled"; readonly ref: string; readonly world: World };

/** The object woke in a new life: attempts of another boot are orphans. */
export type Booted = { readonly kind: "booted"; readonly world: World };

export type RunEvent =
	| Created
	| Planned
	| PlanFailed
	| Running
	| Settled
	| Gated
	| Left
	| ApprovalDecided
	| ApprovalEdited
	| Said
	| Answered
	| Cancelled
	| CallCancelled
	| Resumed
	| OutcomeStated
	| Due
	| Booted;
