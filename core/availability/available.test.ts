import { describe, expect, it } from "vitest";
import type { ToolVersion } from "../registry/descriptor.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import { onSurface } from "../surface/surface.ts";
import { available, type Condition } from "./available.ts";

const NOW = 1_000_000;
const map = (...conditions: Partial<Condition>[]): Map<string, Condition> =>
	new Map(conditions.map((one) => [one.name ?? "", { name: "", holds: true, source: "test", at: NOW, ...one }]));

/** A stored version: registration takes only what can be observed, and older versions may require more. */
function needing(requires: string[]): ToolVersion {
	const version = sampleTool();
	return { ...version, descriptor: { ...version.descriptor, requires } };
}

describe("available", () => {
	it("needs nothing when nothing is required", () => {
		expect(available(sampleTool(), new Map(), NOW)).toEqual({ holds: true, reason: "needs nothing", missing: [] });
	});
	it("names every missing precondition with what mends it", () => {
		const tool = needing(["workspace", "connection:github", "device:browser"]);
		const judged = available(tool, map({ name: "connection:github" }), NOW);
		expect(judged.holds).toBe(false);
		expect(judged.missing).toEqual([
			{ name: "workspace", mend: "open a workspace for this run, and name it in `context.workspace_id`" },
			{ name: "device:browser", mend: "connect the device browser" },
		]);
	});
	it("takes stale for unavailable, and says so", () => {
		const tool = needing(["workspace"]);
		const at = (past: number): boolean => available(tool, map({ name: "workspace", at: NOW - past }), NOW).holds;
		expect([0, 60_000, 60_001, -5_000, -5_001, Number.NaN].map(at)).toEqual([true, true, false, true, false, false]);
		expect(available(tool, map({ name: "workspace", at: NOW - 61_000 }), NOW).reason).toContain("stale");
		expect(available(tool, map({ name: "workspace", at: NOW - 500, max_age_ms: 100 }), NOW).holds).toBe(false);
	});
	it("asks three things of an MCP server, named apart", () => {
		const tool = needing(["mcp:github"]);
		expect(available(tool, map({ name: "mcp:github" }), NOW).missing.map(({ name }) => name)).toEqual([
			"mcp:github:connection",
			"mcp:github:discovery",
			"mcp:github:agent_access",
		]);
		const all = map(
			{ name: "mcp:github:connection" },
			{ name: "mcp:github:discovery" },
			{ name: "mcp:github:agent_access" },
		);
		expect(available(tool, all, NOW).holds).toBe(true);
	});
	it("takes a tool down with its own service, and only on fresh news", () => {
		expect(available(sampleTool(), map({ name: "tool:pay", holds: false }), NOW).holds).toBe(false);
		expect(available(sampleTool(), map({ name: "tool:pay", holds: false, at: 0 }), NOW).holds).toBe(true);
	});
	it("answers no for an offline version, since when", () => {
		const offline = { ...sampleTool(), status: "offline" as const, offline_since: "2026-11-01T00:00:00.000Z" };
		expect(available(offline, new Map(), NOW).reason).toBe("offline since 2026-11-01T00:00:00.000Z");
	});
});

describe("onSurface", () => {
	it.each([
		["public", true],
		["internal", false],
		["legacy", false],
	])("%s: %s", (visibility, holds) => {
		expect(onSurface(sampleTool({ visibility }).descriptor).holds).toBe(holds);
	});
});
