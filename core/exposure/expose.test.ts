import { describe, expect, it } from "vitest";
import type { Condition } from "../availability/available.ts";
import type { JsonObject } from "../json.ts";
import type { ToolVersion } from "../registry/descriptor.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import { estimateTokens, formatTools, functionDefinition } from "./definitions.ts";
import { expose } from "./expose.ts";

const tool = (tool_id: string, more: JsonObject = {}): ToolVersion => sampleTool({ tool_id, name: tool_id, ...more });
const many = (n: number): ToolVersion[] => Array.from({ length: n }, (_, i) => tool(`t${String(i).padStart(3, "0")}`));
const run = (more: Partial<Parameters<typeof expose>[0]>): ReturnType<typeof expose> =>
	expose({
		tools: [],
		permitted: () => true,
		conditions: new Map<string, Condition>(),
		pinned: null,
		now: 0,
		limit: 20,
		...more,
	});
const ids = (exposed: readonly ToolVersion[]): string[] => exposed.map((version) => version.descriptor.tool_id);

describe("expose", () => {
	it("shows all eligible tools, ordered by id, and hides the rest", () => {
		const tools = [
			tool("b"),
			tool("a"),
			tool("hidden", { visibility: "internal" }),
			tool("old", { visibility: "legacy" }),
			tool("needs", { requires: ["workspace"] }),
		];
		const shown = run({ tools });
		expect(ids(shown.exposed)).toEqual(["a", "b"]);
		expect(shown.trace.map(({ tool_id, exposed }) => [tool_id, exposed])).toEqual([
			["a", true],
			["b", true],
			["needs", false],
		]);
		expect(shown.trace[2]?.reason).toContain("open a workspace");
	});
	it("says of any number that is shown whole only that it is", () => {
		const shown = run({ tools: many(300) });
		expect(shown.exposed).toHaveLength(300);
		expect(new Set(shown.trace.map(({ reason }) => reason))).toEqual(
			new Set(["eligible, and every eligible tool is shown"]),
		);
	});
	it("never lets the trace name a tool that the caller may not call (Q7), pinned or not", () => {
		const tools = [tool("mine"), tool("secret_tool")];
		const permitted = (descriptor: { tool_id: string }): boolean => descriptor.tool_id === "mine";
		for (const pinned of [null, ["mine", "secret_tool", "no_such_tool"]])
			expect(JSON.stringify(run({ tools, permitted, pinned }))).not.toMatch(/secret_tool|no_such_tool/);
	});
	it("pins within what is eligible", () => {
		const shown = run({ tools: [tool("a"), tool("b"), tool("c", { requires: ["workspace"] })], pinned: ["b", "c"] });
		expect(ids(shown.exposed)).toEqual(["b"]);
		expect(shown.trace.find(({ tool_id }) => tool_id === "c")?.reason).toContain("not available");
	});
	it("shows nothing for an empty pin set", () => {
		expect(run({ tools: [tool("a")], pinned: [] }).exposed).toEqual([]);
	});
	it("ranks only above the limit, only eligible tools, in stable order, each once", () => {
		let asked = 0;
		const rank = (
			eligible: readonly ToolVersion[],
		): { tool_id: string; recall_score: number; rerank_score: null }[] => {
			asked += 1;
			const backwards = ids(eligible)
				.reverse()
				.map((tool_id, i) => ({ tool_id, recall_score: 1 - i / 100, rerank_score: null }));
			return [
				{ tool_id: "not_eligible", recall_score: 9, rerank_score: null },
				backwards[0] as (typeof backwards)[0],
				...backwards,
			];
		};
		expect(run({ tools: many(20), rank }).mode).toBe("all");
		expect(asked).toBe(0);
		const shown = run({ tools: many(25), rank });
		expect(shown.mode).toBe("ranked");
		expect(ids(shown.exposed)).toEqual(ids(many(25)).slice(5));
		expect(shown.trace).toHaveLength(25);
		expect(shown.trace[0]).toMatchObject({ tool_id: "t000", exposed: false });
		expect(shown.trace[24]).toMatchObject({ tool_id: "t024", exposed: true, recall_score: 1 });
	});
});

describe("definitions", () => {
	const version = tool("a", {
		input_schema: {
			$schema: "https://json-schema.org/draft/2020-12/schema",
			type: "object",
			properties: {
				url: { type: "string", "x-belay-kind": "url" },
				"x-name": { type: "string", default: { "x-kept": 1 } },
			},
		},
	});
	it("keeps Belay's marks inside and the planner's names whole", () => {
		expect(functionDefinition(version, "a").parameters).toEqual({
			type: "object",
			properties: { url: { type: "string" }, "x-name": { type: "string", default: { "x-kept": 1 } } },
		});
	});
	it("formats for each protocol", () => {
		const definitions = [functionDefinition(version, "a")];
		expect(formatTools(definitions, "openai")).toMatchObject([
			{ type: "function", function: { name: "a", parameters: { type: "object" } } },
		]);
		expect(formatTools(definitions, "anthropic")).toMatchObject([{ name: "a", input_schema: { type: "object" } }]);
		expect(formatTools(definitions, "mcp")).toMatchObject([{ name: "a", inputSchema: { type: "object" } }]);
	});
	it("estimates within the published range of a tool (X4: 50..200)", () => {
		const tokens = estimateTokens([functionDefinition(version, "a")]);
		expect(tokens).toBeGreaterThan(30);
		expect(tokens).toBeLessThan(200);
		expect(estimateTokens([])).toBe(0);
	});
});
