/** What must hold of calls of the caller's own functions: never invoked, answered once by their caller's word, and by no other. */
import type { Answered } from "#core/run/event.ts";
import { FINISHED } from "#core/run/view.ts";
import type { RunTwin } from "./run-twin.ts";
import { fail, type Taken } from "./taken.ts";

export function checkCaller(run: RunTwin, { before, event, step }: Taken): void {
	if (run.functions.length === 0) return;
	const status = run.run?.status ?? "planning";
	for (const effect of step.effects)
		if ((effect.kind === "invoke" || effect.kind === "enter") && effect.call.source === "caller")
			fail("a function of the caller's was invoked");
	if (event.kind === "answered" && step.problem === null) checkTaken(run, event);
	const known =
		event.kind === "answered" ? new Map(event.answers.map((one) => [one.tool_call_id, one.call])) : undefined;
	for (const row of step.rows) {
		if (row.table !== "call") continue;
		const call = row.doc;
		const was = before?.calls.get(call.tool_call_id) ?? known?.get(call.tool_call_id) ?? undefined;
		if (call.source !== "caller") {
			if (event.kind === "answered" && call.state === "COMPLETED" && was?.state !== "COMPLETED")
				fail(`an answer of the caller's completed ${call.tool_id}`);
			continue;
		}
		if (call.attempts.length > 0 || call.approval_id !== null)
			fail("a call of the caller's was tried or put to approval");
		if (was === undefined || was.state === call.state) {
			if (was !== undefined && was.result !== call.result) fail("an answer was changed");
			if (was?.state === "COMPLETED" && event.kind === "answered") fail("a call was answered twice");
			continue;
		}
		if (call.state === "COMPLETED" && event.kind !== "outcome_stated") {
			if (event.kind !== "answered" || was.state !== "AWAITING_CALLER") fail(`${event.kind} answered for the caller`);
			const said = event.answers.filter((one) => one.tool_call_id === call.tool_call_id);
			if (said.length !== 1 || said[0]?.content !== call.result)
				fail("the planner is told what the caller did not say");
		}
		if (call.state === "OUTCOME_UNKNOWN" && !FINISHED.has(status)) fail("a call was given up in a run that goes on");
	}
	const open = [...run.calls.values()].filter((call) => call.state === "AWAITING_CALLER");
	if (open.length > 0 && FINISHED.has(status)) fail("a finished run waits for its caller");
	if (status !== "awaiting_caller") return;
	if (open.length === 0) fail("a run waits for a caller who owes nothing");
	if (!run.due.has("caller:")) fail("a caller is awaited for ever");
	if (open.some(({ waiting }) => waiting?.reason !== "caller")) fail("a call was handed out without saying until when");
}

/** Whatever was not refused was the caller's to say, and stands as it was said. */
function checkTaken(run: RunTwin, event: Answered): void {
	for (const { tool_call_id, content } of event.answers) {
		const call = run.calls.get(tool_call_id);
		if (call?.source !== "caller" || call.state === "REFUSED")
			fail("an answer to a call that was not handed out was taken");
		if (call.result !== content) fail("an answer was taken and is not what stands");
	}
}
