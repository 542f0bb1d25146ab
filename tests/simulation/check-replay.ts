/** What must hold of a run that plays a recording: recorded, it does nothing and says what was said; live, it decides the same. */
import type { StoredMessage } from "#core/planner/conversation.ts";
import { isCallerToolId } from "#core/run/caller-call.ts";
import type { RecordedCall } from "#core/run/recording.ts";
import type { CallRecord } from "#core/run/state.ts";
import { permits } from "./permits.ts";
import type { Played } from "./replay-twin.ts";
import type { RunTwin } from "./run-twin.ts";
import { fail, type Taken } from "./taken.ts";
import { toolOf } from "./tools.ts";
import type { Town } from "./town.ts";

const ENDS: ReadonlySet<string> = new Set(["COMPLETED", "FAILED", "TIMEOUT", "OUTCOME_UNKNOWN", "DENIED", "EXPIRED"]);
/** Somebody has a hand in it, or it goes on in a new turn: what is said is not the recording's alone any more. */
const DISTURBS: ReadonlySet<string> = new Set(["said", "cancelled", "outcome_stated", "resumed"]);
/** How a plan that the town loses may end a replay. */
const LOST: ReadonlySet<string> = new Set(["planner_timeout", "planner_unavailable"]);

export function checkReplay(town: Town, run: RunTwin, taken: Taken): void {
	const { played } = run;
	if (played === null) return;
	const { event, step } = taken;
	if (DISTURBS.has(event.kind)) run.disturbed = true;
	const recorded = played.replay.mode === "recorded";
	for (const { kind } of recorded ? step.effects : []) if (kind !== "plan") fail(`a recorded replay did: ${kind}`);
	if (recorded && run.approvals.size > 0) fail("a recorded replay asked a person");
	for (const { tool_id, input_hash } of recorded ? (run.run?.denied ?? []) : [])
		if (!played.denied.some((one) => one.tool_id === tool_id && one.input_hash === input_hash))
			fail(`a replay takes ${tool_id} for denied with an input that nobody denied`);
	for (const row of step.rows) if (row.table === "message") checkMessage(run, played, row.doc);
	if (event.kind !== "planned" || step.problem !== null) {
		for (const row of recorded ? step.rows : [])
			if (row.table === "call") fail(`a call of a recorded replay was changed by ${event.kind}`);
		return;
	}
	const ids = run.asked.get(taken.saved?.turn ?? 0) ?? [];
	for (const [index, id] of event.decision.tool_calls.length === 0 ? [] : ids.entries()) {
		const call = run.calls.get(id) ?? fail("a call was not saved");
		const of = event.recorded?.[index] ?? null;
		// Never judged to its end then, for want of a tool, of arguments or of a whole decision: what it was to do is not known.
		if (of?.input_hash === null && call.state !== "REFUSED") fail(`${call.tool_id} goes on and never was a call`);
		if (recorded || (of !== null && isCallerToolId(of.tool_id))) checkRecorded(town, run, taken, call, of);
		else if (call.source === "recorded") fail("a live replay gave a call its recorded end");
	}
}

/** The recorded end of exactly this call, or a refusal that today's world explains. */
function checkRecorded(town: Town, run: RunTwin, { event }: Taken, call: CallRecord, of: RecordedCall | null): void {
	if (call.attempts.length > 0 || town.upstream.requests.has(call.tool_call_id))
		fail(`${call.tool_id} was invoked by a replay`);
	if (call.state !== "REFUSED") {
		if (of === null || !ENDS.has(of.state)) fail(`${call.tool_id} is ${call.state} and has no recorded end`);
		if (of.tool_id !== call.tool_id || of.input_hash !== call.input_hash) fail("the recorded end of another call");
		if (call.source !== "recorded" || end(call) !== end(of)) fail(`${end(call)} is not the recorded ${end(of)}`);
		return;
	}
	if (call.refusal === null || call.result !== null || call.source === "recorded")
		fail("a call is REFUSED as if that were an end of the recording's");
	if (of === null || !ENDS.has(of.state) || event.kind !== "planned" || event.decision.finish_reason === "cut_off")
		return;
	const tool = run.exposure?.tools.find(({ function_name }) => function_name === call.function_name);
	const verdict = event.checks?.get(of.input_hash ?? "");
	const caller = isCallerToolId(of.tool_id);
	if (!caller && (tool === undefined || tool.tool_id !== of.tool_id)) return;
	if (!caller && tool !== undefined) {
		const { descriptor } = toolOf(tool.definition_hash).version;
		if (!permits(run.run?.authority.permissions ?? [], descriptor)) return;
		// Another definition has another hash; in a schedule of checks, a verdict may be another today.
		if (run.played?.definitions.get(of.tool_call_id) !== tool.definition_hash) return;
		if (descriptor.semantic_check !== undefined && verdict?.kind !== "held") return;
	}
	fail(`${call.tool_id} was recorded as ${of.state}, may be called and is REFUSED (${call.refusal?.reason})`);
}

