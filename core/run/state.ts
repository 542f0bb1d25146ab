/**
 * What one AgentRun remembers. Everything here is plain data that the Durable Object stores row by row (decision 2);
 * the working state holds the run, the calls of the open turn and the approvals still undecided. Older rows stay in
 * storage and come in with an event when one needs them.
 */

import type { JsonObject } from "../json.ts";
import type { Compaction } from "../planner/context-window.ts";
import type { LoopGuardState } from "../planner/loop-guard.ts";
import type { RepairGuardState } from "../planner/repair-guard.ts";
import type { FunctionDefinition, Lease } from "../ports.ts";
import type { Authority, Principal } from "../principal.ts";
import type { ToolVersion } from "../registry/descriptor.ts";
import type { Locale } from "../registry/explain-words.ts";
import type { TokenPrices } from "./budget.ts";
import type { Replay } from "./recording.ts";
import type { ApprovalView, CallView, ExposureTrace, RunStatus } from "./view.ts";

export type PlannerKind = "openai" | "workers_ai" | "scripted" | "external";

/** A function that the run's caller runs itself: offered to the planner, never executed here (L2, decision 39). */
export type CallerFunction = FunctionDefinition;

export type RunLimits = {
	readonly turns: number;
	readonly turn_timeout_ms: number;
	readonly session_timeout_ms: number;
	readonly max_tokens: number;
	/** Calls that may start; absent: no limit. */
	readonly max_calls?: number | undefined;
	/** Millionths of a US dollar; absent: no budget of money. */
	readonly max_cost_micro_usd?: number | undefined;
};

/** Time that counts: turn and session clocks stand still while the run rests or is halted (decision 6). */
export type Clocks = {
	readonly turn_spent_ms: number;
	readonly session_spent_ms: number;
	/** When the run last began to move; null while it rests. */
	readonly since: number | null;
};

/** One tool of the present exposure: the function name a planner may use, and the exact definition it saw. */
export type ExposedTool = {
	readonly tool_id: string;
	readonly function_name: string;
	readonly definition_hash: string;
	/** Its definition has a semantic check: calls of all other tools are spared the look. */
	readonly checked?: true;
};

/** What the planner sees. Kept from turn to turn while registry and policy stand still (L3). */
export type Exposure = {
	readonly n: number;
	readonly registry_rev: number;
	readonly policy_rev: number;
	readonly mode: "all" | "ranked";
	readonly tools: readonly ExposedTool[];
	/** Tools that exposed ones name as fallback or status tool: callable by the machine only, never by the planner. */
	readonly references: readonly ExposedTool[];
	readonly trace: readonly ExposureTrace[];
	readonly definition_tokens: number;
};

export type RunRecord = {
	readonly v: 1;
	readonly run_id: string;
	readonly tenant_id: string;
	readonly trace_id: string;
	readonly session_id: string;
	readonly request_hash: string;
	readonly goal: string;
	readonly principal: Principal;
	readonly authority: Authority;
	/** `spotlight`: a model gets the results of its tools marked word by word (core/planner/spotlight.ts). */
	readonly planner: {
		readonly kind: PlannerKind;
		readonly model: string | null;
		readonly spotlight?: true | undefined;
	};
	/** Of a managed planner's tokens, as they were when the run began; absent when nobody has said them. */
	readonly prices?: TokenPrices;
	/** Scripted: how many decisions the script holds and how many have been played. */
	readonly script: { readonly length: number; readonly at: number };
	/** The run plays what another one recorded. */
	readonly replay?: Replay | undefined;
	readonly pinned: readonly string[] | null;
	/** Absent in a run whose caller brought none. */
	readonly caller_functions?: readonly CallerFunction[];
	readonly limits: RunLimits;
	/** The language of repair hints (V4); absent: English. */
	readonly locale?: Locale | undefined;
	readonly metadata: JsonObject;
	readonly context: JsonObject;
	readonly status: RunStatus;
	readonly answer: string | null;
	readonly error: { readonly code: string; readonly message: string } | null;
	readonly turn: number;
	/** A decision of this turn has been taken and some of its calls still move. */
	readonly turn_open: boolean;
	/** The last turn whose calls have all been answered to the planner; 0: none. */
	readonly closed_turn: number;
	/** Times the managed planner has been asked for this turn without an answer. */
	readonly plan_attempts: number;
	readonly usage: {
		readonly prompt_tokens: number;
		readonly completion_tokens: number;
		readonly tool_definition_tokens: number;
		/** Of the prompt tokens, those that the provider says it had in its cache; absent: no provider has said. */
		readonly prompt_cache_hit_tokens?: number;
		/** Calls that have started; counted only under `limits.max_calls`. */
		readonly calls?: number;
		/** What calls and planner have cost so far; absent: nothing yet, null: nobody knows. */
		readonly cost_micro_usd?: number | null;
	};
	readonly clocks: Clocks;
	/** Decision 14: the same tool and input asked again after a denial is refused. */
	readonly denied: readonly { readonly tool_id: string; readonly input_hash: string }[];
	/** Managed planners: what tells a loop from work, and how often a tool was called wrongly in a row (L4, V4). */
	readonly loop_guard: LoopGuardState;
	readonly repair_guard: RepairGuardState;
	/** The planner will not be helped: the run ends with this once its turn has closed. */
	readonly repair_stop: { readonly code: string; readonly message: string } | null;
	/** Managed planners: what was taken out of the conversation to keep it within the model's context (L3). */
	readonly compaction?: Compaction | undefined;
	/** User messages that arrived while a turn was open; they follow its tool messages. */
	readonly queued: readonly string[];
	readonly next_message: number;
	readonly next_call: number;
	readonly seq: number;
	readonly head_hash: string;
	readonly evidence_count: number;
	readonly created_at: string;
	readonly updated_at: string;
};

