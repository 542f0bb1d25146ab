import { type Schema, Validator } from "@cfworker/json-schema";
import { describe, expect, test } from "vitest";
import fixtures from "../../tests/fixtures/model-streams.json" with { type: "json" };
import type { JsonObject } from "../json.ts";
import { CALLS_PER_TURN_MAX, PLANNER_OUTPUT_MAX_CHARS } from "../limits.ts";
import { readArguments } from "./arguments.ts";
import { type AssembledTurn, createAssembler } from "./assembler.ts";
import { executes } from "./decision.ts";

type Fixture = {
	id: string;
	deltas?: unknown[];
	finish?: string;
	noFinish?: boolean;
	usageInFinish?: boolean;
	executes: number | null;
};

const OFFERED = ["get_item", "submit", "run", "list_all", "tag_item", "get_a", "get_b", "add", "weather"];
const closed: Schema = {
	type: "object",
	properties: { sku: { type: "string", pattern: "^[A-Za-z0-9]+$" } },
	required: ["sku"],
	additionalProperties: false,
};
const schemas = new Map(
	OFFERED.map((name) => [name, new Validator(name === "get_item" ? closed : { type: "object" }, "2020-12")]),
);

const chunk = (delta: unknown, finish_reason: string | null = null) => ({
	choices: [{ index: 0, delta, finish_reason }],
});
const call = (piece: JsonObject) => chunk({ tool_calls: [piece] });
const named = (name: string, args: string, more: JsonObject = {}) => ({
	...more,
	type: "function",
	function: { name, arguments: args },
});

function assemble(chunks: unknown[]): AssembledTurn {
	const assembler = createAssembler(OFFERED);
	for (const one of chunks) assembler.push(one);
	return assembler.finish();
}
const callsOf = (chunks: unknown[]) =>
	assemble(chunks).decision.tool_calls.map((one) => [one.id, one.name, one.arguments]);

/** How many calls would go on to policy: the turn may execute, the tool is offered, the arguments parse and fit. */
function executed({ decision }: AssembledTurn): number {
	if (!executes(decision).ok) return 0;
	return decision.tool_calls.filter((one) => {
		const read = readArguments(one.arguments);
		return read.ok && schemas.get(one.name)?.validate(read.value).valid === true;
	}).length;
}

describe("recorded streams", () => {
	const streams = (fixtures as Fixture[]).filter((one) => one.deltas !== undefined);

	test("the file holds the streams", () => expect(streams.length).toBeGreaterThan(15));

	test.each(streams.map((one) => [one.id, one] as const))("%s", (_, fixture) => {
		const chunks: unknown[] = (fixture.deltas ?? []).map((delta) => chunk(delta));
		if (fixture.finish !== undefined && !fixture.noFinish) {
			chunks.push({
				...chunk({}, fixture.finish),
				...(fixture.usageInFinish ? { usage: { prompt_tokens: 7, completion_tokens: 3 } } : {}),
			});
		}
		const turn = assemble(chunks);
		// `null`: more than one policy is right. Ours: no coercion and no unwrapping; the schema decides.
		if (fixture.executes !== null) expect(executed(turn)).toBe(fixture.executes);
		if (fixture.id === "double-wrapped") expect(executed(turn)).toBe(0);
		if (fixture.id === "array-as-string") expect(executed(turn)).toBe(1);
		if (fixture.usageInFinish) expect(turn.decision.usage).toEqual({ prompt_tokens: 7, completion_tokens: 3 });
		const written = ["call-as-text", "dsml-in-content", "dsml-split-chunks", "dsml-bare-invoke"].includes(fixture.id);
		expect(turn.call_as_text).toBe(written);
	});
});

describe("telling calls apart (T05)", () => {
	const A = '{"to":"A"}';
	const B = '{"to":"B"}';
	const both = (id: string) => [
		[id, "get_a", A],
		[id, "get_a", B],
	];

	test.each([
		[
			"one id, two indices",
			[call(named("get_a", A, { id: "x", index: 0 })), call(named("get_a", B, { id: "x", index: 1 }))],
			both("x"),
		],
		[
			"one id, one index",
			[call(named("get_a", A, { id: "x", index: 0 })), call(named("get_a", B, { id: "x", index: 0 }))],
			both("x"),
		],
		["one id, no index", [call(named("get_a", A, { id: "x" })), call(named("get_a", B, { id: "x" }))], both("x")],
		["neither id nor index", [call(named("get_a", A)), call(named("get_a", B))], both("")],
		[
			"in one delta",
			[chunk({ tool_calls: [named("get_a", A, { id: "x" }), named("get_a", B, { id: "x" })] })],
			both("x"),
		],
		[
			"two calls without arguments in one delta",
			[
				chunk({
					tool_calls: [named("list_all", "", { id: "x", index: 0 }), named("list_all", "", { id: "x", index: 0 })],
				}),
			],
			[
				["x", "list_all", ""],
				["x", "list_all", ""],
			],
		],
		[
			"interleaved by index",
			[
				call(named("get_a", "", { id: "x", index: 0 })),
				call(named("get_b", "", { id: "x", index: 1 })),
				call({ index: 0, function: { arguments: '{"to":' } }),
				call({ index: 1, function: { arguments: B } }),
				call({ index: 0, function: { arguments: '"A"}' } }),
			],
			[
				["x", "get_a", A],
				["x", "get_b", B],
			],
		],
		[
			"id and name repeated with every piece",
			['{"to"', ':"A', '"}', ""].map((piece) => call(named("get_a", piece, { id: "x", index: 0 }))),
			[["x", "get_a", A]],
		],
		[
			"a new id with every piece",
			[
				call(named("get_a", '{"to"', { id: "x", index: 0 })),
				call({ id: "y", index: 0, function: { arguments: ':"A"}' } }),
			],
			[["x", "get_a", A]],
		],
		[
			"the id comes late",
			[call(named("get_a", "", { index: 0 })), call({ id: "x", index: 0, function: { arguments: A } })],
			[["x", "get_a", A]],
		],
		[
			"a brace inside a string is not an end",
			[call(named("get_a", '{"to":"}', { id: "x", index: 0 })), call({ index: 0, function: { arguments: '{"}' } })],
			[["x", "get_a", '{"to":"}{"}']],
		],
		["no arguments at all", [call({ index: 0, id: "x", function: { name: "list_all" } })], [["x", "list_all", null]]],
		[
			"arguments as an object",
			[call({ index: 0, id: "x", function: { name: "get_a", arguments: { to: "A" } } })],
			[["x", "get_a", A]],
		],
	])("%s", (_, chunks, expected) => {
		expect(callsOf(chunks as unknown[])).toEqual(expected);
	});
});

