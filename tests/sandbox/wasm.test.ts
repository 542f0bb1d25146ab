/** WASM tools (S1, S2): the host of ABI harness/1, the built-in tools, and a module that tries every limit. */
import { describe, expect, it } from "vitest";
import { executeWasm } from "#adapters/wasm/execute.ts";
import { runModule } from "#adapters/wasm/run-module.ts";
import type { Json } from "#core/json.ts";
import { STDOUT_MAX_BYTES, WASM_MEMORY_MAX_PAGES } from "#core/limits.ts";
import spin from "#wasm/built/spin.wasm";

const call = (module: string, input: Json) => executeWasm({ module, input, wall_ms: 60_000 });

describe("built-in wasm tools", () => {
	it("echo gives its input back", async () => {
		const input = { a: [1, "ü😀\u0000"], __proto__x: null };
		expect(await call("echo", input)).toMatchObject({ ok: true, result: input });
	});

	it.each([
		["", { characters: 0, words: 0, lines: 0 }],
		["one", { characters: 3, words: 1, lines: 1 }],
		["two words\n", { characters: 10, words: 2, lines: 1 }],
		["a\nb\r\nc", { characters: 6, words: 3, lines: 3 }],
		["\n\n", { characters: 2, words: 0, lines: 2 }],
		['say "hi" \\ \t now', { characters: 16, words: 4, lines: 1 }],
		["ü€😀 é", { characters: 5, words: 2, lines: 1 }],
		["a\u3000b\u00a0c\u2003d", { characters: 7, words: 4, lines: 1 }],
		["\u0001\ud83d\\ud83d", { characters: 8, words: 1, lines: 1 }],
	])("text_stats counts %j", async (text, counts) => {
		const outcome = await call("text_stats", { other: { text: 'no ["{' }, text });
		expect(outcome).toMatchObject({ ok: true, result: counts, stdout: `counted ${counts.characters} characters\n` });
		expect(outcome.fuel_used).toBeGreaterThan(100);
	});

	it.each<[Json]>([[{}], [{ text: 1 }], [[]], ["text"], [{ a: { text: "x" } }], [{ a: "text" }]])(
		"text_stats wants a text: %j",
		async (input) =>
			expect(await call("text_stats", input)).toMatchObject({ ok: true, result: { error: "`text` must be a string" } }),
	);

	it.each(["nothing", "constructor", "__proto__", "spin", "../built/echo"])(
		"there is no module `%s`",
		async (module) => {
			expect(await call(module, {})).toMatchObject({ ok: false, code: "not_configured", fuel_used: 0 });
		},
	);
});

describe("a wasm tool that goes too far", () => {
	const wish = (input: string, fuel = 10_000_000) => runModule(spin, input, fuel);

	it.each([["spin"], ["fill"], ["shout"]])("ends dry: %s", (input) => {
		const outcome = wish(input);
		expect(outcome).toMatchObject({ ok: false, code: "instruction_limit", fuel_used: 10_000_000 });
		expect(outcome.stdout.length).toBeLessThanOrEqual(STDOUT_MAX_BYTES);
	});
	it("recurses too deeply", () => {
		expect(wish("recurse", 1e9)).toMatchObject({ ok: false, code: "code_error", error: { type: "StackOverflow" } });
	});
	it("grows up to the cap and no further", () => {
		const outcome = wish("grow");
		expect(outcome).toMatchObject({ ok: true, peak_memory_bytes: WASM_MEMORY_MAX_PAGES * 65_536 });
		expect(outcome.ok && outcome.result).toEqual({ pages: WASM_MEMORY_MAX_PAGES - 1 });
	});
	it("uses up its memory", () => {
		const outcome = wish("exhaust", 1e9);
		expect(outcome).toMatchObject({ ok: false, code: "oom" });
		expect(outcome.peak_memory_bytes).toBeGreaterThan((WASM_MEMORY_MAX_PAGES - 32) * 65_536);
	});
	it("traps", () => expect(wish("trap")).toMatchObject({ ok: false, code: "code_error", error: { type: "Trap" } }));
	it.each([
		["outside", "invalid_response"],
		["log outside", "invalid_response"],
		["no json", "invalid_response"],
		["no utf8", "invalid_response"],
		["deep", "invalid_response"],
		["huge", "response_too_large"],
	])("answers what cannot be handed on: %s", (input, code) => {
		expect(wish(input)).toMatchObject({ ok: false, code });
	});
	it("answers a large integer, which comes as a string", () => {
		const outcome = wish("large integer");
		expect(outcome).toMatchObject({ ok: true, result: { id: "12345678901234567890" } });
	});
	it("keeps no state between two calls", () => {
		expect(wish("count")).toMatchObject({ ok: true, result: { calls: 1 } });
		expect(wish("count")).toMatchObject({ ok: true, result: { calls: 1 } });
	});
});
