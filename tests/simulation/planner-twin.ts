/**
 * Decisions as planners make them: few arguments, so that calls are often equal; unknown names, doubled ids, cut answers.
 * `own` are the functions of the run's caller; without any nothing more is thrown, so older seeds play as they did.
 */
import type { PlannerDecision } from "#core/ports.ts";
import type { Dice } from "./dice.ts";
import { CALLABLE } from "./tools.ts";

export function makeDecision(dice: Dice, calm: boolean, own: readonly string[] = []): PlannerDecision {
	const usage = { prompt_tokens: 1 + dice.below(3), completion_tokens: 1 };
	if (calm || dice.maybe(0.12)) return { content: "answer", tool_calls: [], finish_reason: "stop", usage };
	const wanted = dice.maybe(0.15) ? 6 : 1 + dice.below(3);
	const tool_calls = Array.from({ length: wanted }, (_, n) => ({
		id: `c${n % 2}`,
		name:
			own.length > 0 && dice.maybe(0.4)
				? dice.pick(own)
				: dice.maybe(0.03)
					? "nope"
					: dice.maybe(0.01)
						? "stops"
						: dice.pick(CALLABLE),
		arguments: dice.maybe(0.02) ? "{" : dice.maybe(0.7) ? '{"to":"1"}' : '{"to":"2"}',
	}));
	// Half of them with a word: a planner outside that says none leaves no message (core/run/wordless.ts).
	const content = wanted === 2 ? "a word" : null;
	return { content, tool_calls, finish_reason: dice.maybe(0.03) ? "length" : "tool_calls", usage };
}
