/**
 * What must hold after every saved step of a run. The checkers know the truth (what the upstream did, what people said)
 * and the promises; they use none of the machine's own judgements. They throw with what is wrong.
 */
import { CALLS_IN_FLIGHT_MAX, RETRIES_MAX, WATCHDOG_GRACE_MS } from "#core/limits.ts";
import type { RunEvent } from "#core/run/event.ts";
import type { CallRecord, RunRecord, RunState } from "#core/run/state.ts";
import type { Step } from "#core/run/transition.ts";
import { FINISHED, LIVE, RESTING } from "#core/run/view.ts";
import { checkBudget } from "./check-budget.ts";
import { checkCaller } from "./check-caller.ts";
import { checkReplay } from "./check-replay.ts";
import { checkVerdicts } from "./check-semantic.ts";
import { checkStart } from "./check-start.ts";
import { checkLeave, checkTruth } from "./check-truth.ts";
import type { RunTwin } from "./run-twin.ts";
import { fail, type Taken } from "./taken.ts";
import type { Town } from "./town.ts";

/** One recovery more than the machine allows itself would be one too many: retries and recoveries together. */
const ATTEMPTS_MAX = 1 + RETRIES_MAX + 3;
const OUT = new Set(["DISPATCHED", "RUNNING"]);

export function checkStep(town: Town, run: RunTwin, taken: Taken): void {
	const { state } = run;
	if (state === null) fail("a saved step has a state");
	checkCounters(run, taken);
	checkMemory(run, state);
	checkEvidence(run, state);
	checkRows(town, run, taken);
	const { event } = taken;
	if (event.kind === "settled" && taken.step.rows.length > 0) {
		const was = taken.before?.calls.get(event.tool_call_id);
		if (was?.attempts.length !== event.attempt || !OUT.has(was.state)) fail("a late report changed something");
	}
	if (event.kind === "due" && event.what === "leave" && event.call !== null) {
		const over = !LIVE.has(event.call.state) || event.call.child !== null;
		if (over && !taken.step.effects.some(({ kind }) => kind === "leave"))
			fail("an end that is owed to the gate was not told");
	}
	if (event.kind === "booted" && state.run.status === "planning" && state.run.turn === taken.saved?.turn)
		if (!taken.step.effects.some(({ kind }) => kind === "plan")) fail("a plan that died was not asked for again");
	if (event.kind === "due" && event.what === "watchdog") {
		const was = taken.before?.calls.get(event.ref);
		const early = was?.boot_id === `boot${run.boot}` && (was.deadline_at ?? 0) + WATCHDOG_GRACE_MS > town.now;
		if (early && OUT.has(was.state) && !OUT.has(run.calls.get(event.ref)?.state ?? ""))
			fail("a watchdog bit too early");
	}
	checkBudget(town, run, taken);
	checkCaller(run, taken);
	checkReplay(town, run, taken);
	checkVerdicts(town, taken);
	for (const effect of taken.step.effects) {
		if (effect.kind === "invoke") checkStart(town, run, taken, effect.call, effect.timeout_ms);
		if (effect.kind === "leave") checkLeave(town, effect);
	}
	checkMoves(run, state, town.now);
	checkStatus(state);
	checkTurn(run, taken);
	checkTruth(town, run);
}

/** Numbers that only grow, whatever died in between. */
function checkCounters(twin: RunTwin, { saved }: Taken): void {
	const { run } = twin;
	if (saved === null || run === null || saved === run) return;
	for (const name of ["seq", "turn", "evidence_count", "next_message", "next_call"] as const)
		if (run[name] < saved[name]) fail(`${name} went back from ${saved[name]} to ${run[name]}`);
	for (const name of ["prompt_tokens", "completion_tokens"] as const)
		if (run.usage[name] < saved.usage[name]) fail(`usage.${name} went back`);
	if (run.denied.length < saved.denied.length) fail("a denial was forgotten");
}

/** What memory holds is what the next life would read. */
function checkMemory(run: RunTwin, state: RunState): void {
	if (state.run !== run.run) fail("the run in memory is not the one that was saved");
	for (const [id, call] of state.calls) if (run.calls.get(id) !== call) fail(`call ${id} in memory was not saved`);
	for (const [id, one] of state.approvals)
		if (run.approvals.get(id) !== one) fail(`approval ${id} in memory was not saved`);
	for (const [id, call] of run.calls)
		if (LIVE.has(call.state) && !state.calls.has(id)) fail(`live call ${id} is only in storage`);
	for (const [id, one] of run.approvals)
		if (one.status === "pending" && !state.approvals.has(id)) fail(`pending approval ${id} is only in storage`);
}

