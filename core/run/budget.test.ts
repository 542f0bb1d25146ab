import { describe, expect, it } from "vitest";
import { sampleTool } from "../registry/sample-tool.ts";
import { attemptCost } from "./budget.ts";
import { SampleRun } from "./sample-run.ts";

const cost = (amount: number, currency = "USD") => attemptCost(sampleTool({ cost: { amount, currency } }).descriptor);

describe("the cost of one attempt", () => {
	it.each([
		[0.002, 2_000],
		[0.0023, 2_300],
		[1.1, 1_100_000],
		[0.0000001, 1],
		[0.0000011, 2],
		[0, 0],
		[Number.MAX_VALUE, Number.MAX_SAFE_INTEGER],
	])("of %d dollars is %d micro-dollars: exact, never too few, always a number", (amount, micro_usd) => {
		expect(cost(amount)).toBe(micro_usd);
	});

	it("is unknown in another currency, and nothing where none is declared", () => {
		expect([cost(1, "EUR"), cost(1, "usd"), cost(0, "EUR")]).toEqual([null, 1_000_000, 0]);
		expect(attemptCost(sampleTool().descriptor)).toBe(0);
	});
});

describe("a run without prices, costs or a budget", () => {
	it("stores nothing about money, or about how many calls it made", () => {
		const run = new SampleRun();
		run.create();
		run.decide([["find", "a", {}]]);
		run.succeed(run.takeInvoke() ?? expect.fail("nothing was started"));
		expect(JSON.stringify(run.state?.run)).not.toMatch(/cost|price/);
		expect(run.state?.run.usage).not.toHaveProperty("calls");
		expect(JSON.stringify(run.log)).not.toMatch(/cost|price/);
	});
});

describe("a summary that costs what was left", () => {
	const compacted = (prompt_tokens: number) =>
		({ record: { v: 1 } as never, usage: { prompt_tokens, completion_tokens: 0 } }) as const;
	const failing = (more: object, tokens: number): SampleRun => {
		const run = new SampleRun();
		const limits = { turns: 20, turn_timeout_ms: 60_000, session_timeout_ms: 61_000, max_tokens: 0, ...more };
		run.create({ planner: { kind: "openai", model: "m" }, prices: { prompt: 1, completion: 2 }, limits });
		const fault = { code: "planner_unavailable", message: "gone", retryable: true } as const;
		run.step({ kind: "plan_failed", turn: 1, fault, compacted: compacted(tokens) });
		return run;
	};
	it.each([
		["cost_budget", { max_cost_micro_usd: 100 }, 100],
		["cost_unknown", { max_cost_micro_usd: 100 }, 0],
		["token_budget", { max_tokens: 100 }, 101],
	])("ends the run as %s before its planner is asked once more", (code, limits, tokens) => {
		const run = failing(limits, tokens);
		expect(run.state?.run).toMatchObject({ status: "failed", error: { code } });
		expect([...run.due.values()].map(({ kind }) => kind)).not.toContain("plan");
	});
	it("and leaves something does not", () => {
		const run = failing({ max_cost_micro_usd: 100, max_tokens: 100 }, 99);
		expect(run.state?.run).toMatchObject({ status: "planning", usage: { cost_micro_usd: 99 } });
		expect([...run.due.values()].map(({ kind }) => kind)).toContain("plan");
	});
});

describe("the sum", () => {
	it("is not lost with the object's memory, nor given back by a resume", () => {
		const run = new SampleRun();
		const prices = { prompt: 1, completion: 2 };
		const limits = { turns: 20, turn_timeout_ms: 60_000, session_timeout_ms: 61_000, max_tokens: 0 };
		run.create({
			planner: { kind: "openai", model: "m" },
			prices,
			limits: { ...limits, max_cost_micro_usd: 100 },
		});
		const usage = { prompt_tokens: 30, completion_tokens: 10 };
		run.decide([["pay", "a", { to: "x" }]], { usage });
		expect(run.state?.run.usage.cost_micro_usd).toBe(50);
		run.restart();
		run.approve([...run.approvals.keys()][0] ?? "");
		run.now += 62_000;
		run.step({ kind: "due", what: "clock", ref: "", world: run.world() });
		expect(run.state?.run.status).toBe("suspended");
		run.restart();
		run.step({ kind: "resumed", world: run.world() });
		expect(run.state?.run).toMatchObject({ status: "planning", usage: { cost_micro_usd: 50 } });
		run.decide([["find", "b", {}]], { usage });
		expect(run.state?.run.usage.cost_micro_usd).toBe(100);
		run.succeed(run.takeInvoke() ?? expect.fail("nothing was started"));
		// Nothing is left to ask the planner with.
		expect(run.state?.run).toMatchObject({ status: "failed", error: { code: "cost_budget" } });
	});
});

describe("a budget of tokens", () => {
	it("that is used up stays so: the user's next words ask no planner", () => {
		const run = new SampleRun();
		const limits = { turns: 20, turn_timeout_ms: 120_000, session_timeout_ms: 600_000, max_tokens: 10 };
		run.create({ planner: { kind: "openai", model: null }, limits });
		run.decide([], { usage: { prompt_tokens: 8, completion_tokens: 3 } });
		expect(run.state?.run).toMatchObject({ status: "failed", error: { code: "token_budget" } });
		run.effects.length = 0;
		run.step({ kind: "said", content: "go on", world: run.world() });
		expect(run.state?.run).toMatchObject({ status: "failed", error: { code: "token_budget" } });
		expect(run.effects).toEqual([]);
	});
});
