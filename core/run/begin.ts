/** A run's first step, and the later words of its user. */
import { GENESIS } from "../evidence/chain.ts";
import { EMPTY_LOOP_GUARD } from "../planner/loop-guard.ts";
import { EMPTY_REPAIR_GUARD } from "../planner/repair-guard.ts";
import type { FieldError } from "../refusal.ts";
import { localeOf } from "../registry/explain-words.ts";
import { advance } from "./advance.ts";
import { unpriced } from "./budget.ts";
import { collisions, instruct, offer } from "./caller-functions.ts";
import type { Draft } from "./draft.ts";
import type { StepProblem } from "./effect.ts";
import type { Created, Said } from "./event.ts";
import { iso, type Kit } from "./kit.ts";
import type { RunRecord, RunState } from "./state.ts";
import { openTurn } from "./turn.ts";

/** Messages a user may send while a turn is open before the run has taken any of them up. */
export const QUEUED_MAX = 16;

/** The state before the first step: a run that has been asked for and has not begun. */
export function unborn(event: Created, kit: Kit): RunState {
	const at = iso(kit.now);
	const { authority, ...principal } = event.caller;
	const locale = event.locale ?? localeOf(event.goal);
	const run: RunRecord = {
		v: 1,
		run_id: event.run_id,
		tenant_id: event.caller.tenant_id,
		trace_id: event.trace_id,
		session_id: event.session_id,
		request_hash: event.request_hash,
		goal: event.goal,
		principal,
		authority,
		planner: event.planner,
		...(event.prices === undefined ? {} : { prices: event.prices }),
		script: { length: event.script_length, at: 0 },
		...(event.replay === undefined ? {} : { replay: event.replay }),
		pinned: event.pinned,
		...(event.caller_functions === undefined ? {} : { caller_functions: event.caller_functions }),
		limits: event.limits,
		...(locale === "en" ? {} : { locale }),
		metadata: event.metadata,
		context: event.context,
		status: event.planner.kind === "external" ? "awaiting_decision" : "planning",
		answer: null,
		error: null,
		turn: 0,
		turn_open: false,
		plan_attempts: 0,
		usage: { prompt_tokens: 0, completion_tokens: 0, tool_definition_tokens: 0 },
		clocks: { turn_spent_ms: 0, session_spent_ms: 0, since: event.planner.kind === "external" ? null : kit.now },
		denied: [],
		loop_guard: EMPTY_LOOP_GUARD,
		repair_guard: EMPTY_REPAIR_GUARD,
		repair_stop: null,
		queued: [],
		next_message: 1,
		closed_turn: 0,
		next_call: 1,
		seq: 0,
		head_hash: GENESIS,
		evidence_count: 0,
		created_at: at,
		updated_at: at,
	};
	return { run, exposure: null, calls: new Map(), approvals: new Map() };
}

/** A pinned tool that is not eligible is refused by name, before the run exists: it never begins with less than was asked. */
export function created(draft: Draft, event: Created): StepProblem | null {
	for (const message of event.messages) draft.message({ turn: 0, ...message });
	draft.message({ turn: 0, role: "user", content: event.goal });
	draft.log("run.status", { status: draft.run.status, turn: 0, error: null });
	openTurn(draft, event.world);
	const errors: FieldError[] = (event.pinned ?? []).flatMap((tool_id, index) => {
		if (draft.exposure?.tools.some((tool) => tool.tool_id === tool_id)) return [];
		const error = `\`${tool_id.slice(0, 64)}\` is not a tool that this caller can use now`;
		return [
			{
				error,
				field: `/tools/${index}`,
				issue: "unknown_name",
				expected: "the id of an eligible tool",
				hint: "see GET /v1/tools",
			},
		];
	});
	if (errors.length > 0)
		return { status: 422, code: "invalid_request", detail: "some pinned tools cannot be used", errors };
	const unknown = unpriced(draft);
	return unknown.length === 0
		? collisions(draft, event.caller_functions)
		: {
				status: 422,
				code: "invalid_request",
				detail: "a budget of money needs prices that are known",
				errors: unknown,
			};
}

/** The user's next message: it follows the open turn's results, or begins the next turn of a managed run at rest. */
export function said(draft: Draft, event: Said): StepProblem | null {
	const { run } = draft;
	if (run.status === "cancelled")
		return { status: 409, code: "run_finished", detail: "the run was cancelled; start a new one" };
	const refused = collisions(draft, event.caller_functions);
	if (refused !== null) return refused;
	// A turn that was cut short has calls without an answer: they come first, or the planner would see them unanswered.
	// (A run that stops between two turns, at a limit or in a circle, has answered the last one.)
	const cut =
		!run.turn_open && run.closed_turn !== run.turn && [...draft.calls.values()].some((call) => call.turn === run.turn);
	if (run.turn_open || cut || run.status === "planning" || run.status === "suspended") {
		if (run.queued.length >= QUEUED_MAX)
			return { status: 409, code: "too_many_messages", detail: `${QUEUED_MAX} messages wait already` };
		draft.set({ queued: [...run.queued, event.content] });
		offer(draft, event.caller_functions);
		instruct(draft, event.system);
		if (cut && run.status !== "suspended") {
			draft.status("executing", { turn_open: true, answer: null, error: null });
			advance(draft, event.world);
		}
		return null;
	}
	offer(draft, event.caller_functions);
	instruct(draft, event.system);
	draft.message({ turn: run.turn, role: "user", content: event.content });
	if (run.planner.kind === "external" && run.status === "awaiting_decision") return null;
	draft.set({ answer: null, error: null });
	openTurn(draft, event.world);
	advance(draft, event.world);
	return null;
}