function checkEvidence(run: RunTwin, { run: record }: RunState): void {
	const { evidence } = run;
	if (evidence.length !== record.evidence_count) fail(`${evidence.length} records, ${record.evidence_count} counted`);
	const last = evidence.at(-1);
	if (last === undefined) return;
	if (last.hash !== record.head_hash) fail("the head is not the last record");
	if (last.seq > record.seq) fail("evidence is ahead of the log");
	const parent = evidence.at(-2);
	if (parent !== undefined && last.prev_hash !== parent.hash) fail("a record does not name its parent");
}

function checkRows(town: Town, run: RunTwin, { before, saved, event, step }: Taken): void {
	for (const row of step.rows) {
		if (row.table === "message" && row.doc.role === "tool") {
			const id = row.doc.tool_call_id ?? "";
			// An edited call's word is its successor's.
			let call = run.calls.get(id);
			while (call !== undefined && call.superseded_by !== null) call = run.calls.get(call.superseded_by);
			if (call === undefined) fail("an answer to a call that nobody made");
			if (LIVE.has(call.state) || call.unsettled) fail(`a call was answered while ${call.state}`);
			if (run.asked.get(row.doc.turn)?.includes(id) !== true) fail("an answer to a call that the planner did not make");
			if (run.answers.get(id) !== 1) fail("a call was answered twice");
		}
		if (row.table === "approval") {
			const was = before?.approvals.get(row.doc.approval_id);
			if (was !== undefined && was.status !== row.doc.status) {
				const onward = was.status === "pending" || (was.status === "approved" && row.doc.status !== "pending");
				if (!onward) fail(`an approval went from ${was.status} to ${row.doc.status}`);
			}
		}
		if (row.table === "call") checkCall(town, run, row.doc, before?.calls.get(row.doc.tool_call_id), saved, event);
	}
}

function checkCall(
	town: Town,
	run: RunTwin,
	call: CallRecord,
	was: CallRecord | undefined,
	saved: RunRecord | null,
	event: RunEvent,
): void {
	if (call.attempts.length > ATTEMPTS_MAX) fail(`${call.attempts.length} attempts`);
	if (was === undefined) {
		const denied = saved?.denied.some((one) => one.tool_id === call.tool_id && one.input_hash === call.input_hash);
		// What a gate is still owed is counted with a call that has left the state: it is not new.
		const owed = event.kind === "due" && event.what === "leave";
		if (
			denied === true &&
			event.kind !== "outcome_stated" &&
			!owed &&
			call.state !== "REFUSED" &&
			call.turn === run.run?.turn
		)
			fail("a denied call was taken again");
		return;
	}
	if (call.attempts.length < was.attempts.length) fail("an attempt was forgotten");
	if (was.input_hash !== null && was.input_hash !== call.input_hash) fail("a frozen call was changed");
	if (was.frozen !== null && was.frozen !== call.frozen) fail("frozen arguments were changed");
	if (was.state === call.state) return;
	const said = was.state === "OUTCOME_UNKNOWN" && event.kind === "outcome_stated";
	if (!LIVE.has(was.state) && !said) fail(`a call went from ${was.state} to ${call.state}`);
	// Served by the gate: the same judgement as a start, and the grant is spent.
	const served =
		call.state === "COMPLETED" &&
		!OUT.has(was.state) &&
		!["live", "caller"].includes(call.source) &&
		call.child === null;
	if (served && call.parent_call_id === null) {
		if (event.kind !== "gated") fail(`a call was served by ${event.kind}`);
		const descriptor = checkStart(town, run, { before: null, saved, event, step: NO_STEP }, call, 0);
		if (descriptor.effect !== "read" && call.source !== "idempotent_replay")
			fail(`a write was served from ${call.source}`);
	}
}
const NO_STEP: Step = { state: null, rows: [], effects: [], problem: null };

