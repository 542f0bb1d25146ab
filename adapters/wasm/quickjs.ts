/**
 * One QuickJS instance for one program. Metered like any other module: an interrupt handler alone would not do, because
 * QuickJS asks it only between bytecodes, and one call of a built-in such as
 * `Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)` runs for years without asking.
 *
 * Loaded lazily; nothing here survives the instance.
 */
import type { QuickJSContext } from "quickjs-emscripten-core";
import { ENGINE_MEMORY_MAX_PAGES } from "#core/limits.ts";
import { FuelGauge, SETUP_FUEL } from "./fuel-gauge.ts";

/** As the module was prepared (wasm-tools/build.ts): 5 MiB of it are stack and data. */
const INITIAL_PAGES = 96;
/** Heap, below the memory's own maximum, so that running out is an error of QuickJS and not of its allocator. */
const HEAP_MAX_BYTES = (ENGINE_MEMORY_MAX_PAGES - INITIAL_PAGES) * 65_536;
/** Deep enough for honest recursion (some thousand calls) and far from the host's own stack. */
const STACK_MAX_BYTES = 262_144;

export type QuickJs = {
	readonly context: QuickJSContext;
	readonly gauge: FuelGauge;
	readonly memory: WebAssembly.Memory;
};

/** `interrupt` is asked between bytecodes and ends the program when it says true. */
export async function startQuickJs(interrupt: () => boolean): Promise<QuickJs> {
	const [{ newQuickJSWASMModuleFromVariant, newVariant }, { default: base }, { default: module }] = await Promise.all([
		import("quickjs-emscripten-core"),
		import("@jitl/quickjs-wasmfile-release-sync"),
		import("../../wasm-tools/built/quickjs.wasm"),
	]);
	const memory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: ENGINE_MEMORY_MAX_PAGES });
	let gauge: FuelGauge | undefined;
	const variant = newVariant(base, {
		emscriptenModule: {
			wasmMemory: memory,
			// What the engine itself prints is for its developers, not for our log.
			print: () => {},
			printErr: () => {},
			instantiateWasm(imports: WebAssembly.Imports, ready: (instance: WebAssembly.Instance) => void) {
				const instance = new WebAssembly.Instance(module, imports);
				gauge = new FuelGauge(instance.exports);
				gauge.fill(SETUP_FUEL);
				(instance.exports as { __start?: () => void }).__start?.();
				ready(instance);
				return instance.exports;
			},
		} as never,
	});
	const runtime = (await newQuickJSWASMModuleFromVariant(variant)).newRuntime();
	runtime.setMemoryLimit(HEAP_MAX_BYTES);
	runtime.setMaxStackSize(STACK_MAX_BYTES);
	runtime.setInterruptHandler(interrupt);
	if (gauge === undefined) throw new Error("quickjs was not instantiated");
	return { context: runtime.newContext(), gauge, memory };
}
