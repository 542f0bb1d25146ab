/**
 * One schedule of one seed: two runs of a session, one led from outside and one by a managed planner, share gates and an
 * upstream while people, clocks and faults do what they do. Then the world gets well and everything owed must come to
 * rest. Throws with what was broken; the same seed breaks it again.
 */
import { verifyEvidence } from "#core/evidence/chain.ts";
import { cheapDigest } from "#core/run/sample-run.ts";
import type { PlannerKind } from "#core/run/state.ts";
import { LIVE } from "#core/run/view.ts";
import { drawAction, resume, stateOutcome, word } from "./actions.ts";
import { answerCaller, OWN_FUNCTIONS } from "./caller-twin.ts";
import { checkPlayed } from "./check-replay.ts";
import { checkOperations } from "./check-truth.ts";
import { Dice } from "./dice.ts";
import { featuresOf } from "./features.ts";
import { recordingOf } from "./replay-twin.ts";
import type { RunOptions, RunTwin } from "./run-twin.ts";
import { fail } from "./taken.ts";
import { PRICES } from "./tools.ts";
import { Town } from "./town.ts";

const ACTIONS_MIN = 22;
const ACTIONS_MORE = 16;
const REPLAY_ACTIONS = 16;
/** In one schedule of eight the second run's caller has functions of its own. No seed of regressions.json is one of them. */
const CALLER_EVERY = 8;
const CALLER_SEED = 5;
/** Far more than any schedule needs: reaching it is a run that does not come to rest. */
const ROUNDS_MAX = 400;

/** @param trace gets a line for each thing that happens, to be read by a person */
export function simulate(seed: number, trace?: string[]): void {
	const dice = new Dice(seed);
	const note = trace === undefined ? () => {} : (line: string) => void trace.push(line);
	const features = featuresOf(seed);
	const town = new Town(dice, note, features);
	const options = optionsOf(seed, features.limits);
	town.begin("first", "external", options("external"));
	const withCaller = seed % CALLER_EVERY === CALLER_SEED;
	if (withCaller) town.begin("second", "openai", { ...options("openai"), functions: OWN_FUNCTIONS });
	else {
		const planner = dice.maybe(0.5) ? "openai" : "external";
		town.begin("second", planner, options(planner));
	}
	let checked = 0;
	const check = (): void => {
		checkOperations(town, checked);
		checked = town.upstream.operations.length;
	};
	const play = (actions: number, runs: readonly RunTwin[]): void => {
		for (let n = 0; n < actions; n++) {
			const { name, act } = drawAction(town, withCaller);
			const run = dice.pick(runs);
			if (trace !== undefined) trace.push(`${n}. ${name} (${run.name}) at ${town.now % 10_000_000}`);
			act(town, run);
			check();
		}
		trace?.push("the world gets well");
		town.settleDown();
		let rounds = 0;
		while (town.runs.some((run) => owes(run)) || town.letters.length > 0) {
			if (rounds++ > ROUNDS_MAX) fail(`did not come to rest: ${town.runs.map(describe).join("; ")}`);
			calmRound(town);
			check();
		}
	};
	play(ACTIONS_MIN + dice.below(ACTIONS_MORE), town.runs);
	const { replays } = features;
	for (let again = 0; replays !== null && again < 2; again++) {
		const runs = beginReplays(town, replays, again);
		if (runs.length > 0) play(REPLAY_ACTIONS, runs);
	}
	for (const run of town.runs) checkEnd(town, run);
}

/** Runs that play what the others recorded; `again`, what those that played recorded. */
function beginReplays(town: Town, dice: Dice, again: number): RunTwin[] {
	const from = town.runs.filter(({ played }) => (played !== null) === again > 0);
	const recordings = from.flatMap((run) => {
		if (dice.maybe(again === 0 ? 0.1 : 0.6)) return [];
		const played = recordingOf(run, dice.maybe(0.65) ? "recorded" : "live");
		return played === null ? [] : [{ name: `${run.name} again`, played }];
	});
	town.unsettle();
	return recordings.map(({ name, played }) => town.begin(name, "scripted", { played, limits: played.limits }));
}

/** One schedule in nine has budgets of money. They have dice of their own, so that older seeds stay what they were. */
function optionsOf(seed: number, limits: Dice | null): (planner: PlannerKind) => RunOptions {
	const dice = new Dice(seed ^ 0x2545f491);
	return (planner) => {
		const max_cost_micro_usd = seed % 9 === 5 ? dice.pick([undefined, 0, 5, 20, 60]) : undefined;
		const prices = planner === "external" ? undefined : PRICES;
		if (limits === null)
			return max_cost_micro_usd === undefined ? { prices } : { prices, limits: { max_cost_micro_usd } };
		const money = limits.pick([undefined, 0, 5, 19, 23, 60]);
		const max_calls = limits.pick([undefined, 0, 1, 2, 3, 5]);
		const free = prices !== undefined && limits.maybe(0.3) ? { prompt: 0, completion: 0 } : prices;
		return {
			// A budget with a model that has no price is refused before the run begins.
			prices: money === undefined && limits.maybe(0.2) ? undefined : free,
			limits: {
				...(money !== undefined && { max_cost_micro_usd: money }),
				...(max_calls !== undefined && { max_calls }),
			},
		};
	};
}

/** Something of it still moves, or has to be told to somebody. */
function owes(run: RunTwin): boolean {
	const { run: record } = run;
	if (record === null) return false;
	if (record.turn_open || ["planning", "executing", "suspended"].includes(record.status)) return true;
	for (const call of run.state?.calls.values() ?? []) if (LIVE.has(call.state)) return true;
	for (const timer of run.due.values()) if (timer.kind === "leave" || timer.kind === "watchdog") return true;
	return false;
}

function calmRound(town: Town): void {
	while (town.letters.length > 0) town.deliver();
	let next = Number.POSITIVE_INFINITY;
	for (const run of town.runs) {
		resume(town, run);
		answerCaller(town, run);
		word(town, run, town.dice.maybe(0.5) ? "approve" : "deny");
		for (const call of run.state?.calls.values() ?? []) if (call.unsettled) stateOutcome(town, run);
		for (const timer of run.due.values()) if (timer.kind !== "approval_expiry") next = Math.min(next, timer.at);
	}
	if (next > town.now && next < Number.POSITIVE_INFINITY && town.letters.length === 0) town.pass(next - town.now);
	for (const run of town.runs) town.ring(run);
}

function checkEnd(town: Town, run: RunTwin): void {
	if (run.run === null) return;
	const { head_hash, evidence_count: count } = run.run;
	const verdict = verifyEvidence(
		run.evidence,
		{ head_hash, count },
		cheapDigest,
		(text, signature) => signature === `signed ${text.slice(0, 16)}`,
	);
	if (!verdict.valid) fail(`the chain breaks at ${verdict.broken_at}`);
	checkPlayed(run);
	for (const call of run.calls.values()) {
		if (LIVE.has(call.state)) fail(`a ${call.state} call was left in storage`);
		if (town.gateOf(call.tool_id).passes.has(call.tool_call_id)) fail(`the pass of ${call.tool_id} never came back`);
	}
}

const describe = (run: RunTwin): string =>
	`${run.name} ${run.run?.status} turn ${run.run?.turn}: ${[...(run.state?.calls.values() ?? [])].map((call) => `${call.tool_id} ${call.state}`).join()}; due ${[...run.due.keys()].map((key) => key.slice(0, 12)).join()}`;
