import { describe, expect, it } from "vitest";
import { type AdmitOptions, admitModule, FUEL_EXPORT } from "./admit-module.ts";
import { admitTool } from "./admit-tool.ts";
import { ByteWriter } from "./byte-writer.ts";
import { PREAMBLE } from "./sections.ts";

const I32 = 0x7f;
const I64 = 0x7e;
const END = 0x0b;
const validate = (bytes: Uint8Array) => WebAssembly.validate(bytes as BufferSource);
/** The types know workerd, where nothing compiles bytes; these tests run in Node, where it does. */
const Compiled = WebAssembly.Module as unknown as new (bytes: Uint8Array) => WebAssembly.Module;

type Parts = {
	types?: [params: number[], results: number[]][];
	/** Raw entries. */
	imports?: number[][];
	functions?: number[];
	tables?: number[][];
	memory?: number[];
	globals?: number[][];
	exports?: [name: string, kind: number, index: number][];
	start?: number;
	elements?: number[][];
	/** Bodies: local groups and code, without size. */
	code?: number[][];
	extra?: [id: number, body: number[]][];
};

/** A module from its parts, byte by byte: the attacker's own assembler. */
function assemble(parts: Parts): Uint8Array {
	const w = new ByteWriter().raw(PREAMBLE);
	const section = (id: number, entries: (number[] | Uint8Array)[] | undefined): void => {
		if (entries === undefined) return;
		const body = new ByteWriter().u32(entries.length);
		for (const entry of entries) body.raw(entry);
		w.u8(id).sized(body.done());
	};
	section(
		1,
		parts.types?.map(([p, r]) => [0x60, p.length, ...p, r.length, ...r]),
	);
	section(2, parts.imports);
	section(
		3,
		parts.functions?.map((type) => [type]),
	);
	section(4, parts.tables);
	section(5, parts.memory === undefined ? undefined : [parts.memory]);
	section(6, parts.globals);
	section(
		7,
		parts.exports?.map(([name, kind, index]) => new ByteWriter().ascii(name).u8(kind).u32(index).done()),
	);
	if (parts.start !== undefined) w.u8(8).sized(new Uint8Array([parts.start]));
	section(9, parts.elements);
	section(
		10,
		parts.code?.map((body) => new ByteWriter().sized(new Uint8Array(body)).done()),
	);
	for (const [id, body] of parts.extra ?? []) w.u8(id).sized(new Uint8Array(body));
	return w.done();
}

/** One function `f` of the given type and code, with one page of memory. */
function single(code: number[], params: number[] = [], results: number[] = [], more: Parts = {}): Uint8Array {
	return assemble({
		types: [[params, results]],
		functions: [0],
		memory: [1, 1, 100],
		exports: [
			["f", 0, 0],
			["memory", 2, 0],
		],
		code: [[0, ...code, END]],
		...more,
	});
}

const OPTIONS: AdmitOptions = { memory_max_pages: 16, validate };

function admitted(bytes: Uint8Array, options = OPTIONS) {
	const admission = admitModule(bytes, options);
	if (!admission.ok) throw new Error(`${admission.code}: ${admission.message}`);
	expect(validate(admission.bytes)).toBe(true);
	return admission;
}

type Exports = { f: (...args: unknown[]) => unknown; memory: WebAssembly.Memory; [FUEL_EXPORT]: WebAssembly.Global };

function instantiate(bytes: Uint8Array, fuel = 1_000_000n): Exports {
	const exports = new WebAssembly.Instance(new Compiled(admitted(bytes).bytes)).exports as never as Exports;
	exports[FUEL_EXPORT].value = fuel;
	return exports;
}

function refusal(bytes: Uint8Array, options = OPTIONS): string {
	const admission = admitModule(bytes, options);
	return admission.ok ? "admitted" : admission.code;
}

/** Runs `f` until it traps and says whether the fuel is gone. */
function trap(exports: Exports, ...args: unknown[]): { error: string; dry: boolean } {
	try {
		exports.f(...args);
	} catch (error) {
		return { error: (error as Error).constructor.name, dry: (exports[FUEL_EXPORT].value as bigint) < 0n };
	}
	throw new Error("it came back");
}

