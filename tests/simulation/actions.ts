/** What may happen next in a schedule. Each action is one thing that somebody does, or that fails; weights make the mix. */
import { APPROVAL_TTL_DEFAULT_MS } from "#core/limits.ts";
import { CALLER } from "#core/run/sample-run.ts";
import type { ApprovalRecord } from "#core/run/state.ts";
import { answerCaller } from "./caller-twin.ts";
import { makeDecision } from "./planner-twin.ts";
import type { RunTwin } from "./run-twin.ts";
import type { Town } from "./town.ts";

type Action = { readonly name: string; readonly weight: number; readonly act: (town: Town, run: RunTwin) => void };

export const ACTIONS: readonly Action[] = [
	{ name: "decide", weight: 14, act: decide },
	{ name: "deliver", weight: 40, act: (town) => town.deliver() },
	{ name: "deliver some", weight: 10, act: (town) => times(1 + town.dice.below(4), () => town.deliver()) },
	{ name: "approve", weight: 9, act: (town, run) => word(town, run, town.dice.maybe(0.75) ? "approve" : "deny") },
	{ name: "edit", weight: 2, act: edit },
	{ name: "time", weight: 14, act: (town) => time(town, town.dice.below(6_000)) },
	{ name: "much time", weight: 3, act: (town) => time(town, town.dice.below(120_000)) },
	{
		name: "days",
		weight: 0.8,
		act: (town) => time(town, APPROVAL_TTL_DEFAULT_MS - 5_000 + town.dice.below(10_000)),
	},
	{ name: "ring", weight: 4, act: (town, run) => town.ring(run) },
	{ name: "die", weight: 2, act: (_town, run) => run.die() },
	{
		name: "doom",
		weight: 4,
		act: (town, run) => town.dooms.set(run, town.dice.maybe(0.4) ? "before_save" : "after_save"),
	},
	{ name: "control", weight: 2, act: (town) => (town.control = !town.control) },
	{ name: "gate", weight: 2, act: (town) => (town.gate = !town.gate) },
	{ name: "halt", weight: 3, act: halt },
	{ name: "revoke", weight: 0.4, act: (town) => (town.revoked = !town.revoked) },
	{ name: "policy", weight: 1.5, act: policy },
	{ name: "publish", weight: 2.5, act: publish },
	{
		name: "say",
		weight: 1.5,
		act: (town, run) => void town.step(run, (world) => ({ kind: "said", content: "go on", world })),
	},
	{ name: "cancel call", weight: 2, act: cancelCall },
	{
		name: "cancel run",
		weight: 0.4,
		act: (town, run) => void town.step(run, (world) => ({ kind: "cancelled", by: "someone", world })),
	},
	{ name: "resume", weight: 3, act: (town, run) => resume(town, run) },
	{ name: "state an outcome", weight: 3, act: (town, run) => stateOutcome(town, run) },
];

/** Where a caller has functions of its own, it answers, too: a list apart, so that the other schedules stay as they were. */
const WITH_CALLER: readonly Action[] = [...ACTIONS, { name: "caller", weight: 12, act: answerCaller }];

const weigh = (list: readonly Action[]): number => list.reduce((sum, one) => sum + one.weight, 0);
const TOTAL = weigh(ACTIONS);
const TOTAL_WITH_CALLER = weigh(WITH_CALLER);

export function drawAction(town: Town, withCaller: boolean): Action {
	let at = town.dice.next() * (withCaller ? TOTAL_WITH_CALLER : TOTAL);
	for (const one of withCaller ? WITH_CALLER : ACTIONS) {
		at -= one.weight;
		if (at < 0) return one;
	}
	return ACTIONS[0] as Action;
}

function times(n: number, act: () => void): void {
	for (let i = 0; i < n; i++) act();
}

function decide(town: Town, run: RunTwin): void {
	if (run.planner !== "external" || run.run?.status !== "awaiting_decision") return;
	const { turn } = run.run;
	const decision = makeDecision(town.dice, false);
	town.step(run, (world) => ({ kind: "planned", turn, decision, call_as_text: false, results: null, world }));
}

/** Mostly an open approval; sometimes one that is decided, expired or superseded, as late clicks are. */
function someApproval(town: Town, run: RunTwin): ApprovalRecord | undefined {
	const all = [...run.approvals.values()];
	const open = all.filter((one) => one.status === "pending");
	const from = open.length > 0 && !town.dice.maybe(0.1) ? open : all;
	return from.length === 0 ? undefined : town.dice.pick(from);
}

