/**
 * The caller's word on calls of its own functions (L2, decision 39). All that wait are answered in one step, by the exact ids
 * that were handed out; a call of Belay's own cannot be answered from outside. What comes is data for the planner and is
 * never evidence that anything ran.
 */
import { canonicalJson, wellFormed } from "../json.ts";
import { advance } from "./advance.ts";
import { QUEUED_MAX } from "./begin.ts";
import { callerCalls } from "./caller-call.ts";
import { collisions, instruct, offer } from "./caller-functions.ts";
import type { Draft } from "./draft.ts";
import type { StepProblem } from "./effect.ts";
import type { Answered } from "./event.ts";
import { evidenceOf } from "./evidence-of.ts";
import { resumed } from "./interrupt.ts";
import type { CallRecord } from "./state.ts";
import { rest } from "./turn.ts";
import { FINISHED } from "./view.ts";

const NOTE = "the caller's own function: the caller answered, nothing was executed or checked here";

/** Refused as a whole or taken as a whole. The same answers once more say nothing new, their words included. */
export function answered(draft: Draft, event: Answered): StepProblem | null {
	const answers = event.answers.map(({ tool_call_id, content, call }) => ({
		content: wellFormed(content),
		call: draft.calls.get(tool_call_id) ?? call,
	}));
	const given = answers.flatMap(({ call, content }) => (isHandedOut(call) ? [{ call, content }] : []));
	const ids = new Set(event.answers.map(({ tool_call_id }) => tool_call_id));
	if (given.length !== answers.length || ids.size !== answers.length || answers.length === 0)
		return {
			status: 422,
			code: "unknown_tool_call",
			detail: "answer each call once, and only calls that this run handed to its caller",
		};
	const open = given.filter(({ call }) => call.state === "AWAITING_CALLER");
	const closed = given.find(({ call, content }) => call.state !== "AWAITING_CALLER" && call.result !== content);
	if (closed !== undefined) return tooLate(draft, closed.call);
	if (open.length === 0) return null;
	const missing = callerCalls(draft).filter((call) => !ids.has(call.tool_call_id));
	if (missing.length > 0)
		return {
			status: 422,
			code: "caller_calls_unanswered",
			detail: `answer all calls in one request; missing: ${missing.map((call) => call.tool_call_id).join(", ")}`,
		};
	const refused = collisions(draft, event.caller_functions);
	if (refused !== null) return refused;
	if (event.content !== null) {
		if (draft.run.queued.length >= QUEUED_MAX)
			return { status: 409, code: "too_many_messages", detail: `${QUEUED_MAX} messages wait already` };
		draft.set({ queued: [...draft.run.queued, event.content] });
	}
	offer(draft, event.caller_functions);
	instruct(draft, event.system);
	for (const { call, content } of open) take(draft, call, content);
	draft.dueDone("caller", "");
	if (draft.run.status === "suspended") return resumed(draft, { kind: "resumed", world: event.world });
	advance(draft, event.world);
	return null;
}

/** What became of the call, so that nobody takes an end without an answer for one with another. */
function tooLate({ run }: Draft, call: CallRecord): StepProblem {
	if (FINISHED.has(run.status) && run.status !== "completed") {
		const why = run.error === null ? "" : ` (${run.error.message})`;
		return { status: 409, code: "run_finished", detail: `the run is ${run.status}${why}; it takes no answers` };
	}
	const detail =
		call.state === "COMPLETED"
			? "a call has its answer already; it is not answered twice"
			: `the call of \`${call.function_name}\` (${call.tool_call_id}) is ${call.state} and takes no answer any more: ${call.error?.message ?? "it ended without one"}`;
	return { status: 409, code: "caller_call_closed", detail };
}

/** Refused ones were never handed out. */
const isHandedOut = (call: CallRecord | null): call is CallRecord =>
	call !== null && call.source === "caller" && call.state !== "REFUSED";

function take(draft: Draft, call: CallRecord, content: string): void {
	const done: CallRecord = {
		...call,
		state: "COMPLETED",
		waiting: null,
		result: content,
		notes: [...call.notes, NOTE],
	};
	// With the tenant's salt: a reader of evidence must not find a short answer out by trying (decision 26).
	const { tenant_salt, digest } = draft.kit;
	const answer = digest(canonicalJson({ v: 1, tenant_salt, input_hash: call.input_hash, answer: content }));
	const { evidence_id } = evidenceOf(draft, done, "answered", {
		reason: "answered by the caller",
		facts: [`the salted digest of the caller's answer is ${answer}`],
		permission_decision: null,
	});
	draft.call({ ...done, evidence_id });
}

/** Nobody answered in time: a break point, like the session's end. A late answer resumes it; resumed without one, it waits anew. */
export function callerExpired(draft: Draft): void {
	if (draft.run.status !== "awaiting_caller") return;
	const until = Math.max(...callerCalls(draft).map(({ waiting }) => Date.parse(waiting?.until ?? draft.at)));
	if (until > draft.kit.now) {
		draft.due("caller", "", until);
		return;
	}
	rest(draft, "suspended", {
		code: "caller_timeout",
		message: "the caller did not answer in time; its answer or a resume goes on from here",
	});
}
