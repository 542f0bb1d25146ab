/**
 * The registry of the simulation: one tool for each thing a descriptor may declare that changes how a call starts, ends or
 * is repeated. Some exist in a second version, some can be taken offline. Compiled once for all schedules.
 */
import type { JsonObject } from "#core/json.ts";
import type { ToolVersion } from "#core/registry/descriptor.ts";
import { type CompiledTool, compileTool } from "#core/registry/register.ts";
import { sampleTool } from "#core/registry/sample-tool.ts";
import { cheapDigest } from "#core/run/sample-run.ts";

const FREE = { approval: { mode: "never" } };
const GATED = { approval: { mode: "always" } };
const READ = { effect: "read", ...FREE };
const WRITE = { effect: "write", ...FREE };
/** Micro-dollars, as a descriptor says them. */
const costs = (micro_usd: number) => ({ cost: { amount: micro_usd / 1_000_000, currency: "USD" } });
const KEYED = { idempotency: { mode: "key" } };

const DECLARED: Record<string, JsonObject> = {
	find: { ...READ, ...costs(2) },
	listed: { ...READ, cache: { tier: "realtime" } },
	kept: { ...READ, fallback: "snapshot", criticality: "core" },
	slow: { ...READ, rate_limit: { requests_per_minute: 20, burst: 2 } },
	promised: {
		...READ,
		output_schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
	},
	backed: { ...READ, fallback: { tool_id: "find", args: { to: "has(args.to) ? args.to : ''" } } },
	backed_by_pay: { ...READ, fallback: { tool_id: "pay", args: {} } },
	status: {
		...READ,
		visibility: "internal",
		input_schema: { type: "object", properties: { tool_call_id: { type: "string" } } },
	},
	note: { ...WRITE, ...costs(5), invalidates: ["listed"] },
	natural: { ...WRITE, idempotency: { mode: "natural" } },
	keyed: { ...WRITE, ...KEYED, ...costs(3) },
	keyed_backed: { ...WRITE, ...KEYED, fallback: { tool_id: "note", args: {} } },
	write_backed: { ...WRITE, fallback: { tool_id: "keyed", args: {} } },
	checked: { ...WRITE, on_unknown: "reconcile:status" },
	asks: { ...WRITE, on_unknown: "ask" },
	stops: { ...WRITE, on_unknown: "fail" },
	pay: { effect: "write", ...GATED, ...costs(20) },
	keyed_pay: { effect: "write", ...GATED, ...KEYED },
};

/** Of a model's tokens, whole numbers, so that the checkers can add them up without rounding. */
export const PRICES = { prompt: 1, completion: 2 } as const;

/** What a planner may call. */
export const CALLABLE = Object.keys(DECLARED).filter((tool_id) => tool_id !== "status" && tool_id !== "stops");

const version = (tool_id: string, more: JsonObject): ToolVersion =>
	sampleTool(
		{
			tool_id,
			name: tool_id,
			input_schema: { type: "object", properties: { to: { type: "string" } } },
			implementation: { kind: "http", method: "POST", url: "https://ledger.test/x" },
			...DECLARED[tool_id],
			...more,
		},
		cheapDigest,
	);

const FIRST = Object.keys(DECLARED).map((tool_id) => version(tool_id, {}));
const republished = (tool_id: string): readonly ToolVersion[] =>
	FIRST.map((one) => (one.descriptor.tool_id === tool_id ? version(tool_id, { version: "1.0.1" }) : one));
const without = (tool_id: string): readonly ToolVersion[] => FIRST.filter((one) => one.descriptor.tool_id !== tool_id);

/** Registries that follow one another; the first is the one a schedule begins with, where no tool has a check. */
export const REGISTRIES: readonly (readonly ToolVersion[])[] = [
	FIRST,
	republished("pay"),
	republished("keyed"),
	republished("note"),
	without("keyed_pay"),
	without("keyed"),
	without("find"),
];

const varied = (own: Record<string, JsonObject>, more: Record<string, JsonObject>): readonly ToolVersion[] =>
	FIRST.map((one) => {
		const { tool_id } = one.descriptor;
		const all = { ...own[tool_id], ...more[tool_id] };
		return Object.keys(all).length === 0 ? one : version(tool_id, all);
	});

/** Programs as sandbox-twin.ts reads them. */
const check = (source: string): JsonObject => ({ semantic_check: { language: "javascript", source } });
const WITH_CHECKS: Record<string, JsonObject> = {
	find: check("not 2"),
	note: check("not 2"),
	keyed: check("not 1"),
	pay: check("not 2"),
	keyed_pay: check("not 3"),
};
const checked = (more: Record<string, JsonObject>): readonly ToolVersion[] => varied(WITH_CHECKS, more);
const AGAIN = { version: "1.0.1" };

/** The same where some tools have checks of their own; they come, go, and change with a new version. */
export const CHECKED_REGISTRIES: readonly (readonly ToolVersion[])[] = [
	checked({}),
	checked({ pay: { ...AGAIN, ...check("not 1") } }),
	checked({ note: { ...AGAIN, ...check("not 1") }, status: check("none") }),
	checked({ keyed: { ...AGAIN, ...check("not 2") }, backed: check("not 2") }),
	without("keyed_pay"),
	checked({}).filter((one) => one.descriptor.tool_id !== "find"),
	FIRST,
];

const WITH_PRICES: Record<string, JsonObject> = {
	listed: costs(1),
	kept: costs(2.5),
	slow: costs(0.2),
	status: costs(1),
	backed: costs(4),
	natural: costs(7),
	keyed_pay: costs(11),
};
const EUR = { ...AGAIN, cost: { amount: 0.000_001, currency: "EUR" } };
const priced = (more: Record<string, JsonObject> = {}): readonly ToolVersion[] => varied(WITH_PRICES, more);

/** The same where most tools cost something, some of them parts of a micro-dollar, and some get dearer or go abroad. */
export const PRICED_REGISTRIES: readonly (readonly ToolVersion[])[] = [
	priced(),
	priced({ pay: EUR }),
	priced({ keyed: { ...AGAIN, ...costs(3.2) } }),
	priced({ note: EUR, kept: EUR }),
	priced({ find: EUR }),
	priced().filter((one) => one.descriptor.tool_id !== "keyed"),
	FIRST,
];

const compiled = new Map<string, CompiledTool>();
for (const one of [...REGISTRIES, ...CHECKED_REGISTRIES, ...PRICED_REGISTRIES].flat())
	if (!compiled.has(one.definition_hash)) compiled.set(one.definition_hash, compileTool(one));

export function toolOf(definition_hash: string): CompiledTool {
	const found = compiled.get(definition_hash);
	if (found === undefined) throw new Error(`no tool ${definition_hash}`);
	return found;
}

const known = new Map<string, number | null>();

/** One attempt in whole micro-dollars, never too few; null: in another currency. */
export function priceOf(definition_hash: string): number | null {
	const before = known.get(definition_hash);
	if (before !== undefined) return before;
	const { amount = 0, currency = "USD" } = toolOf(definition_hash).version.descriptor.cost ?? {};
	const price = currency === "USD" ? Math.ceil(amount * 1e6 - 1e-3) : null;
	known.set(definition_hash, price);
	return price;
}
