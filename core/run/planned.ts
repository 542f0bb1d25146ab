/** A planner's turn arrives: an answer ends the run, calls open the turn, anything cut off runs nothing. */
import { executes } from "../planner/decision.ts";
import { fillText } from "../planner/placeholders.ts";
import type { PlannerDecision } from "../ports.ts";
import { admit } from "./admit.ts";
import { advance } from "./advance.ts";
import { chargePlanner, overspent, overTokens } from "./budget.ts";
import type { Draft } from "./draft.ts";
import type { StepProblem } from "./effect.ts";
import type { Compacting, PlanFailed, Planned } from "./event.ts";
import { denyAsRecorded } from "./replay.ts";
import type { CallRecord } from "./state.ts";
import { openTurn, refreshExposure, rest } from "./turn.ts";
import { isWordless, storedCall } from "./wordless.ts";

const PLANS_MAX = 4;
const PLAN_BACKOFF_MS = 1_000;

export function planned(draft: Draft, event: Planned): StepProblem | null {
	const { run } = draft;
	const external = run.planner.kind === "external";
	if (external && run.turn_open) {
		return {
			status: 409,
			code: "turn_open",
			detail: "a message of the last turn is not final yet; wait for it, or for the approval it needs",
		};
	}
	if (external ? run.status !== "awaiting_decision" : run.status !== "planning" || run.turn !== event.turn) {
		return { status: 409, code: "not_awaiting_decision", detail: `the run is ${run.status} and takes no decision` };
	}
	const { decision } = event;
	keepCompaction(draft, event.compacted);
	if (external && decision.tool_calls.length === 0 && (decision.content ?? "").trim() === "")
		return { status: 422, code: "empty_decision", detail: "a decision has content, tool_calls, or both" };
	spend(draft, decision.usage);
	if (run.planner.kind === "scripted") draft.set({ script: { ...run.script, at: run.script.at + 1 } });
	const over = overTokens(draft.run) ?? overspent(draft.run);
	if (over !== null) {
		rest(draft, "failed", over);
		return null;
	}
	if (event.said !== undefined && event.said.length > 0) draft.set({ queued: [...draft.run.queued, ...event.said] });
	return decision.tool_calls.length === 0 ? answer(draft, event) : open(draft, event);
}

/** Tokens of a planner's turn, or of a summary, and what they cost. */
function spend(draft: Draft, used: PlannerDecision["usage"]): void {
	const { usage } = draft.run;
	const hit = used.prompt_cache_hit_tokens;
	draft.set({
		usage: {
			...usage,
			prompt_tokens: usage.prompt_tokens + used.prompt_tokens,
			completion_tokens: usage.completion_tokens + used.completion_tokens,
			...(hit === undefined ? {} : { prompt_cache_hit_tokens: (usage.prompt_cache_hit_tokens ?? 0) + hit }),
		},
	});
	chargePlanner(draft, used);
}

/** Stored with the step, so that the next turn, in this life of the object or another, sends the same bytes again. */
function keepCompaction(draft: Draft, compacted: Compacting | undefined): void {
	if (compacted === undefined) return;
	draft.set({ compaction: compacted.record });
	if (compacted.usage !== null) spend(draft, compacted.usage);
}

/** No calls: the content is the answer. Belay says `completed` because the planner says so, never because a limit was hit. */
function answer(draft: Draft, event: Planned): StepProblem | null {
	const { decision } = event;
	const content = decision.content ?? "";
	// A recorded answer is filled already: what looks like a placeholder in it came out of a result.
	const plain = event.results === null || event.recorded !== undefined;
	const filled = plain ? ({ ok: true, value: content } as const) : fillText(content, event.results);
	if (!filled.ok) {
		rest(draft, "failed", { code: "bad_placeholder", message: filled.message });
		return null;
	}
	const text = filled.value;
	const whole = decision.finish_reason === "stop" || decision.finish_reason === "tool_calls";
	draft.message({ turn: draft.run.turn, role: "assistant", content: text, ...(whole ? {} : { cut: true }) });
	if (whole && event.call_as_text) return correct(draft, event);
	const { finish_reason } = decision;
	const none = whole
		? text.trim() === ""
			? { code: "planner_empty", message: "the planner answered with nothing" }
			: null
		: { code: "truncated_output", message: `the planner's answer was cut off (${finish_reason})` };
	// Where the recorded run failed and its user went on all the same, the replay goes on with them.
	const ends = none !== null && draft.run.replay === undefined;
	if (draft.run.queued.length > 0 && !ends) {
		for (const queued of draft.run.queued) draft.message({ turn: draft.run.turn, role: "user", content: queued });
		draft.set({ queued: [] });
		openTurn(draft, event.world);
		return null;
	}
	if (none === null) draft.set({ answer: text });
	rest(draft, none === null ? "completed" : "failed", none);
	return null;
}

/** T11: a call written as text runs nothing and is no answer; the planner is told once per turn and asked again. */
function correct(draft: Draft, event: Planned): null {
	const content =
		"that was text, not a tool call: nothing was executed. use the tools interface to call a tool, or answer in plain words";
	draft.message({ turn: draft.run.turn, role: "user", content });
	openTurn(draft, event.world);
	return null;
}

function open(draft: Draft, event: Planned): StepProblem | null {
	const { decision, world, results, recorded } = event;
	refreshExposure(draft, world);
	draft.checks = event.checks;
	const cut = !executes(decision).ok;
	draft.set({ turn_open: true });
	const calls: CallRecord[] = decision.tool_calls.map((call, index) =>
		admit(draft, call, index, { world, results, cut, recorded: recorded?.[index] ?? null }),
	);
	denyAsRecorded(draft, calls);
	if (isWordless(draft.run.planner.kind, decision, cut)) draft.wordless();
	else
		draft.message({
			turn: draft.run.turn,
			role: "assistant",
			content: decision.content,
			reasoning_content: decision.reasoning_content,
			...(cut ? { cut } : {}),
			tool_calls: calls.map(storedCall),
		});
	advance(draft, event.world);
	return null;
}

/** The managed planner could not be had. Retryable faults wait on a timer, not on a sleeping promise. */
export function planFailed(draft: Draft, event: PlanFailed): void {
	const { run } = draft;
	if (run.status !== "planning" || run.turn !== event.turn) return;
	keepCompaction(draft, event.compacted);
	const { fault } = event;
	// A summary may have cost what was left.
	const over = overTokens(draft.run) ?? overspent(draft.run, true);
	if (fault.retryable && over !== null) {
		rest(draft, "failed", over);
		return;
	}
	if (fault.retryable && run.plan_attempts < PLANS_MAX) {
		draft.due("plan", "", draft.kit.now + (fault.retry_after_ms ?? PLAN_BACKOFF_MS * 3 ** (run.plan_attempts - 1)));
		return;
	}
	rest(draft, "failed", { code: fault.code, message: fault.message });
}
