/** A run as the outside sees it, put together from its state and rows. Shows; decides nothing. */
import { conditionsOf } from "#core/availability/conditions.ts";
import { functionDefinition } from "#core/exposure/definitions.ts";
import { RESULT_INLINE_MAX_BYTES, RUN_VIEW_CALLS } from "#core/limits.ts";
import { costOf } from "#core/run/budget.ts";
import { callerCallViews } from "#core/run/caller-call.ts";
import { approvalView } from "#core/run/draft.ts";
import type { CallRecord, RunRecord, RunState } from "#core/run/state.ts";
import { turnMessages } from "#core/run/tool-message-of.ts";
import type { CallView, MessagesView, RunView, TurnView } from "#core/run/view.ts";
import type { ExposureView } from "./api.ts";
import { definition } from "./definitions.ts";
import type { RunStore } from "./store.ts";

export function runView(
	state: RunState,
	store: RunStore,
	calls: readonly CallRecord[] = store.lastCalls(RUN_VIEW_CALLS),
): RunView {
	const { run, approvals } = state;
	return {
		run_id: run.run_id,
		session_id: run.session_id,
		trace_id: run.trace_id,
		tenant_id: run.tenant_id,
		status: run.status,
		goal: run.goal,
		...(run.locale === undefined ? {} : { locale: run.locale }),
		answer: run.answer,
		planner: run.planner,
		...(run.replay === undefined ? {} : { replay: { run_id: run.replay.run_id, mode: run.replay.mode } }),
		turn: run.turn,
		usage: { ...run.usage, cost_micro_usd: costOf(run) },
		calls: calls.map((call) => callView(call)),
		pending_approvals: [...approvals.values()].filter((approval) => approval.status === "pending").map(approvalView),
		caller_calls: run.caller_functions === undefined ? [] : callerCallViews(state),
		error: run.error,
		metadata: run.metadata,
		seq: run.seq,
		created_at: run.created_at,
		updated_at: run.updated_at,
	};
}

/** What the planner is offered this turn, why, and what was observed of the run (F3, F4). */
export function exposureView({ exposure, run }: RunState, store: RunStore): ExposureView {
	const tools = exposure?.tools ?? [];
	return {
		turn: run.turn,
		mode: exposure?.mode ?? "all",
		definitions: tools.map((tool) =>
			functionDefinition(definition(store, tool.definition_hash).version, tool.function_name),
		),
		trace: [...(exposure?.trace ?? [])],
		conditions: [...conditionsOf(run.context, Date.now()).values()],
	};
}

/** A large result is answered by reference here (decision 2); `GET …/calls/:tool_call_id` has it whole. */
const made = new WeakMap<CallRecord, CallView>();

export function callView(call: CallRecord, whole = false): CallView {
	if (whole) return viewOf(call, true);
	const found = made.get(call) ?? viewOf(call, false);
	made.set(call, found);
	return found;
}

function viewOf(call: CallRecord, whole: boolean): CallView {
	const {
		n: _n,
		ordinal: _o,
		definition_hash: _d,
		frozen: _f,
		boot_id: _b,
		rule_ids: _r,
		policy_rev: _p,
		...rest
	} = call;
	const { deadline_at: _a, running_logged: _l, superseded_by: _s, arguments_text: _t, ...more } = rest;
	const {
		retry_at: _w,
		gate: _g,
		pass_out: _q,
		pass_until: _h,
		leaves: _v,
		child: _c,
		unsettled: _u,
		security_flags: _z,
		...view
	} = more;
	if (whole) return view;
	const text = JSON.stringify(view.result) ?? "null";
	if (text.length <= RESULT_INLINE_MAX_BYTES) return view;
	return {
		...view,
		result: {
			reference: `/v1/runs/${runIdOf(call)}/calls/${call.tool_call_id}`,
			bytes: new TextEncoder().encode(text).byteLength,
		},
	};
}

const runIdOf = (call: CallRecord): string => `run_${call.tool_call_id.slice(5, 37)}`;

/** Of the turn asked for, else of the newest one that has calls: a run may end with its turn open, or in one without any. */
export function messagesView(run: RunRecord, store: RunStore, asked: number | null): MessagesView {
	const turn = asked ?? store.lastCalls(1)[0]?.turn ?? 0;
	// Managed planners have been told; nobody but the reader of this tells an external one. Turn 0 is what the run began with.
	const told = run.planner.kind !== "external" ? [] : store.messages();
	const words = told.flatMap((one) => {
		const since = asked === null ? one.turn >= Math.max(turn, 1) : one.turn === turn;
		return one.role === "user" && since ? [one.content ?? ""] : [];
	});
	const waiting = run.planner.kind === "external" && (asked ?? run.turn) === run.turn ? run.queued : [];
	return { turn, messages: turnMessages(store.callsOf(turn)), said: [...words, ...waiting] };
}

/** The run's calls in a decision's answer are those of its turn: an answer does not grow with the run's past. */
export function turnView(state: RunState, store: RunStore, calls: readonly CallRecord[]): TurnView {
	const run = runView(state, store, calls);
	return { run, messages: turnMessages(calls), pending_approvals: run.pending_approvals };
}