describe("a metered module", () => {
	it("computes what it computed before, and less fuel is left", () => {
		const exports = instantiate(single([0x20, 0, 0x20, 1, 0x6a], [I32, I32], [I32]));
		expect(exports.f(40, 2)).toBe(42);
		expect(exports[FUEL_EXPORT].value).toBe(1_000_000n - 4n);
	});

	it("starts with no fuel at all", () => {
		const metered = admitted(single([]));
		const exports = new WebAssembly.Instance(new Compiled(metered.bytes)).exports as never as Exports;
		expect(trap(exports).dry).toBe(true);
	});

	it("gives the same bytes every time", () => {
		const module = single([0x03, 0x40, 0x0c, 0, END]);
		expect(admitted(module).bytes).toEqual(admitted(module).bytes);
	});

	it("charges each round of a loop, and only the rounds", () => {
		// do { n -= 1 } while (n)
		const loop = [0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, END];
		const spent = (n: number) => {
			const exports = instantiate(single(loop, [I32]));
			exports.f(n);
			return 1_000_000n - (exports[FUEL_EXPORT].value as bigint);
		};
		const [ten, twenty] = [spent(10), spent(20)];
		expect(twenty - ten).toBe(10n * ((ten - 2n) / 10n));
	});

	it("charges the longest way through a branch", () => {
		const cheap = [0x01];
		const dear = Array.from({ length: 50 }, () => 0x01);
		const exports = instantiate(single([0x20, 0, 0x04, 0x40, ...cheap, 0x05, ...dear, END], [I32]));
		exports.f(1);
		expect(1_000_000n - (exports[FUEL_EXPORT].value as bigint)).toBeGreaterThanOrEqual(52n);
	});
});

describe("programs that would not end", () => {
	it.each([
		["an empty loop", [0x03, 0x40, 0x0c, 0, END], []],
		["a loop behind br_if", [0x03, 0x40, 0x41, 1, 0x0d, 0, END], []],
		["a loop through br_table", [0x03, 0x40, 0x41, 0, 0x0e, 1, 0, 0, END], []],
		["a loop inside an arm", [0x41, 1, 0x04, 0x40, 0x03, 0x40, 0x0c, 0, END, END], []],
		["an outer loop entered from an inner one", [0x03, 0x40, 0x03, 0x40, 0x0c, 1, END, END], []],
		["a tail call to itself", [0x12, 0], []],
	])("%s traps dry", (_name, code) => {
		expect(trap(instantiate(single(code)))).toEqual({ error: "RuntimeError", dry: true });
	});

	it("stays dry: a caught trap buys no second run", () => {
		const exports = instantiate(single([0x03, 0x40, 0x0c, 0, END]));
		trap(exports);
		expect(trap(exports).dry).toBe(true);
	});

	it("recursion ends at the stack limit and leaves the host alive", () => {
		expect(trap(instantiate(single([0x10, 0]), 1n << 50n))).toEqual({ error: "RangeError", dry: false });
		expect(trap(instantiate(single([0x10, 0]), 1_000n)).dry).toBe(true);
	});

	it.each([
		["memory.fill", [0x41, 0, 0x41, 0, 0x41, 0x80, 0x80, 4, 0xfc, 11, 0]],
		["memory.copy", [0x41, 0, 0x41, 0, 0x41, 0x80, 0x80, 4, 0xfc, 10, 0, 0]],
	])("%s pays for its length", (_name, code) => {
		const exports = instantiate(single(code));
		exports.f();
		expect(1_000_000n - (exports[FUEL_EXPORT].value as bigint)).toBeGreaterThan(65_536n / 16n);
		expect(trap(instantiate(single(code), 100n)).dry).toBe(true);
	});

	it("table.fill and table.grow pay for each entry", () => {
		const table: Parts = { tables: [[0x70, 0, 1]] };
		const grow = single([0xd0, 0x70, 0x41, 0x90, 0xce, 0, 0xfc, 15, 0, 0x1a], [], [], table);
		expect(trap(instantiate(grow, 9_000n)).dry).toBe(true);
		const exports = instantiate(grow, 20_000n);
		exports.f();
		expect(exports[FUEL_EXPORT].value as bigint).toBeLessThan(10_000n);
		const fill = single([0x41, 0, 0xd0, 0x70, 0x41, 0xff, 0xff, 0, 0xfc, 17, 0], [], [], table);
		expect(trap(instantiate(fill, 9_000n)).dry).toBe(true);
	});

	it("pays for the exact number of locals that it clears", () => {
		const call = [0x03, 0x40, 0x10, 1, 0x0c, 0, END];
		const module = single([], [], [], {
			functions: [0, 0],
			code: [
				[0, ...call, END],
				[1, 0xa0, 0x1f, I64, END],
			],
		});
		const exports = instantiate(module, 100_000n);
		expect(trap(exports).dry).toBe(true);
	});
});

