/**
 * A step in the making: a private copy of the state, and the rows and effects it will ask for. It never outlives one
 * `transition`; what was not changed is not written. Used only by the files of this folder.
 */

import { type EvidenceBody, sealEvidence } from "../evidence/chain.ts";
import { evidenceId, runPart } from "../ids.ts";
import { invariant } from "../invariant.ts";
import type { JsonObject } from "../json.ts";
import type { StoredMessage } from "../planner/conversation.ts";
import type { ToolVersion } from "../registry/descriptor.ts";
import type { AuditPart, Effect, Row } from "./effect.ts";
import { iso, type Kit } from "./kit.ts";
import type { SemanticVerdicts } from "./semantic-check.ts";
import type { ApprovalRecord, CallRecord, DueKind, Exposure, RunRecord, RunState } from "./state.ts";
import type { UncheckedCall } from "./unchecked.ts";
import { type ApprovalView, type CallState, type EventName, type Evidence, RESTING, type RunStatus } from "./view.ts";

export class Draft {
	readonly kit: Kit;
	readonly at: string;
	/** Its `seq` is that of the state before; `#seq` counts on. */
	#run: RunRecord;
	#seq: number;
	#exposure: Exposure | null;
	readonly #calls: Map<string, CallRecord>;
	readonly #approvals: Map<string, ApprovalRecord>;
	readonly #dirtyCalls = new Set<string>();
	readonly #dirtyApprovals = new Set<string>();
	readonly #rows: Row[] = [];
	readonly #effects: Effect[] = [];

	constructor(state: RunState, kit: Kit) {
		this.kit = kit;
		this.at = iso(kit.now);
		this.#run = state.run;
		this.#seq = state.run.seq;
		this.#exposure = state.exposure;
		this.#calls = new Map(state.calls);
		this.#approvals = new Map(state.approvals);
	}

