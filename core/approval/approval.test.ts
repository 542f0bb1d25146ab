import { describe, expect, it } from "vitest";
import type { Scope } from "../expression.ts";
import type { JsonObject } from "../json.ts";
import { compileTool } from "../registry/compile.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import { judgeApproval } from "./ask.ts";
import { isExpired, matches } from "./grant.ts";
import { summarize, visible } from "./summarize.ts";

const SCOPE: Scope = {
	args: { to: "not what is judged", amount: 0 },
	context: {
		principal: { id: "p", kind: "agent", roles: [] },
		tenant_id: "t",
		session_id: "s",
		run_id: "r",
		now: 0,
		environment: "test",
	},
};
const decide = (more: JsonObject, args: JsonObject): string =>
	judgeApproval(compileTool(sampleTool(more)), args, SCOPE).decision;

describe("judgeApproval", () => {
	it("asks unless the tool says otherwise", () => {
		expect(decide({}, { to: "a" })).toBe("ask");
		expect(decide({ approval: { mode: "always" } }, { to: "a" })).toBe("ask");
		expect(decide({ approval: { mode: "never" } }, { to: "a" })).toBe("allow");
	});
	it("judges the frozen arguments, not those of the scope", () => {
		const rule = { approval: { mode: "when", when: "has(args.amount) && args.amount > 100" } };
		expect(decide(rule, { to: "a", amount: 101 })).toBe("ask");
		expect(decide(rule, { to: "a", amount: 100 })).toBe("allow");
		expect(decide(rule, { to: "a" })).toBe("allow");
	});
	it("asks when the rule cannot be evaluated (decision 19)", () => {
		const rule = { approval: { mode: "when", when: "int(args.to) > 100" } };
		expect(decide(rule, { to: "5" })).toBe("allow");
		expect(decide(rule, { to: "not a number" })).toBe("ask");
	});
	it("holds the floor of MCP projections whatever the descriptor says (A2)", () => {
		const version = sampleTool({ approval: { mode: "never" } });
		const projected = { ...version, descriptor: { ...version.descriptor, tool_id: "mcp:github:tool:list" } };
		const verdict = judgeApproval(compileTool(projected), { to: "a" }, SCOPE);
		expect(verdict.decision).toBe("ask");
		expect(verdict.rule_ids).toEqual(["approval:floor_mcp"]);
	});
});

describe("matches (A1, A01)", () => {
	const grant = { approval_id: "apr_1", tool_id: "pay", tool_call_id: "call_1", input_hash: "h1", expires_at: 1_000 };
	const call = { tool_id: "pay", tool_call_id: "call_1", input_hash: "h1" };
	it("needs all three", () => {
		expect(matches(grant, call)).toBe(true);
		expect(matches(grant, { ...call, input_hash: "h2" })).toBe(false);
		expect(matches(grant, { ...call, tool_call_id: "call_2" })).toBe(false);
		expect(matches(grant, { ...call, tool_id: "pay2" })).toBe(false);
	});
	it("never matches on emptiness", () => {
		expect(matches({ ...grant, input_hash: "" }, { ...call, input_hash: "" })).toBe(false);
		expect(matches({ ...grant, tool_call_id: "" }, { ...call, tool_call_id: "" })).toBe(false);
	});
	it("is good before its expiry, not at it, and never without one", () => {
		expect([999, 1_000, 1_001].map((now) => isExpired(grant, now))).toEqual([false, true, true]);
		expect(isExpired({ expires_at: Number.NaN }, 0)).toBe(true);
	});
});

describe("summarize (A19)", () => {
	const { descriptor } = sampleTool();
	it("says tool, class and arguments", () => {
		expect(summarize(descriptor, { to: "bob", amount: 5 })).toBe(
			'pay 1.0.0 (write, medium risk) with to: "bob", amount: 5',
		);
		expect(summarize(descriptor, {})).toContain("no arguments");
		expect(summarize(descriptor, { to: `b${" ".repeat(9)}`, amount: 5 }, "zh")).toBe(
			'pay 1.0.0（写入，中风险），参数 to："b[9 个空格]"，amount：5',
		);
	});
	it.each([
		["a direction override", "acct\u202E1", "\\u{202e}"],
		["a zero-width space", "a\u200Bb", "\\u{200b}"],
		["a line break", "a\nApproved: yes", "\\u{a}"],
		["a line separator", "a\u2028b", "\\u{2028}"],
		["a no-break space", "a\u00A0b", "\\u{a0}"],
		["a tag character", "a\u{E0041}b", "\\u{e0041}"],
		["a Hangul filler", "a\u3164b", "\\u{3164}"],
		["an escape character", "a\u001B[2Kb", "\\u{1b}"],
		["a lone surrogate", "a\uD800b", "\\u{d800}"],
	])("shows %s", (_, hostile, shown) => {
		const line = summarize(descriptor, { to: hostile, [hostile]: 1, deep: { [hostile]: [hostile] } });
		expect(line).toContain(shown);
		expect(line).not.toContain(hostile);
		expect(line.split("\n")).toHaveLength(1);
	});
	it("does not let spaces or length hide the end", () => {
		expect(summarize(descriptor, { memo: `${" ".repeat(5_000)}real payee: B` })).toContain("real payee: B");
		expect(summarize(descriptor, { memo: "x".repeat(5_000) })).toContain("(cut, 5000 characters)");
		expect(
			summarize(descriptor, Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`f${i}`, "x".repeat(100)])))
				.length,
		).toBeLessThan(700);
	});
	it("cuts between characters", () => {
		expect(visible(`${"a".repeat(9)}😀`, 10).isWellFormed()).toBe(true);
	});
});
