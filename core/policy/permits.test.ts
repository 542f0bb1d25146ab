import { describe, expect, it } from "vitest";
import type { Scope } from "../expression.ts";
import type { Authority } from "../principal.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import corpus from "./permits.cases.json" with { type: "json" };
import { judgeCall, judgeTool, mostRestrictive, parsePermission, permits } from "./permits.ts";
import { allow, ask, deny, type Verdict } from "./verdict.ts";

const authority = (permissions: string[], tools: string[] = []): Authority => ({
	policy_rev: 1,
	roles: ["r"],
	permissions,
	tools,
	data_scope: "own",
});
const SCOPE: Scope = {
	args: {},
	context: {
		principal: { id: "p", kind: "agent", roles: [] },
		tenant_id: "t",
		session_id: "s",
		run_id: "r",
		now: 0,
		environment: "test",
	},
};

describe("permits", () => {
	it.each(corpus.permits)("$granted covers $required: $holds", ({ granted, required, holds }) => {
		expect(permits(granted, required)).toBe(holds);
		expect(permits(granted, required)).toBe(holds);
	});
	it("reads missing trailing parts as `*`", () => {
		expect(parsePermission("a")).toEqual(["a", "*", "*"]);
		expect(parsePermission("a:b")).toEqual(["a", "b", "*"]);
		expect(parsePermission("a:b:c:d")).toBeUndefined();
	});
});

describe("judgeTool", () => {
	it.each(corpus.tools)("$name", ({ permissions, tools, effect, required, decision }) => {
		const { descriptor } = sampleTool({ effect, required_permissions: required });
		expect(judgeTool(authority(permissions, tools), descriptor).decision).toBe(decision);
		expect(judgeCall(authority(permissions, tools), descriptor, {}, SCOPE).decision).toBe(decision);
	});
	it("looks at no argument (P1): it takes none", () => {
		expect(judgeTool.length).toBe(2);
	});
	it("is not fooled by a tool called like a prototype member", () => {
		const { descriptor } = sampleTool({ tool_id: "constructor", name: "constructor" });
		expect(judgeTool(authority([], []), descriptor).decision).toBe("deny");
		expect(judgeTool(authority([], ["constructor"]), descriptor).decision).toBe("allow");
	});
	it("gives rule ids with every decision", () => {
		const { descriptor } = sampleTool();
		expect(judgeTool(authority([]), descriptor).rule_ids).toEqual(["rbac:implied_permission"]);
		expect(judgeTool(authority(["*"]), descriptor).rule_ids).toEqual(["rbac:tool"]);
	});
});

describe("judgeCall", () => {
	const { descriptor } = sampleTool();
	it("takes the strictest of role and rules; a rule that does not apply changes nothing", () => {
		const judge = (...rules: Parameters<typeof judgeCall>[4] & object): string =>
			judgeCall(authority(["*"]), descriptor, {}, SCOPE, rules).decision;
		expect(judge()).toBe("allow");
		expect(judge(() => null)).toBe("allow");
		expect(
			judge(
				() => ask("look", ["a"]),
				() => null,
			),
		).toBe("ask");
		expect(
			judge(
				() => ask("look", ["a"]),
				() => deny("no", ["b"]),
			),
		).toBe("deny");
	});
	it("is not opened by a rule that allows", () => {
		expect(judgeCall(authority([]), descriptor, {}, SCOPE, [() => allow("yes", ["a"])]).decision).toBe("deny");
	});
});

describe("mostRestrictive", () => {
	it("takes a verdict that is none for a deny", () => {
		const odd = { ...allow("fine"), decision: "constructor" } as unknown as Verdict;
		expect(mostRestrictive(allow("fine"), odd).decision).toBe("deny");
	});
	it("denies when nothing was judged", () => {
		expect(mostRestrictive().decision).toBe("deny");
	});
	it("keeps the reasons of those that decided and the obligations of all", () => {
		const masked = { ...allow("fine", ["a"]), obligations: ["mask"] };
		expect(mostRestrictive(masked, ask("one", ["b"]), ask("two", ["c", "b"]))).toEqual({
			decision: "ask",
			reason: "one; two",
			rule_ids: ["b", "c"],
			obligations: ["mask"],
		});
	});
});