const end = ({ state, result, error }: RecordedCall | CallRecord): string => JSON.stringify([state, result, error]);

/** One message of the replay against its place in the recording. */
function checkMessage(run: RunTwin, { replay, script, messages, asked }: Played, message: StoredMessage): void {
	// What a run is created with comes before all decisions.
	if (message.turn === 0) return;
	const own = (role: string, list: readonly StoredMessage[]) => list.filter((one) => one.role === role && one.turn > 0);
	if (message.role !== "tool") {
		if (message.role === "user" && run.disturbed) return;
		const n = own(message.role, run.messages).indexOf(message);
		const was = own(message.role, messages)[n];
		const [now, then] = [said(message), was === undefined ? "nothing" : said(was, unread(run, message))];
		if (now !== then) fail(`the replay says ${now}, not ${then}`);
		return;
	}
	if (replay.mode === "live") return;
	const n = own("assistant", run.messages).findIndex(({ turn }) => turn === message.turn);
	const index = run.asked.get(message.turn)?.indexOf(message.tool_call_id ?? "") ?? -1;
	const of = script[n]?.calls[index];
	const told = JSON.parse(message.content ?? "") as Told;
	if (of === undefined || of === null) return;
	const turn = own("assistant", messages)[n]?.turn ?? 0;
	const before = messages.find(
		({ role, tool_call_id }) => role === "tool" && tool_call_id === asked.get(turn)?.[index],
	);
	// Not told any more when the run was stopped; or told before somebody found out how it really ended.
	const then = before === undefined ? null : (JSON.parse(before.content ?? "") as Told);
	if (then !== null && then.status !== "refused" && of.state === "REFUSED")
		fail(`${of.tool_id} ended as ${then.status} and is recorded as REFUSED`);
	if (
		told.status === "refused" ||
		then === null ||
		(then.status === "outcome_unknown" && of.state !== "OUTCOME_UNKNOWN")
	)
		return;
	if (answer(told) !== answer(then)) fail(`the replay was told ${answer(told)}, the run ${answer(then)}`);
}

type Told = { readonly status: string; readonly data?: unknown; readonly error?: unknown };
const answer = ({ status, data, error }: Told): string => JSON.stringify([status, data, error]);
const said = (
	{ content, cut = false, tool_calls = [] }: StoredMessage,
	without: ReadonlySet<number> = new Set(),
): string =>
	JSON.stringify([
		content,
		cut,
		tool_calls.map(({ provider_call_id, function_name, arguments_text }, index) => [
			provider_call_id,
			function_name,
			without.has(index) ? "{}" : arguments_text,
		]),
	]);

/** Calls that were refused before anybody looked at their arguments. */
const unread = ({ calls }: RunTwin, { tool_calls = [] }: StoredMessage): Set<number> =>
	new Set(
		tool_calls.flatMap(({ tool_call_id }, index) => (calls.get(tool_call_id)?.arguments === null ? [index] : [])),
	);

/** At rest: a recording with an answer has been played to that answer. */
export function checkPlayed({ run, played, disturbed }: RunTwin): void {
	if (played === null || run === null) return;
	const { script, status, replay } = played;
	if (run.status === "completed" && run.answer !== script[run.script.at - 1]?.decision.content)
		fail("a replay answers what was not recorded");
	if (replay.mode !== "recorded" || disturbed || status !== "completed") return;
	if (run.status === "completed" && run.script.at !== script.length) fail("a replay ends before its recording does");
	if (run.status !== "completed" && !LOST.has(run.error?.code ?? ""))
		fail(`a recording that was completed is ${run.status} (${run.error?.code})`);
}
