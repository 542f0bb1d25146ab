/** Python programs in the sandbox (S1, S2, S4): what they can do, how they fail, and what they cannot get out of. */
import { describe, expect, it } from "vitest";
import { executeCode } from "#adapters/wasm/execute.ts";
import type { Json } from "#core/json.ts";
import { PYTHON_FUEL_DEFAULT, SANDBOX_RESULT_MAX_BYTES, STDOUT_MAX_BYTES } from "#core/limits.ts";

const run = (source: string, inputs: Json = {}, fuel?: number) =>
	executeCode({ language: "python", source, inputs, fuel, wall_ms: 60_000 });

/** The isolate still works: an own fresh program computes. */
async function alive(): Promise<void> {
	expect(await run("result = 1 + 1")).toMatchObject({ ok: true, result: 2 });
}

describe("a python program", () => {
	it.each<[string, string, Json]>([
		["its variable `result`", "result = {'a': [1, 2.5, None, True, 'x']}", { a: [1, 2.5, null, true, "x"] }],
		["null when there is none", "x = 1", null],
		["a tuple as a list", "result = (1, (2,))", [1, [2]]],
		["what it makes of its inputs", "result = sum(x['v'] for x in inputs['rows'])", 5],
		[
			"what libraries make",
			"import json, re, math\nresult = [json.loads('[1]'), re.match('a+', 'aab').group(0), math.sqrt(9)]",
			[[1], "aa", 3],
		],
		["text of every kind", "result = inputs['t'] + '\\n\\x00\"\\\\'", 'ü€😀"\\\n\u2028\n\u0000"\\'],
		["its result after an orderly exit", "import sys\nresult = 4\nsys.exit()", 4],
	])("gives %s", async (_name, source, result) => {
		const inputs = { rows: [{ v: 2 }, { v: 3 }], t: 'ü€😀"\\\n\u2028' };
		expect(await run(source, inputs)).toMatchObject({ ok: true, result });
	});

	it("keeps what it prints, and reports fuel and memory", async () => {
		const outcome = await run("print('a', 1)\nprint('ü', end='')\nresult = 1");
		expect(outcome).toMatchObject({ ok: true, result: 1, stdout: "a 1\nü" });
		expect(outcome.fuel_used).toBeGreaterThan(10_000);
		expect(outcome.peak_memory_bytes).toBeGreaterThan(500_000);
		expect(outcome.peak_memory_bytes).toBeLessThan(2_000_000);
	});

	it("gives integers of any size, exactly", async () => {
		const outcome = await run("result = {'id': 2**70}");
		expect(outcome).toMatchObject({ ok: true, result: { id: "1180591620717411303424" } });
		expect(outcome.ok && outcome.notes).toEqual(["`/id` is an integer beyond 2^53 and is given as a string"]);
	});

	it("hands on a result of some hundred kilobytes within the fuel it has", async () => {
		const outcome = await run("result = [{'id': i, 'name': 'row'} for i in range(10000)]");
		expect(outcome.ok && (outcome.result as Json[]).length).toBe(10_000);
	});

	it("sleeps without waiting: its clock moves when it is read", async () => {
		const outcome = await run("import time\na = time.time()\ntime.sleep(20)\nresult = round(time.time() - a)");
		expect(outcome).toMatchObject({ ok: true, result: 20 });
	});
});

describe("an error of a python program", () => {
	it("names its type, message, line and snippet", async () => {
		const source = "rows = []\ndef first(items):\n    return items[0]['name']\n\nfirst(rows)\nprint('never')";
		expect(await run(source)).toMatchObject({
			ok: false,
			code: "code_error",
			message: "IndexError: list index out of range",
			error: {
				type: "IndexError",
				message: "list index out of range",
				line: 3,
				snippet: "  2 | def first(items):\n> 3 |     return items[0]['name']\n  4 |",
			},
			stdout: "",
		});
	});
	it.each([
		["a syntax error", "x = 1\nfor in y:\n  pass", { type: "SyntaxError", line: 2 }],
		["an indentation error", "x = 1\n  y = 2", { type: "IndentationError", line: 2 }],
		[
			"an exception class of its own",
			"class Odd(Exception): pass\n\nraise Odd('so')",
			{ type: "Odd", message: "so", line: 3 },
		],
		[
			"a message that looks like a traceback",
			"raise ValueError('a\\n  File \"<stdin>\", line 99\\nb')",
			{ line: 1, message: 'a\n  File "<stdin>", line 99\nb' },
		],
		["no message at all", "\nassert False", { type: "AssertionError", message: "", line: 2 }],
		["input()", "x = 1\nname = input('who? ')", { type: "OSError", message: "there is no standard input", line: 2 }],
		["sys.stdin", "import sys\nsys.stdin.readline()", { type: "OSError", message: "there is no standard input" }],
		["an exit that says no", "import sys\nsys.exit(3)", { type: "SystemExit", message: "3", line: 2 }],
		[
			"recursion without end",
			"def f():\n    return f()\nf()",
			{ type: "RuntimeError", message: "maximum recursion depth exceeded", line: 2 },
		],
		["a pattern that recurses", "import re\nre.match('(a*)*b', 'a' * 30)", { type: "RuntimeError" }],
	])("is described: %s", async (_name, source, error) => {
		expect(await run(source)).toMatchObject({ ok: false, code: "code_error", error });
		await alive();
	});
	it("keeps what was printed before", async () => {
		expect(await run("print('here')\n1/0")).toMatchObject({
			ok: false,
			stdout: "here\n",
			error: { type: "ZeroDivisionError", line: 2 },
		});
	});
});

