/**
 * One MicroPython instance for one program, with glue of our own. The package's glue is not used: it hands Python the
 * host's `globalThis` (`import js; js.Function("…")()`), a way out of the sandbox. Here no function of the bridge leads
 * anywhere, there are no files, and standard input refuses.
 *
 * Calls of `setjmp` and `longjmp`, which Python's exceptions need, are JavaScript frames (`invoke_*`), as emscripten does it.
 */
import { FuelGauge, SETUP_FUEL } from "./fuel-gauge.ts";

/** `exec` runs one text as a module body and gives MicroPython's report when it raised: `Type\x04traceback`. */
export type MicroPython = {
	readonly exec: (source: string) => string | null;
	readonly gauge: FuelGauge;
	readonly memory: WebAssembly.Memory;
};

/** What the instance may use of the host. */
export type PythonHost = {
	/** Bytes of standard output and error; a view that is valid during the call only. */
	readonly write: (bytes: Uint8Array) => void;
	/** For `time.time()`, ms since the epoch. */
	readonly now: () => number;
	/** 32 random bits: seeds `random`. */
	readonly random: () => number;
};

/** Thrown when a program reads standard input by a way that the prelude has not closed. */
export class NoInput extends Error {}

/** A call of the host that no honest interpreter makes. */
class Forged extends Error {
	constructor() {
		super("the interpreter's memory is corrupt");
	}
}

/** Words of the interpreter's own stack, bytes of its first heap; the heap grows by itself. */
const PYSTACK_WORDS = 2_048;
const HEAP_BYTES = 524_288;
const ENOSYS = -52;
const ESPIPE = 70;
/** MicroPython writes one or two at a time. */
const VECTORS_MAX = 16;

type Exports = WebAssembly.Exports & {
	memory: WebAssembly.Memory;
	__indirect_function_table: WebAssembly.Table;
	malloc(size: number): number;
	setThrew(threw: number, value: number): void;
	emscripten_stack_init(): void;
	emscripten_stack_get_current(): number;
	_emscripten_stack_restore(pointer: number): void;
	__wasm_call_ctors(): void;
	mp_js_init(pystack: number, heap: number): void;
	proxy_c_init(): void;
	mp_js_do_exec(source: number, length: number, out: number): void;
};

type HostFunction = (...args: number[]) => number | undefined;

/** Synchronous. Throws when the module is not the one that was prepared for it. */
export function startMicroPython(module: WebAssembly.Module, host: PythonHost): MicroPython {
	const python: { exports?: Exports } = {};
	const exports = (): Exports => python.exports as Exports;
	const functions = { ...emscriptenFunctions(exports), ...hostFunctions(exports, host) };
	const imports: Record<string, Record<string, HostFunction>> = {};
	for (const { module: space, name } of WebAssembly.Module.imports(module)) {
		imports[space] ??= {};
		imports[space][name] = Object.hasOwn(functions, name) ? (functions[name] as HostFunction) : refusal(name);
	}
	const started = new WebAssembly.Instance(module, imports).exports as Exports;
	python.exports = started;
	const gauge = new FuelGauge(started);
	gauge.fill(SETUP_FUEL);
	started.emscripten_stack_init();
	started.__wasm_call_ctors();
	started.mp_js_init(PYSTACK_WORDS, HEAP_BYTES);
	started.proxy_c_init();
	return { gauge, memory: started.memory, exec: (source) => exec(started, source) };
}

function exec(python: Exports, source: string): string | null {
	const bytes = new TextEncoder().encode(source);
	const text = python.malloc(bytes.length + 1);
	const out = python.malloc(16);
	if (text === 0 || out === 0) return "MemoryError\x04MemoryError: the program does not fit";
	const memory = new Uint8Array(python.memory.buffer);
	memory.set(bytes, text);
	memory[text + bytes.length] = 0;
	python.mp_js_do_exec(text, bytes.length, out);
	const view = new DataView(python.memory.buffer);
	if (view.getInt32(out, true) !== -1) return null;
	const length = view.getUint32(out + 4, true);
	return new TextDecoder().decode(new Uint8Array(python.memory.buffer, view.getUint32(out + 8, true), length).slice());
}

/** Exceptions, memory. */
function emscriptenFunctions(exports: () => Exports): Record<string, HostFunction> {
	const longjmp = new Error("longjmp");
	const invoke: HostFunction = (index = 0, ...args) => {
		const python = exports();
		const table = python.__indirect_function_table;
		const called = index >= 0 && index < table.length ? (table.get(index) as HostFunction | null) : null;
		if (called === null) throw new Error("the interpreter called a function that does not exist");
		const stack = python.emscripten_stack_get_current();
		try {
			return called(...args);
		} catch (thrown) {
			python._emscripten_stack_restore(stack);
			if (thrown !== longjmp) throw thrown;
			python.setThrew(1, 0);
			return 0;
		}
	};
	const invokes = ["v", "i", "vi", "vii", "viii", "viiii", "ii", "iii", "iiii", "iiiii", "iiiiii"];
	return {
		...Object.fromEntries(invokes.map((signature) => [`invoke_${signature}`, invoke])),
		_emscripten_throw_longjmp: () => {
			throw longjmp;
		},
		emscripten_resize_heap: (bytes = 0) => {
			const { memory } = exports();
			try {
				memory.grow(Math.ceil(((bytes >>> 0) - memory.buffer.byteLength) / 65_536));
				return 1;
			} catch {
				return 0; // past the cap: Python raises MemoryError
			}
		},
	};
}

/** Output, time, randomness, and empty answers where the bridge to JavaScript would be. */
function hostFunctions(exports: () => Exports, host: PythonHost): Record<string, HostFunction> {
	let ticks = 0;
	return {
		// `uctypes` lets a program write any byte of its own memory, so these arguments may be forged: the count is bounded,
		// because this loop costs no fuel, and pointers are checked.
		fd_write: (_file = 0, vectors = 0, count = 0, written = 0) => {
			const { buffer } = exports().memory;
			const view = new DataView(buffer);
			const end = buffer.byteLength;
			const at = vectors >>> 0;
			if (count < 0 || count > VECTORS_MAX || at + 8 * count > end || (written >>> 0) + 4 > end) throw new Forged();
			let total = 0;
			for (let i = 0; i < count; i++) {
				const pointer = view.getUint32(at + 8 * i, true);
				const length = view.getUint32(at + 8 * i + 4, true);
				if (pointer + length > end) throw new Forged();
				host.write(new Uint8Array(buffer, pointer, length));
				total += length;
			}
			view.setUint32(written >>> 0, total, true);
			return 0;
		},
		fd_read: () => {
			throw new NoInput("there is no standard input");
		},
		fd_close: () => 0,
		fd_sync: () => 0,
		fd_seek: () => ESPIPE,
		// A clock that moves by being read: `time.sleep(3)` waits for it and would spin through all its fuel on a clock that
		// stands still, as the platform's does while a program computes.
		mp_js_ticks_ms: () => ++ticks,
		mp_js_time_ms: () => host.now() + ticks,
		mp_js_random_u32: () => host.random(),
		lookup_attr: () => 0,
		has_attr: () => 0,
		js_check_existing: () => -1,
		proxy_js_free_obj: () => undefined,
		js_get_proxy_js_ref_info: () => undefined,
	};
}

/** Files do not exist; whatever else would reach JavaScript ends the program. */
function refusal(name: string): HostFunction {
	if (name.startsWith("__syscall_")) return () => ENOSYS;
	return () => {
		throw new Error(`the bridge to the host is closed (\`${name}\`)`);
	};
}