/** A call as stored: what the outside sees, and what only the machine needs. */
export type CallRecord = CallView & {
	/** Counted over the run in the order in which calls came to be. */
	readonly n: number;
	/** Its place in the planner's order: an edited call has that of the one it replaces. */
	readonly ordinal: number;
	readonly definition_hash: string | null;
	/** The frozen arguments, unmasked: they live only here (E3). Equal to `arguments` once frozen. */
	readonly frozen: JsonObject | null;
	/** The object life in which the last attempt was started; a foreign one means orphaned (decision 5). */
	readonly boot_id: string | null;
	/** What looked odd in the arguments and did not block them (V3): for evidence and audit. */
	readonly security_flags: readonly string[];
	/** What permitted it, for the evidence. */
	readonly rule_ids: readonly string[];
	readonly policy_rev: number | null;
	readonly deadline_at: number | null;
	readonly running_logged: boolean;
	/** Not before this, ms: the back-off of a retry. */
	readonly retry_at: number | null;
	/** `asked`: the gate has been asked and has not answered; `passed`: it let this attempt through and is told its end. */
	readonly gate: "none" | "asked" | "passed";
	/**
	 * Something may be out at the gate under this call's name although it has no pass in hand: an answer was lost, or a
	 * claim was kept for the next try. The gate is told when the call ends, so that nobody waits for a call that is over.
	 */
	readonly pass_out: boolean;
	/** Until when the gate holds what a pass in hand stands for, ms; null: no pass, or nobody said. */
	readonly pass_until?: number | null;
	/** How often the gate was told again of the call's end; absent: never. */
	readonly leaves?: number;
	/** The call whose result may stand in for this one, or whose answer may say what became of it. */
	readonly child: { readonly kind: "fallback" | "reconcile"; readonly tool_call_id: string } | null;
	/** An unknown outcome that a person is asked about: the turn stays open for it (`on_unknown: ask`). */
	readonly unsettled: boolean;
	/** An edited call lives on under another id; this one gets no tool message of its own. */
	readonly superseded_by: string | null;
	/** The planner's raw text, kept for the conversation only when it parsed (T03). */
	readonly arguments_text: string | null;
};

export type ApprovalRecord = ApprovalView & {
	readonly seq: number;
	readonly domain: string;
	readonly expires_at_ms: number;
};

export type RunState = {
	readonly run: RunRecord;
	readonly exposure: Exposure | null;
	/** Calls of the open turn, by id, in the planner's order. */
	readonly calls: ReadonlyMap<string, CallRecord>;
	readonly approvals: ReadonlyMap<string, ApprovalRecord>;
};

/** What the shell gathered before the step. A null lease means that control could not be had. */
export type World = {
	readonly lease: Lease | null;
	/** What the run's principal may do at `lease.policy_rev`; null when the principal is gone. */
	readonly authority: Authority | null;
	/** Online tools at `lease.registry_rev`; null when they did not need to be fetched (nothing changed). */
	readonly tools: readonly ToolVersion[] | null;
	/** Beside them: online versions of an older major that one of them pins as its fallback (R3). Absent: none. */
	readonly pinned?: readonly ToolVersion[] | undefined;
};

/** Timers of the run, kept in a table and served by one alarm. */
export type DueKind =
	| "approval_expiry"
	| "watchdog"
	| "clock"
	| "start"
	| "plan"
	| "flush"
	| "unsettled"
	| "leave"
	| "caller";
