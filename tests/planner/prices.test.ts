/** What a deployment says that models cost: read strictly, and never guessed. */
import { describe, expect, it } from "vitest";
import { pricesOf } from "#objects/agent-run/prices.ts";

const of = (text: string, model: string | null, kind: "openai" | "workers_ai" | "external" = "openai") =>
	pricesOf({ BELAY_PLANNER_PRICES: text, BELAY_PLANNER_MODEL: "usual" } as Env, { kind, model, script: [] });
const table = JSON.stringify({ usual: { prompt: 0.28, completion: 0.42 }, other: { prompt: 1, completion: 2 } });

describe("prices", () => {
	it("are the named model's, or the deployment's own when none is named", () => {
		expect(of(table, null)).toEqual({ prompt: 0.28, completion: 0.42 });
		expect(of(table, "other")).toEqual({ prompt: 1, completion: 2 });
	});

	it.each([
		["a model that is not listed", table, "unlisted"],
		["a name that every object has", table, "constructor"],
		["no table", "", null],
		["no JSON", "{", null],
		["a negative price", '{"usual":{"prompt":-1,"completion":2}}', null],
		["half a price", '{"usual":{"prompt":1}}', null],
		["a price as text", '{"usual":{"prompt":"1","completion":2}}', null],
		["one bad entry among good ones", '{"usual":{"prompt":1,"completion":2},"x":{}}', null],
	])("are unknown with %s", (_what, text, model) => {
		expect(of(text, model)).toBeUndefined();
	});

	it("are unknown for another kind's unnamed model: the deployment's name is not its", () => {
		expect(of(table, null, "workers_ai")).toBeUndefined();
	});
});
