/** What a step wants written, and what it wants done afterwards. Effects are performed only once the rows are saved. */

import type { Stored } from "../invoke/gate-answer.ts";
import type { GateNeeds, GateOutcome } from "../invoke/gate-keys.ts";
import type { JsonObject } from "../json.ts";
import type { StoredMessage } from "../planner/conversation.ts";
import type { AuditRow } from "../ports.ts";
import type { FieldError } from "../refusal.ts";
import type { ToolVersion } from "../registry/descriptor.ts";
import type { ApprovalRecord, CallRecord, DueKind, Exposure, RunRecord } from "./state.ts";
import type { EventName } from "./view.ts";

export type LogRow = {
	readonly seq: number;
	readonly at: string;
	readonly event: EventName;
	readonly data: JsonObject;
	/** What the audit index gets for this entry, if anything (E2). */
	readonly audit: AuditPart | null;
};
export type AuditPart = Omit<AuditRow, "run_id" | "seq" | "trace_id" | "at" | "session_id" | "principal_id">;

export type Row =
	| { readonly table: "run"; readonly doc: RunRecord }
	| { readonly table: "call"; readonly doc: CallRecord }
	| { readonly table: "approval"; readonly doc: ApprovalRecord }
	| { readonly table: "message"; readonly doc: StoredMessage }
	| { readonly table: "exposure"; readonly doc: Exposure }
	| { readonly table: "definition"; readonly doc: ToolVersion }
	| { readonly table: "log"; readonly doc: LogRow }
	| { readonly table: "due"; readonly kind: DueKind; readonly ref: string; readonly at: number }
	| { readonly table: "due_done"; readonly kind: DueKind; readonly ref: string };

export type Effect =
	/** One attempt through the choke point. */
	| { readonly kind: "invoke"; readonly call: CallRecord; readonly attempt: number; readonly timeout_ms: number }
	/** Ask the managed planner for this turn. */
	| { readonly kind: "plan"; readonly turn: number }
	/** An approval stands: flush its row, then tell people (decision 41). */
	| { readonly kind: "announce"; readonly approval_id: string }
	/** Ask the tool's gate whether this attempt may start now. */
	| { readonly kind: "enter"; readonly call: CallRecord; readonly needs: GateNeeds; readonly hold_ms: number }
	/** Tell the gate how a passed attempt ended. */
	| {
			readonly kind: "leave";
			readonly tool_id: string;
			readonly tool_call_id: string;
			readonly needs: GateNeeds;
			readonly outcome: GateOutcome;
			readonly settle: "done" | "unknown" | "free" | "keep";
			readonly stored: Stored | null;
			readonly pause_ms: number | null;
	  }
	/** A write was made: what its tool names as stale is dropped. */
	| { readonly kind: "invalidate"; readonly tool_ids: readonly string[] }
	/** Stop what is still in flight for these calls. */
	| { readonly kind: "abort"; readonly tool_call_ids: readonly string[] };

/** An answer to who asked, as the wire will say it. */
export type StepProblem = {
	readonly status: number;
	readonly code: string;
	readonly detail: string;
	readonly extra?: JsonObject;
	readonly errors?: readonly FieldError[];
};
