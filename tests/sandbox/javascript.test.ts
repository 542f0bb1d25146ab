/** JavaScript programs in the sandbox (S1, S2, S4): what they can do, how they fail, and what they cannot get out of. */
import { describe, expect, it } from "vitest";
import { executeCode } from "#adapters/wasm/execute.ts";
import type { Json } from "#core/json.ts";
import { SANDBOX_RESULT_MAX_BYTES, SOURCE_MAX_BYTES, STDOUT_MAX_BYTES } from "#core/limits.ts";

const run = (source: string, inputs: Json = {}, fuel?: number) =>
	executeCode({ language: "javascript", source, inputs, fuel, wall_ms: 60_000 });

/** The isolate still works: an own fresh program computes. */
async function alive(): Promise<void> {
	expect(await run("1 + 1")).toMatchObject({ ok: true, result: 2 });
}

describe("a javascript program", () => {
	it.each<[string, string, Json]>([
		["the value of its last statement", "const a = 5; a * 2", 10],
		["the variable `result`, by var", "var result = { a: [1] }; 7", { a: [1] }],
		["the variable `result`, by let", "let result = 1; result += 1; 7", 2],
		["the variable `result`, by const", "const result = [null]; 7", [null]],
		["the variable `result`, on globalThis", "globalThis.result = 'x'; 7", "x"],
		["what it returns", "const a = 5;\nif (a > 1) {\n return a;\n}\nreturn 0;", 5],
		["`result` beside an early return that is not taken", "if (false) return 1;\nlet result = 3;", 3],
		["what a promise comes to", "Promise.resolve(4).then((x) => x + 1)", 5],
		["what it awaits", "const x = await Promise.resolve(4);\nreturn x * 2", 8],
		["the result of an async main", "async function main() { return 6 }\nmain()", 6],
		["null when there is none", "const a = 1;", null],
		["null for a function as last value", "globalThis.f = () => 1", null],
		["its inputs", "inputs.n.map((x) => x * x)", [1, 4]],
		["text of every kind", "'ü€😀\\u0000\\n'", "ü€😀\u0000\n"],
	])("gives %s", async (_name, source, result) => {
		expect(await run(source, { n: [1, 2] })).toMatchObject({ ok: true, result });
	});

	it("keeps what it prints, and reports fuel and memory", async () => {
		const outcome = await run('console.log("a", 1, { b: [2] }, null, undefined); console.error(new TypeError("no"))');
		expect(outcome).toMatchObject({ ok: true, result: null, stdout: 'a 1 {"b":[2]} null undefined\nTypeError: no\n' });
		expect(outcome.fuel_used).toBeGreaterThan(1_000);
		expect(outcome.peak_memory_bytes).toBeGreaterThan(1_000_000);
		expect(outcome.peak_memory_bytes).toBeLessThan(16_000_000);
	});

	it("spends the same fuel every time", async () => {
		const source = "let s = 0; for (let i = 0; i < 1000; i++) s += i; s";
		const [first, second] = [await run(source), await run(source)];
		expect(first.fuel_used).toBe(second.fuel_used);
		const more = await run(source.replace("1000", "2000"));
		expect(more.fuel_used).toBeGreaterThan(first.fuel_used * 1.5);
	});

	it("gives large integers as strings and says so", async () => {
		const outcome = await run("const result = { id: 2 ** 60 }");
		expect(outcome).toMatchObject({ ok: true, result: { id: "1152921504606847000" } });
		expect(outcome.ok && outcome.notes).toEqual(["`/id` is an integer beyond 2^53 and is given as a string"]);
	});
});

