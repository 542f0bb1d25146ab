/** The gate's answer: go, not now, not at all, or the result is there already. Each is judged again like a start. */

import { STORED } from "../evidence/statement.ts";
import type { GateAnswer, Stored } from "../invoke/gate-answer.ts";
import { advance } from "./advance.ts";
import { conclude } from "./conclude.ts";
import type { Draft } from "./draft.ts";
import type { Gated } from "./event.ts";
import { evidenceOf } from "./evidence-of.ts";
import { leaveAgain, leaveUnasked } from "./gate.ts";
import { judgeAgain } from "./judge-again.ts";
import { consume, start } from "./start.ts";
import type { CallRecord, World } from "./state.ts";
import { wait } from "./wait.ts";

export function gated(draft: Draft, event: Gated): void {
	const call = draft.calls.get(event.tool_call_id);
	const { answer } = event;
	if (call?.state !== "PENDING" || call.gate !== "asked") {
		// It ended meanwhile: the pass goes back. One that still moves has it, or asks again: given back between two attempts,
		// its claim would be another call's while this one may have acted.
		if (call !== undefined && answer.verdict === "go") leaveAgain(draft, call);
		return;
	}
	answered(draft, call, answer, event.world);
	advance(draft, event.world);
}

function answered(draft: Draft, call: CallRecord, answer: GateAnswer, world: World): void {
	switch (answer.verdict) {
		case "go": {
			const passed: CallRecord = { ...call, gate: "passed", pass_until: answer.hold_until };
			draft.call(passed);
			start(draft, passed, world);
			return;
		}
		case "wait":
			wait(draft, { ...call, gate: "none" }, answer.reason, answer.retry_at);
			return;
		case "cached":
			served(draft, call, answer.stored, "cache", world);
			return;
		case "replay":
			served(draft, call, answer.first, "idempotent_replay", world);
			return;
		case "replay_unknown": {
			const message = `an equal call (${answer.tool_call_id}) ended with an unknown outcome; it was not done again`;
			conclude(
				draft,
				{ ...call, gate: "none" },
				{ kind: "failed", code: "outcome_unknown", message, effect: "possible", retryable: false },
			);
			return;
		}
		case "open": {
			const seconds = Math.max(1, Math.ceil((answer.until - draft.kit.now) / 1000));
			if (answer.snapshot !== null) {
				served(draft, call, answer.snapshot, "fallback", world);
				return;
			}
			const message = `the tool is failing and is left alone for ${seconds} s`;
			conclude(
				draft,
				{ ...call, gate: "none" },
				{ kind: "failed", code: "circuit_open", message, effect: "none", retryable: true },
			);
			return;
		}
	}
}

/** The answer is there already. It is judged again like a start, spends its grant, and invokes nothing (I5, I7). */
function served(draft: Draft, call: CallRecord, stored: Stored, source: CallRecord["source"], world: World): void {
	const approval = call.approval_id === null ? undefined : draft.approvals.get(call.approval_id);
	const ungated: CallRecord = { ...call, gate: "none" };
	if (!judgeAgain(draft, call, approval, world).ok) {
		start(draft, ungated, world);
		return;
	}
	consume(draft, approval);
	const age_s = Math.max(0, Math.round((draft.kit.now - stored.at) / 1000));
	const from = `${source === "idempotent_replay" ? "the first result of an equal call" : "a stored result"}, ${age_s} s old (${stored.tool_call_id})`;
	const done: CallRecord = {
		...ungated,
		pass_out: false,
		state: "COMPLETED",
		source,
		result: stored.result,
		waiting: null,
		notes: [...call.notes, ...stored.notes, `served from ${from}`],
		data_source: source === "fallback" ? "snapshot" : source,
		data_freshness: source === "fallback" ? "may_be_outdated" : `${age_s} s`,
	};
	draft.dueDone("start", call.tool_call_id);
	leaveUnasked(draft, ungated);
	const invoked = call.attempts.length === 0 ? "the tool was not invoked" : "no attempt of this call gave it";
	const recorded = evidenceOf(draft, done, "success", {
		reason: `served from ${source}`,
		facts: [`served from ${from}; ${invoked}`],
		permission_decision: "allow",
		said: STORED,
	});
	draft.call({ ...done, evidence_id: recorded.evidence_id });
}
