/**
 * Admission of a tool: a module that speaks ABI `harness/1`. It exports `memory`, `alloc(length) -> pointer` and
 * `run(pointer, length) -> pointer << 32 | length`, both sides UTF-8 JSON, and may import functions of module `harness`,
 * each of which is a capability that the host supplies. No WASI.
 *
 * Called by the build for Belay's own tools and by whoever takes uploads; both go through the same door.
 */
import { WASM_MEMORY_MAX_PAGES } from "../limits.ts";
import { type Admission, admitModule, type ExportFacts } from "./admit-module.ts";
import type { ModuleImport } from "./declarations.ts";

export const TOOL_ABI = "harness/1";
/** Every capability there is: `log(pointer, length)` adds a line to the run's output. */
export const TOOL_CAPABILITIES: readonly string[] = ["log"];

const I32 = 0x7f;
const I64 = 0x7e;

/** Checks, meters and caps a tool module. `validate` is `WebAssembly.validate`. */
export function admitTool(bytes: Uint8Array, validate?: (bytes: Uint8Array) => boolean): Admission {
	const admission = admitModule(bytes, {
		memory_max_pages: WASM_MEMORY_MAX_PAGES,
		allowImport: isCapability,
		...(validate === undefined ? {} : { validate }),
	});
	if (!admission.ok) return admission;
	const missing =
		missingExport(admission.facts.exports, "memory", undefined, undefined) ??
		missingExport(admission.facts.exports, "alloc", [I32], [I32]) ??
		missingExport(admission.facts.exports, "run", [I32, I32], [I64]);
	return missing === undefined ? admission : { ok: false, code: "export", message: missing };
}

function isCapability(wanted: ModuleImport): boolean {
	return wanted.kind === "func" && wanted.module === "harness" && TOOL_CAPABILITIES.includes(wanted.name);
}

function missingExport(
	exports: readonly ExportFacts[],
	name: string,
	params: readonly number[] | undefined,
	results: readonly number[] | undefined,
): string | undefined {
	const found = exports.find((entry) => entry.name === name);
	if (params === undefined) return found?.kind === "memory" ? undefined : `the memory \`${name}\` is not exported`;
	const fits = same(found?.type?.params, params) && same(found?.type?.results, results);
	return fits ? undefined : `the function \`${name}\` of ABI ${TOOL_ABI} is not exported`;
}

function same(left: readonly number[] | undefined, right: readonly number[] | undefined): boolean {
	return (
		left !== undefined && right !== undefined && left.length === right.length && left.every((x, i) => x === right[i])
	);
}
