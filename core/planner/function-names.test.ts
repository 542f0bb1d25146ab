import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { functionNames, PLANNER_FUNCTIONS } from "./function-names.ts";

const digest = (text: string) => createHash("sha256").update(text).digest("hex");
const ACCEPTED = /^[a-zA-Z0-9_-]{1,64}$/;

describe("function names (X3)", () => {
	test("a valid tool id is its own name; a projection gets a readable name with a hash", () => {
		const names = functionNames(["get_item", "mcp:github:tool:create.issue"], digest);
		expect(names.toFunction.get("get_item")).toBe("get_item");
		expect(names.toFunction.get("mcp:github:tool:create.issue")).toMatch(/^mcp_github_tool_create_issue-[0-9a-f]{12}$/);
	});

	test("accepted by providers, unique, reversible", () => {
		const ids = [
			"constructor",
			"__proto__",
			"toString",
			"a".repeat(64),
			"mcp:a_:tool:x",
			"mcp:a:tool:_x",
			"mcp:a:tool:x",
			"mcp:a:tool:X",
			`mcp:s:tool:${"y".repeat(128)}`,
			`mcp:s:tool:${"y".repeat(127)}z`,
			"mcp:s:tool:....",
			...PLANNER_FUNCTIONS,
		];
		const names = functionNames(ids, digest);
		expect(names.toTool.size).toBe(ids.length);
		for (const id of ids) {
			const name = names.toFunction.get(id) ?? "";
			expect(name).toMatch(ACCEPTED);
			expect(names.toTool.get(name)).toBe(id);
			expect(PLANNER_FUNCTIONS).not.toContain(name);
		}
	});

	test("the order and the company of a tool do not change its name, so provider caches hold", () => {
		const alone = functionNames(["mcp:a:tool:x"], digest).toFunction.get("mcp:a:tool:x");
		expect(
			functionNames(["zz", "mcp:b:tool:x", "mcp:a:tool:x", "aa", "aa"], digest).toFunction.get("mcp:a:tool:x"),
		).toBe(alone);
	});

	test("two ids whose short hashes meet both get the long one: neither takes the other's name", () => {
		const colliding = (text: string) => `${"0".repeat(12)}${digest(text).slice(12)}`;
		const names = functionNames(
			["mcp:a:tool:x", "mcp:a:tool-x", "mcp:a:tool.x"].map((id) => id),
			colliding,
		);
		const given = [...names.toTool.keys()];
		expect(new Set(given).size).toBe(3);
		for (const name of given) expect(name).toMatch(/^mcp_a_tool_x-[0-9a-f]{32}$/);
	});

	test("a registered id cannot be the name of a projection", () => {
		const projected = functionNames(["mcp:a:tool:x"], digest).toFunction.get("mcp:a:tool:x") ?? "";
		// Own ids have no hyphen. Should one ever have, it keeps its name and the projection gets the long hash.
		const names = functionNames(["mcp:a:tool:x", projected], digest);
		expect(names.toTool.get(projected)).toBe(projected);
		expect(names.toFunction.get("mcp:a:tool:x")).not.toBe(projected);
	});
});
