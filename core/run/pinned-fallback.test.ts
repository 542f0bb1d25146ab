/** A fallback written as `tool_id@major` (R3): that major stands in, whatever has been published since, or none does. */
import { describe, expect, it } from "vitest";
import type { ToolVersion } from "../registry/descriptor.ts";
import { compileTool } from "../registry/register.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import type { Kit } from "./kit.ts";
import { cheapDigest, SampleRun, TOOLS } from "./sample-run.ts";
import type { CallRecord, World } from "./state.ts";

const read = (tool_id: string, version: string, more: object = {}): ToolVersion =>
	sampleTool(
		{
			tool_id,
			name: tool_id,
			version,
			effect: "read",
			approval: { mode: "never" },
			input_schema: { type: "object", properties: { to: { type: "string" } } },
			implementation: { kind: "http", method: "POST", url: "https://ledger.test/x" },
			...more,
		},
		cheapDigest,
	);
const OLD = read("backup", "1.4.0");
const NEW = read("backup", "2.0.0");
const of = (tool_id: string): ToolVersion => read("first", "1.0.0", { fallback: { tool_id, args: {} } });

class Town extends SampleRun {
	pinned: readonly ToolVersion[];
	/** Definitions that a run once exposed are its own copies. */
	readonly #copies: ReadonlyMap<string, ToolVersion>;
	constructor(online: readonly ToolVersion[], pinned: readonly ToolVersion[] = []) {
		super();
		this.tools = [...TOOLS, ...online];
		this.pinned = pinned;
		this.#copies = new Map([...online, ...pinned].map((one) => [one.definition_hash, one]));
	}
	override kit(): Kit {
		const kit = super.kit();
		return { ...kit, tool: (hash) => kit.tool(hash) ?? compileTool(this.#copies.get(hash) as ToolVersion) };
	}
	override world(): World {
		const world = super.world();
		return world.tools === null ? world : { ...world, pinned: this.pinned };
	}
	asks(): this {
		this.create();
		this.decide([["first", "c1", { to: "A" }]]);
		return this;
	}
	/** The tool says no: what is declared for that follows. */
	fails(): this {
		const { call, attempt = 0 } = this.takeInvoke() ?? {};
		const outcome = { kind: "failed", code: "http_error", message: "404", http_status: 404 } as const;
		this.step({
			kind: "settled",
			tool_call_id: call?.tool_call_id ?? "",
			attempt,
			outcome: { ...outcome, effect: "none", retryable: false },
			world: this.world(),
		});
		return this;
	}
	get parent(): CallRecord {
		return [...this.calls.values()].find((call) => call.tool_id === "first") as CallRecord;
	}
	get child(): CallRecord | undefined {
		return [...this.calls.values()].find((call) => call.parent_call_id === this.parent.tool_call_id);
	}
}

describe("a fallback that pins a major", () => {
	it("is the newest version of it, when that is the newest of all", () => {
		const run = new Town([of("backup@1"), OLD]).asks().fails();
		expect(run.child).toMatchObject({ tool_id: "backup", tool_version: "1.4.0", state: "DISPATCHED" });
		run.succeed(run.takeInvoke() as never, { found: 1 });
		expect(run.parent).toMatchObject({ state: "COMPLETED", data_source: "backup", result: { found: 1 } });
	});

	it("is that major's although a newer one is online, beside which planners are offered the newest alone", () => {
		const run = new Town([of("backup@1"), NEW], [OLD]).asks().fails();
		expect(run.child).toMatchObject({ tool_version: "1.4.0", definition_hash: OLD.definition_hash });
		expect(run.child?.state).toBe("DISPATCHED");
		const offered = run.state?.exposure?.tools.filter(({ tool_id }) => tool_id === "backup");
		expect(offered).toMatchObject([{ definition_hash: NEW.definition_hash }]);
	});

	it("is asked although the registry moved on meanwhile, and not once its major was taken offline", () => {
		for (const [pinned, state] of [
			[[OLD], "DISPATCHED"],
			[[], "REFUSED"],
		] as const) {
			const run = new Town([of("backup@1"), NEW], [OLD]).asks();
			run.pinned = pinned;
			run.registry_rev = 2;
			run.fails();
			expect(run.child?.state).toBe(state);
		}
	});

	it("is nobody else's: neither another major's nor, without a pin, an old one's", () => {
		for (const [name, online, pinned] of [
			["backup@1", [NEW], []],
			["backup@2", [OLD], []],
			["backup@3", [NEW], [OLD]],
		] as const) {
			const run = new Town([of(name), ...online], pinned).asks().fails();
			expect(run.child).toBeUndefined();
			expect(run.parent).toMatchObject({ state: "FAILED" });
			expect(run.parent.notes.join()).toContain(`its fallback \`${name}\` cannot be used here`);
		}
		expect(new Town([of("backup"), NEW], [OLD]).asks().fails().child?.tool_version).toBe("2.0.0");
	});

	it("is named to a planner that keeps calling wrongly only where that major is what it is offered", () => {
		const hint = (name: string): string => {
			const run = new Town([of(name), NEW], [OLD]);
			run.create({ planner: { kind: "openai", model: null } });
			for (const id of ["a", "b", "c"]) run.decide([["first", id, { to: 5.5 }]]);
			const last = [...run.calls.values()].find((call) => call.provider_call_id === "c");
			return last?.refusal?.errors[0]?.hint ?? "";
		};
		expect(hint("backup@2")).toMatch(/^call `backup` instead/);
		expect(hint("backup@1")).not.toContain("backup");
	});
});