	get run(): RunRecord {
		return this.#run;
	}
	/** The last number of the log so far. */
	get seq(): number {
		return this.#seq;
	}
	get exposure(): Exposure | null {
		return this.#exposure;
	}
	get calls(): ReadonlyMap<string, CallRecord> {
		return this.#calls;
	}
	get approvals(): ReadonlyMap<string, ApprovalRecord> {
		return this.#approvals;
	}
	/** The part that ids of this run embed. */
	get part(): string {
		const part = runPart(this.#run.run_id);
		invariant(part !== undefined, "a run has a run id");
		return part;
	}

	/** Calls that ended other than well in this step: what their tools declare for that is still to be done. */
	readonly ended: string[] = [];
	/** What the tools' own checks said of calls of this step. */
	checks: SemanticVerdicts | undefined;
	/** Calls of tools with a check that none has spoken on. */
	readonly unchecked: UncheckedCall[] = [];
	/** Whether the run record itself was changed. */
	touched = false;

	set(change: Partial<RunRecord>): void {
		this.touched = true;
		this.#run = { ...this.#run, ...change };
	}

	/**
	 * Moves the run to a status, says so, and lets its clocks run or stand. They stand while it rests, and, `halted`, while
	 * everything that moves waits for a halt to end (decision 6).
	 */
	status(next: RunStatus, change: Partial<RunRecord> = {}, halted = false): void {
		const before = this.#run;
		const { since } = before.clocks;
		const rests = RESTING.has(next) || halted;
		const spent = since === null ? 0 : this.kit.now - since;
		let clocks = before.clocks;
		if (rests && since !== null) {
			clocks = {
				turn_spent_ms: clocks.turn_spent_ms + spent,
				session_spent_ms: clocks.session_spent_ms + spent,
				since: null,
			};
			this.dueDone("clock", "");
		} else if (!rests && since === null) {
			clocks = { ...clocks, since: this.kit.now };
			this.due("clock", "", this.kit.now + Math.max(1, Math.min(this.turnLeft(), this.sessionLeft())));
		}
		this.set({ ...change, status: next, clocks });
		if (before.status !== next) this.log("run.status", { status: next, turn: this.#run.turn, error: this.#run.error });
	}

	/** What is left of the turn, ms (not below 0). */
	turnLeft(): number {
		const { turn_spent_ms, since } = this.#run.clocks;
		return Math.max(0, this.#run.limits.turn_timeout_ms - turn_spent_ms - (since === null ? 0 : this.kit.now - since));
	}

	sessionLeft(): number {
		const { session_spent_ms, since } = this.#run.clocks;
		return Math.max(
			0,
			this.#run.limits.session_timeout_ms - session_spent_ms - (since === null ? 0 : this.kit.now - since),
		);
	}

	log(event: EventName, data: JsonObject, audit: AuditPart | null = null): number {
		const seq = ++this.#seq;
		this.touched = true;
		this.#rows.push({ table: "log", doc: { seq, at: this.at, event, data, audit } });
		return seq;
	}

	/** Stores a call; a new state is an event of its own. */
	call(next: CallRecord): void {
		const before = this.#calls.get(next.tool_call_id);
		this.#calls.set(next.tool_call_id, next);
		this.#dirtyCalls.add(next.tool_call_id);
		if (before?.state !== next.state) this.callState(next, next.state);
	}

	/** Stores what only the machine knows of a call in the state that it has: nothing is said of it, and it may be of a closed turn. */
	keep(next: CallRecord): void {
		if (!this.#calls.has(next.tool_call_id)) {
			this.#rows.push({ table: "call", doc: next });
			return;
		}
		this.#calls.set(next.tool_call_id, next);
		this.#dirtyCalls.add(next.tool_call_id);
	}

	/** The number of a new call. */
	nextCall(): number {
		const n = this.#run.next_call;
		this.set({ next_call: n + 1 });
		return n;
	}

	callState(call: CallRecord, state: CallState): void {
		this.log("call.state", {
			tool_call_id: call.tool_call_id,
			provider_call_id: call.provider_call_id,
			turn: call.turn,
			tool_id: call.tool_id,
			state,
			attempt: call.attempts.length,
			approval_id: call.approval_id,
			error: call.error === null ? null : { code: call.error.code, message: call.error.message },
			refusal: call.refusal === null ? null : { stage: call.refusal.stage, reason: call.refusal.reason },
		});
	}

	approval(next: Omit<ApprovalRecord, "seq">, event: "approval.requested" | "approval.decided"): void {
		const seq = this.log(event, {
			approval_id: next.approval_id,
			tool_call_id: next.tool_call_id,
			tool_id: next.tool_id,
			status: next.status,
			summary: next.summary,
			risk: next.risk,
			expires_at: next.expires_at,
			decisions: next.decisions as unknown as JsonObject[],
		});
		this.#approvals.set(next.approval_id, { ...next, seq });
		this.#dirtyApprovals.add(next.approval_id);
		if (next.status === "pending") this.due("approval_expiry", next.approval_id, next.expires_at_ms);
		else this.dueDone("approval_expiry", next.approval_id);
	}

	/** Seals one record onto the chain and names it in the log, under the same seq. */
	evidence(
		body: Omit<EvidenceBody, "v" | "evidence_id" | "seq" | "at" | "run_id" | "prev_hash">,
		audit: AuditPart | null,
	): Evidence {
		const seq = this.#seq + 1;
		const sealed = sealEvidence(
			{
				v: 1,
				evidence_id: evidenceId(this.part, this.kit.random),
				seq,
				at: this.at,
				run_id: this.#run.run_id,
				...body,
				prev_hash: this.#run.head_hash,
			},
			this.kit.digest,
			this.kit.sign,
		);
		this.log("evidence.recorded", sealed as unknown as JsonObject, audit);
		this.set({ head_hash: sealed.hash, evidence_count: this.#run.evidence_count + 1 });
		return sealed;
	}

	message(doc: Omit<StoredMessage, "n">): void {
		this.#rows.push({ table: "message", doc: { ...doc, n: this.#messageNumber() } as StoredMessage });
	}
	/** A number among the messages for a decision that keeps none (wordless.ts). */
	wordless(): void {
		this.#messageNumber();
	}
	#messageNumber(): number {
		const n = this.#run.next_message;
		this.set({ next_message: n + 1 });
		return n;
	}

	expose(doc: Exposure, definitions: readonly ToolVersion[]): void {
		this.#exposure = doc;
		this.#rows.push({ table: "exposure", doc });
		for (const version of definitions) this.#rows.push({ table: "definition", doc: version });
	}

	due(kind: DueKind, ref: string, at: number): void {
		this.#rows.push({ table: "due", kind, ref, at });
	}
	dueDone(kind: DueKind, ref: string): void {
		this.#rows.push({ table: "due_done", kind, ref });
	}
	effect(effect: Effect): void {
		this.#effects.push(effect);
	}

	/** The open turn is over: its calls leave the working state (they stay in storage). */
	forgetTurn(): void {
		this.#flushCalls();
		this.#calls.clear();
		this.#flushApprovals();
		for (const [id, approval] of this.#approvals) if (approval.status !== "pending") this.#approvals.delete(id);
	}

	finish(): { state: RunState; rows: Row[]; effects: Effect[] } {
		this.#run = { ...this.#run, seq: this.#seq, updated_at: this.at };
		this.#flushCalls();
		this.#flushApprovals();
		this.#rows.push({ table: "run", doc: this.#run });
		return {
			state: { run: this.#run, exposure: this.#exposure, calls: this.#calls, approvals: this.#approvals },
			rows: this.#rows,
			effects: this.#effects,
		};
	}

	#flushCalls(): void {
		for (const id of this.#dirtyCalls) {
			const doc = this.#calls.get(id);
			if (doc !== undefined) this.#rows.push({ table: "call", doc });
		}
		this.#dirtyCalls.clear();
	}
	#flushApprovals(): void {
		for (const id of this.#dirtyApprovals) {
			const doc = this.#approvals.get(id);
			if (doc !== undefined) this.#rows.push({ table: "approval", doc });
		}
		this.#dirtyApprovals.clear();
	}
}

/** An approval as the outside sees it. */
export function approvalView({
	seq: _seq,
	domain: _domain,
	expires_at_ms: _at,
	...view
}: ApprovalRecord): ApprovalView {
	return view;
}
