/** What a step wants done, done by the town: attempts, plans, words with the gates. Answers are letters that may be lost. */
import { gateOutcome } from "#core/invoke/gate-keys.ts";
import type { PlannerDecision } from "#core/ports.ts";
import type { Effect } from "#core/run/effect.ts";
import { makeDecision } from "./planner-twin.ts";
import { nextOf } from "./replay-twin.ts";
import type { RunTwin } from "./run-twin.ts";
import { toolOf } from "./tools.ts";
import type { Town } from "./town.ts";

/** Does one effect, or loses it as the dice say; what comes of it is a letter. */
export function perform(town: Town, run: RunTwin, effect: Effect): void {
	const { dice } = town;
	switch (effect.kind) {
		case "invoke": {
			const { call, attempt } = effect;
			const { tool_call_id } = call;
			const { descriptor } = toolOf(call.definition_hash ?? "").version;
			const outcome = town.upstream.ask(call, descriptor, town.now);
			town.note(`  upstream ${call.tool_id} ${tool_call_id.slice(-6)} #${attempt}: ${outcome.kind}`);
			if (call.gate !== "passed" && gateOutcome(outcome) === "fault" && town.gate)
				town.gateOf(call.tool_id).report(descriptor.criticality, town.now, town.now);
			if (dice.maybe(0.1)) town.send(run, "running", tool_call_id, () => ({ kind: "running", tool_call_id, attempt }));
			// A lost report is what the watchdog is for.
			if (town.calm || !dice.maybe(0.03))
				town.send(run, "settled", tool_call_id, (world) => ({
					kind: "settled",
					tool_call_id,
					attempt,
					outcome,
					world,
				}));
			return;
		}
		case "plan": {
			const { turn } = effect;
			if (!town.calm && dice.maybe(0.1)) return;
			if (run.played !== null) {
				const said = nextOf(run.played, run.run?.script.at ?? 0, turn);
				town.send(run, "planned", "", (world) => (said.kind === "planned" ? { ...said, world } : said));
				return;
			}
			if (!town.calm && dice.maybe(0.15)) {
				const fault = { code: "planner_error", message: "500", retryable: dice.maybe(0.8) } as const;
				town.send(run, "plan_failed", "", () => ({ kind: "plan_failed", turn, fault }));
				return;
			}
			const made = makeDecision(
				dice,
				town.calm,
				run.functions.map(({ name }) => name),
			);
			const none = { prompt_tokens: 0, completion_tokens: 0 };
			const decision: PlannerDecision = town.unsaid() ? { ...made, usage: none } : made;
			const call_as_text = decision.tool_calls.length === 0 && !town.calm && dice.maybe(0.2);
			town.send(run, "planned", "", (world) => ({
				kind: "planned",
				turn,
				decision,
				call_as_text,
				results: null,
				world,
			}));
			return;
		}
		case "enter": {
			const { call, needs, hold_ms } = effect;
			const { tool_call_id } = call;
			if (!town.gate) return;
			const answer = town.gateOf(call.tool_id).enter(tool_call_id, needs, hold_ms, town.now);
			town.note(`  gate ${call.tool_id} ${tool_call_id.slice(-6)}: ${answer.verdict}`);
			if (!town.calm && dice.maybe(0.1)) return;
			town.send(run, "gated", tool_call_id, (world) => ({ kind: "gated", tool_call_id, answer, world }));
			return;
		}
		case "leave": {
			const { tool_id, tool_call_id } = effect;
			if (!town.gate || (!town.calm && dice.maybe(0.1))) return;
			town.gateOf(tool_id).leave(effect, town.now);
			town.note(`  gate ${tool_id} ${tool_call_id.slice(-6)} left: ${effect.settle}`);
			if (!town.calm && dice.maybe(0.1)) return;
			const { settle } = effect;
			town.send(run, "left", tool_call_id, () => ({ kind: "left", tool_call_id, settle }));
			return;
		}
		case "invalidate":
			if (town.gate) for (const tool_id of effect.tool_ids) town.gateOf(tool_id).invalidate();
			return;
		case "abort":
			for (const letter of town.letters) {
				if (letter.run !== run || letter.what !== "settled" || !effect.tool_call_ids.includes(letter.call)) continue;
				const made = letter.event;
				letter.event = (world) => {
					const event = made(world);
					const { descriptor } = toolOf(run.calls.get(letter.call)?.definition_hash ?? "").version;
					const cut = { kind: "failed", code: "interrupted", message: "cancelled", retryable: false } as const;
					const effect_ = descriptor.effect === "read" ? "none" : "possible";
					return event.kind === "settled" ? { ...event, outcome: { ...cut, effect: effect_ } } : event;
				};
			}
			return;
		case "announce":
			return;
	}
}
