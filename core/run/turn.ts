/** The turns of a run: opening one (what does the planner see?), closing one (has every call its answer?), and rest. */
import { conditionsOf } from "../availability/conditions.ts";
import { wellFormedJson } from "../data/well-formed.ts";
import { estimateTokens, functionDefinition } from "../exposure/definitions.ts";
import { expose } from "../exposure/expose.ts";
import { canonicalJson, type Json } from "../json.ts";
import { EXPOSURE_LIMIT_TOOLS } from "../limits.ts";
import { functionNames } from "../planner/function-names.ts";
import { observe } from "../planner/loop-guard.ts";
import { toolMessage } from "../planner/tool-message.ts";
import { judgeTool } from "../policy/permits.ts";
import type { ToolVersion } from "../registry/descriptor.ts";
import { resolveReference } from "../registry/tool-reference.ts";
import { overspent, overTokens } from "./budget.ts";
import { awaitCaller, endCallerCalls } from "./caller-call.ts";
import { definitionsOf } from "./caller-functions.ts";
import type { Draft } from "./draft.ts";
import { drop } from "./drop.ts";
import { inFlight, isOut } from "./flight.ts";
import { isModel } from "./is-model.ts";
import type { CallRecord, ExposedTool, Exposure, RunRecord, World } from "./state.ts";
import { toolMessageInput } from "./tool-message-of.ts";
import { FINISHED, LIVE } from "./view.ts";

/** Brings exposure up to date. It stands from turn to turn until registry or policy change (L3), so caches hit. */
export function refreshExposure(draft: Draft, world: World): void {
	const { run, exposure } = draft;
	if (world.authority !== null && world.authority.policy_rev !== run.authority.policy_rev)
		draft.set({ authority: world.authority });
	if (world.tools === null) return;
	const registry_rev = world.lease?.registry_rev ?? 0;
	const policy_rev = draft.run.authority.policy_rev;
	if (exposure !== null && exposure.registry_rev === registry_rev && exposure.policy_rev === policy_rev) return;
	const { authority } = draft.run;
	const judged = expose({
		tools: world.tools,
		permitted: (descriptor) => judgeTool(authority, descriptor).decision !== "deny",
		conditions: conditionsOf(run.context, draft.kit.now),
		pinned: run.pinned,
		now: draft.kit.now,
		limit: EXPOSURE_LIMIT_TOOLS,
	});
	const names = functionNames(
		judged.exposed.map((version) => version.descriptor.tool_id),
		draft.kit.digest,
	);
	const nameOf = (tool_id: string): string => names.toFunction.get(tool_id) ?? tool_id;
	const definitions = judged.exposed.map((version) => functionDefinition(version, nameOf(version.descriptor.tool_id)));
	const next: Exposure = {
		n: (exposure?.n ?? 0) + 1,
		registry_rev,
		policy_rev,
		mode: judged.mode,
		tools: judged.exposed.map((version) => ({
			tool_id: version.descriptor.tool_id,
			function_name: nameOf(version.descriptor.tool_id),
			definition_hash: version.definition_hash,
			...(version.descriptor.semantic_check === undefined ? {} : { checked: true as const }),
		})),
		references: referenced(judged.exposed, world),
		trace: judged.trace.map((entry) => ({ ...entry, function_name: entry.exposed ? nameOf(entry.tool_id) : null })),
		definition_tokens: estimateTokens(definitions),
	};
	const named = new Set(next.references.map((tool) => tool.definition_hash));
	const online = [...world.tools, ...(world.pinned ?? [])];
	draft.expose(next, [...judged.exposed, ...online.filter((version) => named.has(version.definition_hash))]);
}

/** What exposed tools name as fallback or status tool, whatever its surface: it is the machine that calls it. */
function referenced(exposed: readonly ToolVersion[], online: World): ExposedTool[] {
	const names = new Set<string>();
	for (const { descriptor } of exposed) {
		if (typeof descriptor.fallback === "object") names.add(descriptor.fallback.tool_id);
		if (descriptor.on_unknown.startsWith("reconcile:")) names.add(descriptor.on_unknown.slice("reconcile:".length));
	}
	const versions = new Set([...names].flatMap((name) => resolveReference(name, online) ?? []));
	return [...versions].map(({ descriptor: { tool_id }, definition_hash }) => ({
		tool_id,
		function_name: tool_id,
		definition_hash,
	}));
}

/** Opens the next turn, or rests the run when its turns are used up: a limit is never `completed` (E1). */
export function openTurn(draft: Draft, world: World): void {
	const { run } = draft;
	if (run.turn >= run.limits.turns) {
		rest(draft, "failed", {
			code: "turn_limit",
			message: `the run used its ${run.limits.turns} turns without an answer; what was found is in its calls`,
		});
		return;
	}
	refreshExposure(draft, world);
	// A run that ended at its limit is not asked on by its user's next words: each of them would cost a turn beyond it.
	const over = overTokens(run) ?? overspent(run, true);
	if (over !== null) {
		rest(draft, "failed", over);
		return;
	}
	const turn = run.turn + 1;
	const { since } = run.clocks;
	// The turn clock begins anew; the session clock keeps what it has counted.
	const clocks = {
		turn_spent_ms: 0,
		session_spent_ms: run.clocks.session_spent_ms + (since === null ? 0 : draft.kit.now - since),
		since: since === null ? null : draft.kit.now,
	};
	const own = definitionsOf(draft.run, draft.exposure);
	const tool_definition_tokens = (draft.exposure?.definition_tokens ?? 0) + (own.length > 0 ? estimateTokens(own) : 0);
	const usage = { ...run.usage, tool_definition_tokens };
	draft.dueDone("plan", "");
	draft.set({ turn, turn_open: false, plan_attempts: 0, clocks, usage });
	draft.log("turn.started", { turn });
	if (draft.exposure !== null) {
		draft.log("exposure.selected", {
			turn,
			mode: draft.exposure.mode,
			tools: draft.exposure.tools.map((tool) => tool.tool_id),
			tool_definition_tokens: draft.exposure.definition_tokens,
		});
	}
	if (run.planner.kind === "external") {
		draft.status("awaiting_decision");
		return;
	}
	draft.status("planning");
	draft.due("clock", "", draft.kit.now + Math.max(1, Math.min(draft.turnLeft(), draft.sessionLeft())));
	plan(draft);
}

