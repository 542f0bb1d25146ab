/** A caller that runs functions of its own and answers for them: mostly well, sometimes in part, twice, otherwise, or for what is not its. */
import type { CallerFunction, CallRecord } from "#core/run/state.ts";
import type { RunTwin } from "./run-twin.ts";
import { fail } from "./taken.ts";
import type { Town } from "./town.ts";

const parameters = { type: "object", properties: { to: { type: "string" } } };
export const OWN_FUNCTIONS: readonly CallerFunction[] = [
	{ name: "local", description: "", parameters },
	{ name: "picky", description: "", parameters: { ...parameters, properties: { to: { const: "1" } } } },
];

type Said = { readonly tool_call_id: string; readonly content: string };

/** One request of the caller's, now or as a letter that comes when it comes. */
export function answerCaller(town: Town, run: RunTwin): void {
	if (run.functions.length === 0) return;
	const own = [...run.calls.values()].filter(({ source }) => source === "caller");
	const open = own.filter(({ state }) => state === "AWAITING_CALLER");
	if (town.calm ? open.length === 0 : own.length === 0) return;
	const answers = town.calm ? say(town, open) : drawn(town, run, own, open);
	const words = !town.calm && town.dice.maybe(0.1) ? "by the way" : null;
	const fewer = !town.calm && town.dice.maybe(0.1);
	const event = (world: Parameters<Parameters<Town["post"]>[1]>[0]) => ({
		kind: "answered" as const,
		answers: answers.map((one) => ({ ...one, call: run.calls.get(one.tool_call_id) ?? null })),
		content: words,
		...(fewer ? { caller_functions: OWN_FUNCTIONS.slice(1) } : { caller_functions: OWN_FUNCTIONS }),
		world,
	});
	if (!town.calm && town.dice.maybe(0.5)) {
		town.post(run, event);
		return;
	}
	const step = town.step(run, event, true);
	// Waking up may have ended the run on the way.
	const { code = "run_finished" } = step?.problem ?? {};
	if (town.calm && code !== "run_finished") fail(`an answer in time was refused: ${code}`);
}

const say = (town: Town, calls: readonly CallRecord[]): Said[] =>
	calls.map(({ tool_call_id }) => ({ tool_call_id, content: town.dice.pick(["rain", "sun"]) }));

function drawn(town: Town, run: RunTwin, own: readonly CallRecord[], open: readonly CallRecord[]): Said[] {
	const { dice } = town;
	const answers = say(town, dice.maybe(0.15) ? open.slice(1) : open);
	// an older one once more, as it was or otherwise
	if (answers.length === 0 || dice.maybe(0.15)) {
		const old = dice.pick(own);
		const content = typeof old.result === "string" && dice.maybe(0.6) ? old.result : "other";
		if (!answers.some((one) => one.tool_call_id === old.tool_call_id))
			answers.push({ tool_call_id: old.tool_call_id, content });
	}
	// one of Belay's
	if (dice.maybe(0.1)) answers.push({ tool_call_id: dice.pick([...run.calls.keys()]), content: "success" });
	return answers;
}