describe("an error of a javascript program", () => {
	it("names its type, message, line and snippet", async () => {
		const source =
			'const rows = [];\nfunction first(list) {\n  return list[0].name;\n}\nfirst(rows);\nconsole.log("never")';
		expect(await run(source)).toMatchObject({
			ok: false,
			code: "code_error",
			message: "TypeError: cannot read property 'name' of undefined",
			error: {
				type: "TypeError",
				line: 3,
				snippet: "  2 | function first(list) {\n> 3 |   return list[0].name;\n  4 | }",
			},
			stdout: "",
		});
	});
	it("names the line of a syntax error", async () => {
		expect(await run("let a = 1;\nlet b = ;\n")).toMatchObject({
			code: "code_error",
			error: { type: "SyntaxError", line: 2 },
		});
	});
	it("names the program's own line behind a top-level return", async () => {
		const outcome = await run("const a = 1;\n\nnull.x;\nreturn a;");
		expect(outcome).toMatchObject({ code: "code_error", error: { type: "TypeError", line: 3 } });
	});
	it("comes out of a rejected promise as well", async () => {
		const outcome = await run("async function main() {\n throw new RangeError('far');\n}\nmain()");
		expect(outcome).toMatchObject({ code: "code_error", error: { type: "RangeError", message: "far", line: 2 } });
	});
	it("keeps what was printed before", async () => {
		expect(await run("console.log('here'); throw new Error('x')")).toMatchObject({ ok: false, stdout: "here\n" });
	});
	it.each([
		["a string", "throw 'plain'", { type: "string", message: "plain" }],
		["null", "throw null", { type: "object", message: "null" }],
		[
			"an error whose members throw",
			"throw Object.create(Error.prototype, { message: { get() { throw 1 } } })",
			{ type: "Error", message: "" },
		],
		[
			"an error after Object.prototype.toJSON",
			"Object.prototype.toJSON = () => undefined; throw new Error('m')",
			{ message: "m" },
		],
		[
			"an error after Error lost its sense",
			"Object.defineProperty(Error, Symbol.hasInstance, { value() { throw 1 } }); throw new Error('m')",
			{ type: "object" },
		],
	])("of any make is described: %s", async (_name, source, error) => {
		expect(await run(source)).toMatchObject({ ok: false, code: "code_error", error });
		await alive();
	});
	it("takes no module and no import", async () => {
		expect(await run('import fs from "fs"; fs')).toMatchObject({ code: "code_error", error: { type: "SyntaxError" } });
		expect(await run('import("fs")')).toMatchObject({ ok: false, code: "code_error" });
	});
});

describe("a javascript program that goes too far", () => {
	it.each([
		["an endless loop", "for (;;) {}"],
		["an endless loop in try", "for (;;) { try { for (;;) {} } catch {} finally { continue; } }"],
		["a catastrophic pattern", '/^(a+)+$/.test("a".repeat(40) + "b")'],
		["endless promises", "const again = () => Promise.resolve().then(again); again()"],
		// These never come back to the interpreter, so an interrupt handler would never be asked.
		["a built-in without end", "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)"],
		["a built-in over a huge hole", "new Array(4294967295).lastIndexOf(1)"],
		["a getter in its result", "({ get a() { for (;;) {} } })"],
		["a toJSON in its result", "var result = { toJSON() { for (;;) {} } }"],
		[
			"a loop in its error",
			"const e = new Error(); Object.defineProperty(e, 'message', { get() { for (;;) {} } }); throw e",
		],
	])("ends dry: %s", async (_name, source) => {
		const outcome = await run(source, {}, 300_000_000);
		expect(outcome).toMatchObject({ ok: false, code: "instruction_limit", fuel_used: 300_000_000 });
		await alive();
	});

	it.each([
		["arrays", "const all = []; for (;;) all.push(new Array(10000).fill(1.5))"],
		["strings", "let s = 'x'.repeat(1000); const all = []; for (;;) { s += 'y'; all.push(s + s) }"],
		["one buffer", "new ArrayBuffer(1e9)"],
		[
			"caught again and again",
			"const all = []; for (;;) { try { for (;;) all.push(new ArrayBuffer(1 << 20)) } catch { throw new ArrayBuffer(1 << 28) } }",
		],
	])("runs out of memory: %s", async (_name, source) => {
		const outcome = await run(source);
		expect(outcome).toMatchObject({ ok: false, code: "oom" });
		expect(outcome.peak_memory_bytes).toBeLessThanOrEqual(512 * 65_536);
		await alive();
	});

	it("recurses too deeply", async () => {
		expect(await run("function f() { return f() + 1 }\nf()")).toMatchObject({
			code: "code_error",
			error: { type: "InternalError", message: "stack overflow", line: 1 },
		});
		expect(await run(`${"[".repeat(50_000)}${"]".repeat(50_000)}`)).toMatchObject({ ok: false, code: "code_error" });
		await alive();
	});

	it("prints too much", async () => {
		const outcome = await run(
			"for (let i = 0; i < 2000; i++) console.log('x'.repeat(1000)); console.log('y'.repeat(5e6)); 1",
		);
		expect(outcome).toMatchObject({ ok: true, result: 1, stdout_truncated: true });
		expect(outcome.stdout.length).toBe(STDOUT_MAX_BYTES);
	});

	it.each([
		["too much of it", `'x'.repeat(${SANDBOX_RESULT_MAX_BYTES + 1})`, "response_too_large"],
		["more bytes than characters allow for", `'\\n'.repeat(${SANDBOX_RESULT_MAX_BYTES - 10})`, "response_too_large"],
		["nested without end", "let result = []; for (let i = 0; i < 200; i++) result = [result]", "invalid_response"],
		["a circle", "var result = {}; result.result = result", "invalid_response"],
		["a big integer", "var result = 1n", "invalid_response"],
		["a function", "var result = () => 1", "invalid_response"],
		["a promise that never settles", "new Promise(() => {})", "invalid_response"],
	])("has no result that can be handed on: %s", async (_name, source, code) => {
		expect(await run(source)).toMatchObject({ ok: false, code });
		await alive();
	});

	it("has more text than a program may", async () => {
		expect(await run(`//${"x".repeat(SOURCE_MAX_BYTES)}`)).toMatchObject({ ok: false, code: "code_error" });
		expect(await run(`//${"ü".repeat(SOURCE_MAX_BYTES / 2)}`)).toMatchObject({ ok: false, code: "code_error" });
	});
});