export function word(town: Town, run: RunTwin, decision: "approve" | "deny"): void {
	const shown = someApproval(town, run);
	if (shown === undefined) return;
	const { approval_id, tool_id, tool_call_id } = shown;
	const wrong = !town.calm && town.dice.maybe(0.05);
	const agent = !town.calm && town.dice.maybe(0.05);
	const input_hash = wrong ? "0".repeat(64) : shown.input_hash;
	const before = shown.status;
	const step = town.step(
		run,
		(world) => ({
			kind: "approval_decided",
			approval_id,
			approval: run.approvals.get(approval_id) ?? null,
			decision,
			tool_id,
			tool_call_id,
			input_hash,
			reason: null,
			by: { ...CALLER, kind: agent ? "agent" : "user" },
			via: "api",
			world,
		}),
		true,
	);
	// Waking up may have superseded it on the way; a word that stands stands.
	const now = run.approvals.get(approval_id)?.status ?? "";
	const taken = [before, now].every((status) => ["approved", "denied", "consumed"].includes(status));
	if (step !== null && taken && !agent && step.problem?.code !== "already_decided")
		throw new Error(`a second word on a decided approval was answered ${step.problem?.code ?? "as the first"}`);
	// Lost or saved, what counts is what storage says now.
	const after = run.approvals.get(approval_id);
	const decided = after !== undefined && after.decisions.length > shown.decisions.length;
	if (!decided) return;
	if (before !== "pending") throw new Error(`an approval was decided when it was ${before}`);
	if (wrong || agent) throw new Error("an approval was decided by the wrong hash or by an agent");
	// Without control's word nobody knows what was halted: it is decided, and the start will say.
	if (town.control && town.endOf(shown) <= town.now) throw new Error("an approval was decided after its time");
	if (step !== null && step.problem !== null && step.problem.code !== "approval_superseded")
		throw new Error(`an approval was decided and the answer was ${step.problem.code}`);
	if (decision === "approve") town.granted.set(approval_id, input_hash);
}

function edit(town: Town, run: RunTwin): void {
	const shown = someApproval(town, run);
	if (shown === undefined) return;
	const { approval_id } = shown;
	const args = { to: town.dice.pick(["1", "2", "3"]) };
	town.step(
		run,
		(world) => ({
			kind: "approval_edited",
			approval_id,
			approval: run.approvals.get(approval_id) ?? null,
			arguments: args,
			by: CALLER,
			world,
		}),
		true,
	);
}

function time(town: Town, ms: number): void {
	town.pass(ms);
	for (const run of town.runs) {
		if (town.dice.maybe(0.85)) town.ring(run);
		if (town.dice.maybe(0.1)) town.ring(run);
	}
}

function halt(town: Town): void {
	if (town.endHalt()) return;
	const scope = town.dice.pick(["tenant", "tool:note", "tool:pay", "tool:keyed"]);
	town.halted = [...town.halted, { scope, since: town.now, until: null }];
}

function policy(town: Town): void {
	town.narrow = !town.narrow;
	town.policy_rev += 1;
}

function publish(town: Town): void {
	town.registry = town.dice.below(town.registries.length);
	town.registry_rev += 1;
}

function cancelCall(town: Town, run: RunTwin): void {
	const open = [...run.calls.values()].filter((call) => call.state === "PENDING" || call.state === "AWAITING_APPROVAL");
	if (open.length === 0) return;
	const { tool_call_id } = town.dice.pick(open);
	town.step(run, (world) => ({ kind: "call_cancelled", tool_call_id, by: "someone", world }));
}

export function resume(town: Town, run: RunTwin): void {
	if (run.run?.status === "suspended") town.step(run, (world) => ({ kind: "resumed", world }));
}

/** A careful person: they look, and say what is so. */
export function stateOutcome(town: Town, run: RunTwin): void {
	const open = [...run.calls.values()].filter((call) => call.state === "OUTCOME_UNKNOWN");
	if (open.length === 0) return;
	const { tool_call_id } = town.dice.pick(open);
	const outcome = town.upstream.happened(tool_call_id) ? "happened" : "not_happened";
	town.step(run, (world) => ({
		kind: "outcome_stated",
		call: run.calls.get(tool_call_id) as (typeof open)[number],
		outcome,
		result: null,
		reason: "seen",
		by: CALLER,
		world,
	}));
}