describe("memory", () => {
	it("has the cap written into the binary", () => {
		const grow = single([0x20, 0, 0x40, 0], [I32], [I32]);
		const exports = instantiate(grow);
		expect(exports.f(15)).toBe(1);
		expect(exports.f(1)).toBe(-1);
		expect(() => exports.memory.grow(1)).toThrow(RangeError);
		expect(admitted(grow).facts.memory).toEqual({ min: 1, max: 16 });
	});
	it("may not start above the cap", () => {
		expect(refusal(single([], [], [], { memory: [0, 17] }))).toBe("limit");
	});
	it("is neither shared, 64-bit nor twofold", () => {
		expect(refusal(single([], [], [], { memory: [3, 1, 2] }))).toBe("unsupported");
		expect(refusal(single([], [], [], { memory: [4, 1] }))).toBe("unsupported");
		const w = single([0x41, 0, 0x28, 0x42, 0, 0, 0x1a]);
		expect(refusal(w)).toBe("unsupported");
	});
});

describe("forgeries", () => {
	// The fuel global will be number 0 and the helpers functions 1 and 2: unknown to the module, so each is a lie.
	it("writing the fuel counter by its future index", () => {
		expect(refusal(single([0x42, 0x3f, 0x24, 0]), { memory_max_pages: 16 })).toBe("malformed");
		expect(refusal(single([0x23, 0, 0x1a]), { memory_max_pages: 16 })).toBe("malformed");
	});
	it("calling the helpers by their future index", () => {
		for (const index of [1, 2]) {
			expect(refusal(single([0x41, 0, 0x10, index, 0x1a]), { memory_max_pages: 16 })).toBe("malformed");
			expect(refusal(single([0x41, 0, 0x12, index]), { memory_max_pages: 16 })).toBe("malformed");
			expect(refusal(single([0xd2, index, 0x1a]), { memory_max_pages: 16 })).toBe("malformed");
		}
	});
	it("exporting the counter, or something by its name", () => {
		expect(refusal(single([], [], [], { exports: [["g", 3, 0]] }), { memory_max_pages: 16 })).toBe("malformed");
		expect(refusal(single([], [], [], { exports: [[FUEL_EXPORT, 0, 0]] }))).toBe("export");
	});
	it("a global section with one more global than it counts", () => {
		const hidden = [I64, 1, 0x42, 0x3f, END];
		const module = single([], [], [], { globals: [[...hidden, ...hidden]] });
		const admission = admitModule(module, { memory_max_pages: 16 });
		expect(admission.ok && validate(admission.bytes)).toBe(false);
		expect(refusal(module)).toBe("invalid");
	});
	it("types that the helper type would complete", () => {
		expect(refusal(single([0x02, 1, END]), { memory_max_pages: 16 })).toBe("malformed");
		expect(refusal(single([0x41, 0, 0x41, 0, 0x11, 1, 0, 0x1a]), { memory_max_pages: 16 })).toBe("malformed");
	});
});

describe("refused features", () => {
	it.each([
		["try", [0x06, 0x40, END]],
		["throw", [0x08, 0]],
		["throw_ref", [0x0a]],
		["try_table", [0x1f, 0x40, 0, END]],
		["delegate", [0x18, 0]],
		["catch_all", [0x19]],
		["call_ref", [0x14, 0]],
		["an atomic", [0xfe, 0x03, 0]],
		["a GC instruction", [0xfb, 0, 0]],
		["relaxed SIMD", [0xfd, 0x80, 0x02]],
		["ref.as_non_null", [0xd4]],
		["an unknown bulk opcode", [0xfc, 18]],
		["an exception heap type", [0xd0, 0x69, 0x1a]],
	])("%s", (_name, code) => {
		expect(refusal(single(code))).toBe("unsupported");
	});
	it("a tag section", () => {
		expect(refusal(assemble({ extra: [[13, [1, 0, 0]]] }))).toBe("unsupported");
	});
	it("a start function", () => {
		expect(refusal(single([], [], [], { start: 0 }))).toBe("start");
	});
	it("but a trusted engine's start function becomes an export", () => {
		const module = single([0x41, 7, 0x24, 0], [], [], { start: 0, globals: [[I32, 1, 0x41, 0, END]] });
		const metered = admitted(module, { ...OPTIONS, start_export: "begin" });
		const exports = new WebAssembly.Instance(new Compiled(metered.bytes)).exports as never as Exports & {
			begin(): void;
		};
		expect(() => exports.begin()).toThrow(WebAssembly.RuntimeError);
		exports[FUEL_EXPORT].value = 100n;
		exports.begin();
		expect(exports[FUEL_EXPORT].value).toBe(97n);
	});
	it("a component", () => {
		expect(refusal(new Uint8Array([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0]))).toBe("not_wasm");
		expect(refusal(new Uint8Array())).toBe("not_wasm");
		expect(refusal(new TextEncoder().encode("#!/bin/sh\n"))).toBe("not_wasm");
	});
});