describe("a python program that goes too far", () => {
	it("has the documented fuel when none is named", async () => {
		expect(await run("while True: pass")).toMatchObject({
			code: "instruction_limit",
			fuel_used: Number(PYTHON_FUEL_DEFAULT),
		});
	});

	it.each([
		["an endless loop", "while True: pass"],
		["an endless loop that catches", "while True:\n  try:\n    while True: pass\n  except: pass"],
		["a catastrophic pattern", "import re\nre.match('(a|aa)+$', 'a' * 60 + 'b')"],
		["a huge number", "x = 2 ** 100000\nstr(x)"],
		["printing for ever", "while True: print('x' * 1000)"],
		["an endless iterator", "def ones():\n  while True: yield 1\nsum(ones())"],
	])("ends dry: %s", async (_name, source) => {
		expect(await run(source, {}, 200_000_000)).toMatchObject({
			ok: false,
			code: "instruction_limit",
			fuel_used: 200_000_000,
		});
		await alive();
	});

	it.each([
		["one buffer", "x = bytearray(10 ** 9)"],
		["doubling", "a = [1]\nwhile True: a = a + a"],
		["many strings", "a = []\nwhile True: a.append('x' * 100000)"],
	])("runs out of memory: %s", async (_name, source) => {
		const outcome = await run(source, {}, 10_000_000_000);
		expect(outcome).toMatchObject({ ok: false, code: "oom" });
		expect(outcome.peak_memory_bytes).toBeLessThanOrEqual(512 * 65_536);
		await alive();
	});

	it("prints too much", async () => {
		const outcome = await run("for i in range(100): print('x' * 1000)\nresult = 1");
		expect(outcome).toMatchObject({ ok: true, result: 1, stdout_truncated: true });
		expect(outcome.stdout.length).toBe(STDOUT_MAX_BYTES);
	});

	it.each([
		["too much of it", `result = 'x' * ${SANDBOX_RESULT_MAX_BYTES + 1}`, "response_too_large"],
		["nested without end", "result = []\nfor i in range(80): result = [result]", "invalid_response"],
		["a circle", "result = []\nresult.append(result)", "invalid_response"],
		["a set", "result = {1, 2}", "invalid_response"],
		["a function", "def result(): pass", "invalid_response"],
		["not a number", "result = float('nan')", "invalid_response"],
	])("has no result that can be handed on: %s", async (_name, source, code) => {
		expect(await run(source, {}, 10_000_000_000)).toMatchObject({ ok: false, code });
		await alive();
	});
});

describe("out of the python sandbox", () => {
	it.each([
		["the bridge to JavaScript", "import js\njs.process", { type: "AttributeError" }],
		["the global object", "import js\njs.globalThis", { type: "AttributeError" }],
		["fetch", "__import__('js').fetch('https://example.com')", { type: "AttributeError" }],
		["the Function constructor", "import js\njs.Function('return 1')()", { type: "AttributeError" }],
		["a proxy", "import jsffi\njsffi.create_proxy(print)", { type: "RuntimeError" }],
		["a converted object", "import jsffi\njsffi.to_js({'a': 1})", { type: "RuntimeError" }],
		["the proxy class", "import jsffi\njsffi.JsProxy(1)", {}],
		["a file", "open('/etc/passwd')", { type: "OSError" }],
		["a file to write", "open('/tmp/x', 'w')", { type: "OSError" }],
		["the directory", "import os\nos.listdir('/')", { type: "OSError" }],
		["the working directory", "import os\nos.getcwd()", { type: "OSError" }],
		["a mount", "import os\nos.mount(os.VfsPosix('/'), '/x')\nopen('/x/etc/passwd')", {}],
		["a module from a file", "import sys\nsys.path.append('/')\nimport etc", { type: "ImportError" }],
		["ctypes", "import ctypes", { type: "ImportError" }],
		["a socket", "import socket", { type: "ImportError" }],
		["machine code", "@micropython.native\ndef f(): pass", { type: "SyntaxError" }],
		["an environment", "import os\nos.environ", { type: "AttributeError" }],
		["an event loop of the host", "import asyncio\nasyncio.create_task(1)", {}],
	])("there is no way by %s", async (_name, source, error) => {
		expect(await run(source)).toMatchObject({ ok: false, code: "code_error", error });
		await alive();
	});

	it("eval and exec stay inside", async () => {
		expect(await run("exec('x = 20')\nresult = eval('x + 1')")).toMatchObject({ ok: true, result: 21 });
	});

	it("writing over all of its own memory harms nobody else", async () => {
		const source =
			"import uctypes\nfor a in range(1024, 600000, 4096):\n  uctypes.bytearray_at(a, 64)[:] = b'\\xff' * 64\nresult = 1";
		const outcome = await run(source, {}, 500_000_000);
		expect(["code_error", "instruction_limit", "oom", "invalid_response"]).toContain(outcome.ok ? "ok" : outcome.code);
		await alive();
	});

	it("two runs share nothing", async () => {
		await run(
			"import sys, json\nleft = 1\njson.loads = lambda x: 'evil'\nsys.modules['math'] = 'evil'\nimport builtins\nbuiltins.len = lambda x: 99",
		);
		const source = "import json, math\nresult = ['left' in globals(), json.loads('[1]'), math.floor(1.5), len('ab')]";
		expect(await run(source)).toMatchObject({ ok: true, result: [false, [1], 1, 2] });
	});

	it("inputs are text to the program and never code", async () => {
		const nasty = '"); import js; x = ("\\"\'\'\'"""\\x00\\N{DASH}{}%s\u0000\ud800';
		const outcome = await run("result = inputs['t']", { t: nasty, [nasty]: 1 });
		expect(outcome).toMatchObject({ ok: true, result: nasty.toWellFormed() });
	});
});
