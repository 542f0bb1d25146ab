/**
 * Tools' own checks as the AgentRun object has them run: what the step would judge without a verdict is named by the core
 * machine and looked at in a sandbox, and the event comes later, with the verdicts, to a run that may have moved on. A
 * program is one line, `not N`: it objects to `to: N`. Sometimes the sandbox dies, or answers what is no list.
 */
import type { Json, JsonObject } from "#core/json.ts";
import type { ApprovalEdited, Planned, RunEvent } from "#core/run/event.ts";
import { readVerdict, type SemanticVerdict } from "#core/run/semantic-check.ts";
import { mayNeedChecks, uncheckedCalls } from "#core/run/unchecked.ts";
import type { Dice } from "./dice.ts";
import type { RunTwin } from "./run-twin.ts";
import { fail } from "./taken.ts";
import { toolOf } from "./tools.ts";
import type { Town } from "./town.ts";

/** As in durable-objects/agent-run/semantic-checks.ts: a registry that moves twice meanwhile is not run after. */
const ROUNDS_MAX = 2;

/** Whether the program of a tool objects to these arguments: the truth, whatever becomes of its run. */
export const objects = (source: string, args: JsonObject | null): boolean => source === `not ${String(args?.to)}`;

/** One input of one program. */
export const inputOf = (source: string, args: JsonObject | null): string => `${source}: ${JSON.stringify(args)}`;

export class SandboxTwin {
	/** What programs have been run on, and whether that came to an end without an objection. */
	readonly held = new Set<string>();
	/** Events that were taken although the registry had moved once more: their calls may lack a verdict. */
	readonly overtaken = new WeakSet<RunEvent>();
	readonly #dice: Dice;

	constructor(dice: Dice) {
		this.#dice = dice;
	}

	/** The event as it is taken now; null: its checks are under way, and a letter brings it back. */
	gather(town: Town, run: RunTwin, event: RunEvent, rounds: number): RunEvent | null {
		if (event.kind !== "planned" && event.kind !== "approval_edited") return event;
		if (rounds >= ROUNDS_MAX) this.overtaken.add(event);
		else if (rounds > 0 || needed(run, event)) {
			const open = this.#open(town, run, event);
			if (open.length === 0) return event;
			const checks = new Map(event.checks);
			for (const { input_hash, source, arguments: args } of open) checks.set(input_hash, this.#run(town, source, args));
			town.send(
				run,
				"checked",
				"",
				(world) =>
					event.kind === "planned"
						? { ...event, checks, world }
						: // Read after the checks: somebody else may have decided meanwhile.
							{ ...event, checks, world, approval: run.approvals.get(event.approval_id) ?? null },
				rounds + 1,
			);
			return null;
		}
		return event;
	}

	/** The trial of the step. Nothing of it may stay. */
	#open(town: Town, run: RunTwin, event: Planned | ApprovalEdited): ReturnType<typeof uncheckedCalls> {
		const { state } = run;
		if (state === null) return [];
		const seen = (): string => JSON.stringify([state.run, state.exposure, [...state.calls], [...state.approvals]]);
		const before = this.#dice.maybe(0.2) ? seen() : null;
		const open = uncheckedCalls(state, event, run.kit(town.now));
		if (before !== null && seen() !== before) fail("the trial of a step changed the state");
		return open;
	}

	#run(town: Town, source: string, args: JsonObject): SemanticVerdict {
		const dice = this.#dice;
		if (!town.calm && dice.maybe(0.1)) return { kind: "failed", code: "wall_exceeded" };
		const answer: Json = objects(source, args) ? [{ field: "/to", message: "is sold out" }] : [];
		const verdict = readVerdict(!town.calm && dice.maybe(0.05) ? dice.pick<Json>([null, true, {}, [null]]) : answer);
		town.note(`  check ${inputOf(source, args)} ${verdict.kind}`);
		if (verdict.kind === "held") this.held.add(inputOf(source, args));
		return verdict;
	}
}

function needed({ state }: RunTwin, event: Planned | ApprovalEdited): boolean {
	if (state === null) return false;
	if (event.kind === "planned") return mayNeedChecks(state, event);
	const { definition_hash } = event.approval ?? {};
	return definition_hash !== undefined && toolOf(definition_hash).version.descriptor.semantic_check !== undefined;
}
