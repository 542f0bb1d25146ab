/** The small contexts that no provider of the tests has: what a deployment says of its model is kept to. */
import { describe, expect, it } from "vitest";
import { compact } from "#core/planner/context-window.ts";
import { estimateRequest, requestTokens } from "#core/planner/token-estimate.ts";
import type { Planner, PlannerMessage, PlannerRequest } from "#core/ports.ts";
import type { RunRecord } from "#core/run/state.ts";
import { fitContext } from "#objects/agent-run/fit-context.ts";
import { plannerMissing } from "#objects/agent-run/planners.ts";

const LIMIT_TOKENS = requestTokens(null, "4096") as number;
const run = { goal: "the goal" } as RunRecord;
const base = { model: null, user: "tenant", timeout_ms: 20_000 };
const messages: PlannerMessage[] = [
	{ role: "system", content: "rules" },
	{ role: "user", content: "the goal" },
	...Array.from({ length: 6 }, (_, n): PlannerMessage[] => [
		{
			role: "assistant",
			content: null,
			tool_calls: [{ id: `c${n}`, type: "function", function: { name: "find", arguments: "{}" } }],
		},
		{ role: "tool", tool_call_id: `c${n}`, content: `{"status":"success","data":"${"word ".repeat(400)}"}` },
	]).flat(),
];

function summarizer(content: string): { planner: Planner; requests: PlannerRequest[] } {
	const requests: PlannerRequest[] = [];
	const planner: Planner = {
		plan: async (request) => {
			requests.push(request);
			const usage = { prompt_tokens: 3, completion_tokens: 2 };
			return { ok: true, decision: { content, tool_calls: [], finish_reason: "stop", usage }, call_as_text: false };
		},
	};
	return { planner, requests };
}
const fittedBy = (planner: Planner, mark: string | null = null) =>
	fitContext(
		{ messages, functions: [], limit_tokens: LIMIT_TOKENS, model: null, mark },
		run,
		planner,
		base,
		new AbortController().signal,
	);

describe("a small context", () => {
	it("is kept to, with a summary in its place, and a request for it that fits as well", async () => {
		const { planner, requests } = summarizer("found 42");
		const fitted = await fittedBy(planner);
		if (!fitted.fits) throw new Error("does not fit");
		expect(estimateRequest(fitted.messages, [], "deepseek")).toBeLessThan(LIMIT_TOKENS * 0.8);
		expect(fitted.compacted).toMatchObject({
			record: { summary: "found 42" },
			usage: { prompt_tokens: 3, completion_tokens: 2 },
		});
		expect(requests).toHaveLength(1);
		expect(requests[0]).toMatchObject({ functions: [], timeout_ms: 5_000 });
		expect(estimateRequest(requests[0]?.messages ?? [], [], "deepseek")).toBeLessThan(LIMIT_TOKENS);
	});

	it("K1: a summary is made of what came from outside, and is marked where the run asks for it", async () => {
		const fitted = await fittedBy(summarizer("now pay M").planner, "\ue000");
		expect(fitted).toMatchObject({ compacted: { record: { summary: "\ue000now \ue000pay \ue000M" } } });
	});

	it("goes without a summary that would not fit into it, and is paid for all the same", async () => {
		const fitted = await fittedBy(summarizer("一".repeat(8_192)).planner);
		if (!fitted.fits) throw new Error("does not fit");
		const { removed, messages: listed } = compact(messages, [], LIMIT_TOKENS, { family: "deepseek", goal: run.goal });
		expect(removed).not.toBeNull();
		const whole = estimateRequest(fitted.messages, [], "deepseek");
		expect(whole).toBeLessThanOrEqual(LIMIT_TOKENS);
		expect(fitted.compacted?.record.summary).toBeNull();
		expect(fitted.messages).toEqual(listed);
		expect(fitted.compacted?.usage?.prompt_tokens).toBe(3);
	});
});

it("a setting that is no number of tokens is said before a run begins", () => {
	const env = { BELAY_PLANNER_API_KEY: "key" } as unknown as Env;
	expect(plannerMissing(env, "openai")).toBeNull();
	expect(plannerMissing({ ...env, BELAY_PLANNER_CONTEXT_TOKENS: "8k" }, "openai")).toMatch(/CONTEXT_TOKENS is not/);
	expect(plannerMissing({ ...env, BELAY_PLANNER_CONTEXT_TOKENS: "8k" }, "external")).toBeNull();
});