describe("how a turn ends", () => {
	const complete = call(named("get_item", '{"sku":"A1"}', { index: 0, id: "x" }));

	test.each([
		"length",
		"max_tokens",
		"max_output_tokens",
		"MAX_TOKENS",
		"content_filter",
		"insufficient_system_resource",
		"function_call",
		"whatever",
	])("%s executes nothing although the call looks complete (T03)", (reason) =>
		expect(executed(assemble([complete, chunk({}, reason)]))).toBe(0),
	);
	test.each(["tool_calls", "stop", "tool_use"])("%s executes", (reason) =>
		expect(executed(assemble([complete, chunk({}, reason)]))).toBe(1),
	);

	test("without a finish the turn is cut off", () => {
		expect(assemble([complete]).decision.finish_reason).toBe("cut_off");
		expect(assemble([complete, chunk({}, "")]).decision.finish_reason).toBe("cut_off");
	});

	test("a later chunk cannot talk a cut turn back into execution", () => {
		expect(executed(assemble([complete, chunk({}, "length"), chunk({}, "tool_calls")]))).toBe(0);
	});

	test("usage in a trailing chunk without choices, oddities count as zero", () => {
		const turn = assemble([
			chunk({ content: "hi" }, "stop"),
			{ choices: [], usage: { prompt_tokens: 5, completion_tokens: -1 } },
			{ usage: null },
		]);
		expect(turn.decision).toEqual({
			content: "hi",
			tool_calls: [],
			finish_reason: "stop",
			usage: { prompt_tokens: 5, completion_tokens: 0 },
		});
	});

	test.each([
		[{ prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 36 }, 64],
		[{ prompt_tokens_details: { cached_tokens: 32 } }, 32],
		[{ prompt_cache_hit_tokens: 0, prompt_tokens_details: { cached_tokens: 0 } }, 0],
		// more hits than tokens, or none that can be counted: never a number that a report would believe
		[{ prompt_cache_hit_tokens: 1_000_000 }, 100],
		[{ prompt_cache_hit_tokens: -5 }, 0],
		[{ prompt_cache_hit_tokens: "64" }, undefined],
		[{ prompt_tokens_details: null }, undefined],
		[{}, undefined],
	])("cache hits as the provider says them: %j", (said, hits) => {
		const usage = { prompt_tokens: 100, completion_tokens: 1, ...said };
		expect(assemble([{ choices: [], usage }]).decision.usage.prompt_cache_hit_tokens).toBe(hits);
	});

	test("reasoning is kept, an empty one too; another choice is not mixed in", () => {
		const other = { choices: [{ index: 1, delta: { content: "other" }, finish_reason: "stop" }] };
		expect(
			assemble([chunk({ reasoning_content: "" }), other, chunk({ content: null }, "stop")]).decision,
		).toMatchObject({
			content: null,
			reasoning_content: "",
		});
		expect("reasoning_content" in assemble([chunk({ content: "a" }, "stop")]).decision).toBe(false);
	});

	test("a runaway model runs nothing and stops being read", () => {
		const assembler = createAssembler(OFFERED);
		for (let n = 0; n <= CALLS_PER_TURN_MAX; n++)
			assembler.push(call(named("list_all", "{}", { index: n, id: `c${n}` })));
		expect(assembler.full).toBe(true);
		assembler.push(chunk({}, "tool_calls"));
		const turn = assembler.finish();
		expect(turn.decision.tool_calls).toHaveLength(CALLS_PER_TURN_MAX);
		expect(executed(turn)).toBe(0);

		const long = createAssembler(OFFERED);
		for (let n = 0; n < 40 && !long.full; n++) long.push(chunk({ content: "x".repeat(100_000) }));
		expect(long.full).toBe(true);
		expect(long.finish().decision.finish_reason).toBe("cut_off");
		expect(long.finish().decision.content?.length).toBeLessThanOrEqual(PLANNER_OUTPUT_MAX_CHARS);
	});
});

test.each([
	[null],
	[1],
	["text"],
	[[]],
	[{}],
	[{ choices: null }],
	[{ choices: [null] }],
	[{ choices: [{ delta: null }] }],
	[chunk({ content: 1, reasoning_content: {}, tool_calls: {} })],
	[
		chunk({
			tool_calls: [null, 1, {}, { function: null }, { function: { name: 1, arguments: 2 }, id: 3, index: "0" }],
		}),
	],
	[{ usage: "many", choices: [{ delta: {}, finish_reason: 7 }] }],
	[JSON.parse('{"__proto__":{"choices":[{"delta":{"content":"x"}}]}}')],
])("chunk %j does not crash and says nothing", (odd) => {
	const { decision } = assemble([odd]);
	expect(decision.content).toBeNull();
	expect(executed({ decision, call_as_text: false })).toBe(0);
});