describe("imports", () => {
	const log = [7, ...new TextEncoder().encode("harness"), 3, ...new TextEncoder().encode("log")];
	const withImport = (entry: number[]) =>
		assemble({ types: [[[I32, I32], []]], imports: [entry], memory: [0, 1], exports: [["memory", 2, 0]] });
	it("are refused unless they are listed", () => {
		expect(refusal(withImport([...log, 0, 0]))).toBe("import");
		expect(admitModule(withImport([...log, 0, 0]), OPTIONS)).toMatchObject({
			message: "import of func `harness.log` is not allowed",
		});
	});
	it("are refused when the name is allowed and the kind is not", () => {
		expect(admitTool(withImport([...log, 3, I32, 1]), validate)).toMatchObject({ ok: false, code: "import" });
	});
	it("of exceptions are refused", () => {
		expect(refusal(withImport([...log, 4, 0, 0]), { ...OPTIONS, allowImport: () => true })).toBe("unsupported");
	});
	it("have a memory capped like an own one", () => {
		const module = assemble({ imports: [[...log, 2, 0, 1]] });
		expect(admitted(module, { ...OPTIONS, allowImport: () => true }).facts.memory).toEqual({ min: 1, max: 16 });
		const large = assemble({ imports: [[...log, 2, 0, 17]] });
		expect(refusal(large, { ...OPTIONS, allowImport: () => true })).toBe("limit");
	});
});

describe("broken bytes", () => {
	const whole = single([0x41, 1, 0x04, 0x40, 0x01, 0x05, 0x01, END, 0x03, 0x40, 0x0c, 0, END]);
	it("are refused wherever the module is cut, but for cuts that leave a smaller whole module", () => {
		for (let length = 0; length < whole.length; length++) {
			const cut = whole.slice(0, length);
			expect(refusal(cut) === "admitted").toBe(validate(cut));
		}
		expect(refusal(whole.slice(0, -1))).toBe("malformed");
	});
	it("never throw and never come out invalid, whichever byte is changed", () => {
		for (let at = 0; at < whole.length; at++)
			for (const flip of [1, 2, 0x40, 0x80, 0xff]) {
				const bytes = whole.slice();
				bytes[at] = (bytes[at] ?? 0) ^ flip;
				const admission = admitModule(bytes, OPTIONS);
				if (admission.ok) expect(validate(admission.bytes)).toBe(true);
			}
	});
	it("with counts far beyond their bytes end at once", () => {
		const many = [0xff, 0xff, 0xff, 0xff, 0x0f];
		expect(refusal(single([0x41, 0, 0x0e, ...many, 0]))).toBe("malformed");
		expect(refusal(single([], [], [], { code: [[1, ...many, I32, END]] }))).toBe("limit");
		expect(refusal(assemble({ extra: [[1, many]] }))).toBe("malformed");
		expect(refusal(assemble({ extra: [[7, many]] }))).toBe("malformed");
		expect(refusal(single([0x41, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x1a]))).toBe("malformed");
	});
	it("that branch out of the function or leave an `else` alone are refused", () => {
		expect(refusal(single([0x0c, 5]), { memory_max_pages: 16 })).toBe("malformed");
		expect(refusal(single([0x05]), { memory_max_pages: 16 })).toBe("malformed");
	});
	it("of wrong type are refused by the engine's validation", () => {
		expect(refusal(single([0x6a]))).toBe("invalid");
	});
});

describe("a tool of ABI harness/1", () => {
	const tool = (over: Parts = {}) =>
		assemble({
			types: [
				[[I32], [I32]],
				[[I32, I32], [I64]],
			],
			functions: [0, 1],
			memory: [0, 1],
			exports: [
				["memory", 2, 0],
				["alloc", 0, 0],
				["run", 0, 1],
			],
			code: [
				[0, 0x41, 0, END],
				[0, 0x42, 0, END],
			],
			...over,
		});
	it("is admitted", () => expect(admitTool(tool(), validate)).toMatchObject({ ok: true }));
	it("needs each export in its own shape", () => {
		const code = (exports: Parts["exports"]) => admitTool(tool({ exports: exports ?? [] }), validate);
		expect(code([["memory", 2, 0]])).toMatchObject({ ok: false, code: "export" });
		expect(code([["alloc", 0, 0]])).toMatchObject({ ok: false, message: "the memory `memory` is not exported" });
		const swapped = code([
			["memory", 2, 0],
			["alloc", 0, 1],
			["run", 0, 0],
		]);
		expect(swapped).toMatchObject({ ok: false, code: "export" });
	});
});