/** Asks the managed planner. The timer is there for a plan that is lost with the object's life. */
export function plan(draft: Draft): void {
	draft.set({ plan_attempts: draft.run.plan_attempts + 1 });
	draft.effect({ kind: "plan", turn: draft.run.turn });
}

/** Looks at the open turn: everything answered -> the next turn; else the status that says what it waits for (decision 7). */
export function settleTurn(draft: Draft, world: World): void {
	if (!draft.run.turn_open) return;
	const calls = callsOfTurn(draft);
	const moving = calls.filter((call) => inFlight(call));
	// With no time left there is nothing to keep: the clock goes on, and ends the turn.
	const time = draft.turnLeft() > 0 && draft.sessionLeft() > 0;
	const halted = time && moving.length > 0 && moving.every((call) => call.waiting?.reason === "halt");
	if (moving.length > 0) draft.status("executing", {}, halted);
	else if (calls.some((call) => call.state === "AWAITING_CALLER")) awaitCaller(draft);
	else if (calls.some((call) => LIVE.has(call.state) || call.unsettled)) draft.status("awaiting_approval");
	else closeTurn(draft, world);
}

/** The open turn's calls, in the planner's order (an edited call keeps its place). */
function callsOfTurn(draft: Draft): CallRecord[] {
	return [...draft.calls.values()].filter((call) => call.turn === draft.run.turn).sort((a, b) => a.ordinal - b.ordinal);
}

/** Every provider call is answered exactly once, in the planner's order, before the planner is asked again. */
function closeTurn(draft: Draft, world: World): void {
	const { turn } = draft.run;
	// A planner outside reads its calls (`turnMessages`); no conversation is kept for it.
	if (draft.run.planner.kind !== "external") answerCalls(draft, turn);
	for (const content of draft.run.queued) draft.message({ turn, role: "user", content });
	draft.set({ queued: [], turn_open: false, closed_turn: turn });
	const stop = isModel(draft.run.planner.kind) ? circles(draft) : null;
	draft.forgetTurn();
	if (stop === null) openTurn(draft, world);
	else rest(draft, "failed", stop);
}

/** One tool message for every call that the planner made. */
function answerCalls(draft: Draft, turn: number): void {
	const asked = new Map<string, string>();
	for (const call of draft.calls.values())
		if (call.superseded_by !== null) asked.set(call.superseded_by, call.tool_call_id);
	for (const call of callsOfTurn(draft)) {
		if (call.parent_call_id !== null || call.superseded_by !== null) continue;
		// An edited call answers the one that the planner made: under its own id the planner would find no result and act again.
		let answered = call.tool_call_id;
		for (let before = asked.get(answered); before !== undefined; before = asked.get(answered)) answered = before;
		draft.message({
			turn,
			role: "tool",
			content: toolMessage(toolMessageInput(call)),
			tool_call_id: answered,
		});
	}
}

/** L4, V4: a model that goes round in circles, or will not be helped, is stopped with a plain reason. */
function circles(draft: Draft): RunRecord["error"] {
	let { loop_guard } = draft.run;
	let stop: RunRecord["error"] = draft.run.repair_stop;
	for (const call of callsOfTurn(draft)) {
		if (call.parent_call_id !== null || call.superseded_by !== null || call.input_hash === null) continue;
		const { state, error, refusal, turn, tool_id, input_hash } = call;
		const came = { state, result: call.result ?? null, error: error?.code ?? null, refusal: refusal?.reason ?? null };
		const result_digest = draft.kit.digest(canonicalJson(wellFormedJson(came as Json)));
		const observed = observe(loop_guard, { turn, tool_id, input_hash, result_digest });
		loop_guard = observed.state;
		if (observed.verdict.stop !== null) stop ??= { code: observed.verdict.stop, message: observed.verdict.message };
	}
	draft.set({ loop_guard });
	return stop;
}

/** Nothing of a finished run starts any more; what is out already reports, and its outcome is recorded. */
function stopCalls(draft: Draft, why: string): void {
	drop(draft, "run_cancelled", why);
	endCallerCalls(draft, why);
	const out = [...draft.calls.values()].filter((call) => isOut(call.state)).map((call) => call.tool_call_id);
	if (out.length > 0) draft.effect({ kind: "abort", tool_call_ids: out });
}

/** The run comes to rest for good, or until it is resumed. */
export function rest(
	draft: Draft,
	status: "completed" | "failed" | "cancelled" | "suspended",
	error: RunRecord["error"],
): void {
	draft.status(status, { error, turn_open: false });
	if (FINISHED.has(status)) stopCalls(draft, error?.message ?? "the run has ended");
	if (status !== "suspended") draft.log("run.finished", { status, answer: draft.run.answer, error });
}
