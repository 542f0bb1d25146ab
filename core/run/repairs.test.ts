import { describe, expect, it } from "vitest";
import { CALLER, SampleRun } from "./sample-run.ts";
import type { CallRecord } from "./state.ts";

/** Three turns of the same bad call of `backed`, whose declared fallback is `find`; the third refusal. */
function third(caller = CALLER): CallRecord | undefined {
	const run = new SampleRun();
	run.create({ planner: { kind: "openai", model: null }, caller });
	for (const id of ["a", "b", "c"]) run.decide([["backed", id, { to: 5.5 }]]);
	return [...run.calls.values()].find((call) => call.provider_call_id === "c");
}

describe("the third refusal in a row", () => {
	it("names the declared fallback that the planner is offered", () => {
		const refusal = third()?.refusal;
		expect(refusal?.reason).toBe("budget_exhausted");
		expect(refusal?.errors[0]?.hint).toMatch(/^call `find` instead/);
	});

	it("names nothing that the caller may not call", () => {
		const authority = { ...CALLER.authority, permissions: [], tools: ["backed"] };
		const refusal = third({ ...CALLER, authority })?.refusal;
		expect(refusal?.reason).toBe("budget_exhausted");
		expect(JSON.stringify(refusal)).not.toContain("find");
	});
});