describe("out of the javascript sandbox", () => {
	it.each([
		["process", "typeof process", "undefined"],
		["require", "typeof require", "undefined"],
		["fetch", "typeof fetch", "undefined"],
		["timers", "typeof setTimeout", "undefined"],
		["WebAssembly", "typeof WebAssembly", "undefined"],
		[
			"navigator",
			"typeof navigator + typeof caches + typeof crypto + typeof self",
			"undefinedundefinedundefinedundefined",
		],
		["the Function constructor", "typeof Function('return this')().process", "undefined"],
		["the constructor of a host function", "typeof console.log.constructor('return this')().fetch", "undefined"],
		["eval", "eval('typeof globalThis.process')", "undefined"],
		["std and os of the engine's shell", "typeof std + typeof os + typeof scriptArgs", "undefinedundefinedundefined"],
		["the engine's debugger", "typeof bjson + typeof __loadScript + typeof gc", "undefinedundefinedundefined"],
	])("there is no way by %s", async (_name, source, result) => {
		expect(await run(source)).toMatchObject({ ok: true, result });
	});

	it("nothing else is global", async () => {
		const outcome = await run("Object.getOwnPropertyNames(globalThis).filter((n) => /^[a-z_]/.test(n)).sort()");
		expect(outcome.ok && outcome.result).toEqual([
			...[
				"console",
				"decodeURI",
				"decodeURIComponent",
				"encodeURI",
				"encodeURIComponent",
				"escape",
				"eval",
				"globalThis",
			],
			...["inputs", "isFinite", "isNaN", "parseFloat", "parseInt", "undefined", "unescape"],
		]);
	});

	it("breaking out of the function body leads to the guest's own top", async () => {
		const source = "return 1; })(); globalThis.seen = typeof process + typeof fetch; (async () => { return seen;";
		expect(await run(source)).toMatchObject({ ok: true, result: "undefinedundefined" });
	});

	it("two runs share nothing", async () => {
		await run(
			"globalThis.left = 1; Object.prototype.polluted = 1; Array.prototype.map = () => 'evil'; JSON.parse = () => 'evil'; 1",
		);
		expect(await run("[typeof left, typeof {}.polluted, [1].map((x) => x)]")).toMatchObject({
			result: ["undefined", "undefined", [1]],
		});
		expect(({} as Record<string, unknown>).polluted).toBeUndefined();
	});

	it("inputs are a copy, and `__proto__` in them is a member like any other", async () => {
		const inputs = JSON.parse('{"a": {"b": 1}, "__proto__": {"polluted": true}}') as Json;
		const outcome = await run("inputs.a.b = 2; [inputs.a.b, Object.keys(inputs), typeof ({}).polluted]", inputs);
		expect(outcome).toMatchObject({ result: [2, ["a", "__proto__"], "undefined"] });
		expect(inputs).toMatchObject({ a: { b: 1 } });
	});

	it("a result with `__proto__` changes no prototype here", async () => {
		const outcome = await run('JSON.parse(\'{"__proto__": {"polluted": 1}}\')');
		expect(outcome.ok && Object.getPrototypeOf(outcome.result)).toBe(Object.prototype);
		expect(({} as Record<string, unknown>).polluted).toBeUndefined();
	});
});