/** Whatever waits has somebody or something that moves it: a timer in storage, a free slot's owner, a person. */
function checkMoves(run: RunTwin, { run: record, calls, approvals }: RunState, now: number): void {
	const { clocks, limits } = record;
	// Nothing starts in a turn whose time is over: the clock ends it.
	const spent =
		clocks.since !== null &&
		run.due.has("clock:") &&
		clocks.turn_spent_ms + now - clocks.since >= limits.turn_timeout_ms;
	let out = 0;
	for (const call of calls.values()) if (OUT.has(call.state)) out += 1;
	if (out > CALLS_IN_FLIGHT_MAX) fail(`${out} calls in flight`);
	for (const call of calls.values()) {
		const id = call.tool_call_id;
		if (OUT.has(call.state) && !run.due.has(`watchdog:${id}`)) fail(`${call.state} without a watchdog`);
		if (call.unsettled && !run.due.has(`unsettled:${id}`)) fail("an unsettled call without its timer");
		if (call.state === "AWAITING_APPROVAL") {
			if (approvals.get(call.approval_id ?? "")?.status !== "pending") fail("a call waits for no approval");
			if (!run.due.has(`approval_expiry:${call.approval_id}`)) fail("an approval that never expires");
		}
		if (call.state !== "PENDING") continue;
		if (FINISHED.has(record.status)) fail("a call waits in a finished run");
		if (call.child !== null) {
			const child = calls.get(call.child.tool_call_id);
			// In a suspended run it takes its word when the run goes on.
			if ((child === undefined || !LIVE.has(child.state)) && record.status !== "suspended")
				fail("a call waits for a stand-in that has ended");
		} else if (record.status !== "suspended" && !run.due.has(`start:${id}`) && out < CALLS_IN_FLIGHT_MAX && !spent)
			fail(`${call.tool_id} waits for nothing`);
	}
}

/** Decision 7, and the clocks that stand while a run rests. */
function checkStatus({ run, calls }: RunState): void {
	const { status, clocks, turn_open } = run;
	const moving = [...calls.values()].filter(
		(call) => call.turn === run.turn && (OUT.has(call.state) || (call.state === "PENDING" && call.child === null)),
	);
	const time =
		clocks.turn_spent_ms < run.limits.turn_timeout_ms && clocks.session_spent_ms < run.limits.session_timeout_ms;
	const halted = time && turn_open && moving.length > 0 && moving.every((call) => call.waiting?.reason === "halt");
	// A clock that stands for a halt may also run: with its last moment spent in this very step it ends the turn.
	const stands = clocks.since === null;
	if (halted ? false : stands !== RESTING.has(status)) fail(`the clock of a run that is ${status}`);
	if (!turn_open) {
		if (["executing", "awaiting_approval", "awaiting_caller"].includes(status)) fail(`${status} without an open turn`);
		return;
	}
	let moves = false;
	let waits = false;
	let caller = false;
	for (const call of calls.values()) {
		if (call.turn !== run.turn) continue;
		moves ||= OUT.has(call.state) || (call.state === "PENDING" && call.child === null);
		waits ||= LIVE.has(call.state) || call.unsettled;
		caller ||= call.state === "AWAITING_CALLER";
	}
	if (!waits) fail(`an open turn in which everything has ended: ${status}`);
	const rests = caller ? "awaiting_caller" : "awaiting_approval";
	if (status !== (moves ? "executing" : rests)) fail(`${status} is not what the calls say`);
}

/** Every call that the planner made has exactly one answer before the planner is asked again. */
function checkTurn(run: RunTwin, { saved }: Taken): void {
	if (saved === null || run.run === null || run.run.turn === saved.turn) return;
	for (let turn = saved.turn; turn < run.run.turn; turn++) {
		const asked = run.asked.get(turn) ?? [];
		if (run.planner === "external") checkRead(run, turn, asked);
		else for (const id of asked) if (!run.answers.has(id)) fail(`a call of turn ${turn} was left without an answer`);
	}
	for (const call of run.calls.values())
		if (call.turn < run.run.turn && LIVE.has(call.state) && !OUT.has(call.state))
			fail(`a ${call.state} call was left behind in turn ${call.turn}`);
}

/** A planner outside finds one final answer under the id of each call it made, in its order. */
function checkRead(run: RunTwin, turn: number, asked: readonly string[]): void {
	if (run.answers.size > 0) fail("a conversation was kept for a planner outside");
	const told = run.read(turn);
	if (told.some(({ final }) => !final)) fail(`turn ${turn} was left with an answer that is not final`);
	const ids = asked.map((id) => run.calls.get(id)?.provider_call_id);
	if (JSON.stringify(told.map((one) => one.tool_call_id)) !== JSON.stringify(ids))
		fail(`the answers of turn ${turn} are not those of the calls that the planner made`);
}
