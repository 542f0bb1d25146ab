/**
 * The host of ABI `harness/1`: one fresh instance of a metered tool module for one call. The only thing that the module
 * can do to the world is to add lines to its output.
 *
 * Every pointer and length that comes out of the module is a claim to be checked against its memory.
 */
import type { Json } from "#core/json.ts";
import { SANDBOX_RESULT_MAX_BYTES, STDOUT_MAX_BYTES } from "#core/limits.ts";
import type { RunEnd, RunOutcome } from "./executor-api.ts";
import { FuelGauge } from "./fuel-gauge.ts";
import { RESULT_TOO_LARGE, readResult } from "./read-result.ts";
import { StdoutBuffer } from "./stdout-buffer.ts";
import { wellFormedJson } from "./well-formed-json.ts";

type ToolExports = WebAssembly.Exports & {
	memory: WebAssembly.Memory;
	alloc(length: number): number;
	run(pointer: number, length: number): bigint;
	_start?(): void;
};

/** A pointer outside the module's memory: the module's fault, told apart from a trap. */
class OutsideMemory extends Error {}

/** A trap this close to the cap (1 MiB) is put down to memory: allocators trap when growing fails. */
const NEAR_CAP_PAGES = 16;

/** Runs `module` on `input`. Synchronous; never throws for anything that the module does. */
export function runModule(module: WebAssembly.Module, input: Json, fuel: number): RunOutcome {
	const stdout = new StdoutBuffer(STDOUT_MAX_BYTES);
	const log = (pointer: number, length: number): void => {
		const bytes = view(tool.memory, pointer >>> 0, length >>> 0);
		stdout.write(bytes.subarray(0, STDOUT_MAX_BYTES + 1));
		stdout.write(LINE_FEED);
	};
	const tool = new WebAssembly.Instance(module, { harness: { log } }).exports as ToolExports;
	const gauge = new FuelGauge(tool);
	gauge.fill(fuel);
	let end: RunEnd;
	let peak = 0;
	try {
		end = call(tool, input);
		peak = tool.memory.buffer.byteLength;
	} catch (error) {
		peak = tool.memory.buffer.byteLength;
		end = fault(error, tool.memory, gauge);
	}
	return {
		...end,
		stdout: stdout.text(),
		stdout_truncated: stdout.truncated,
		fuel_used: gauge.used,
		peak_memory_bytes: peak,
	};
}

const LINE_FEED = new Uint8Array([10]);

function call(tool: ToolExports, input: Json): RunEnd {
	const bytes = new TextEncoder().encode(wellFormedJson(JSON.stringify(input)));
	tool._start?.();
	const pointer = tool.alloc(bytes.length) >>> 0;
	view(tool.memory, pointer, bytes.length).set(bytes);
	const packed = BigInt.asUintN(64, tool.run(pointer, bytes.length));
	const length = Number(packed & 0xffff_ffffn);
	if (length > SANDBOX_RESULT_MAX_BYTES) return RESULT_TOO_LARGE;
	const answer = view(tool.memory, Number(packed >> 32n), length);
	try {
		return readResult(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(answer));
	} catch {
		return { ok: false, code: "invalid_response", message: "the result is not UTF-8" };
	}
}

function view(memory: WebAssembly.Memory, pointer: number, length: number): Uint8Array {
	if (pointer + length > memory.buffer.byteLength) throw new OutsideMemory();
	return new Uint8Array(memory.buffer, pointer, length);
}

function fault(thrown: unknown, memory: WebAssembly.Memory, gauge: FuelGauge): RunEnd {
	if (gauge.dry) return { ok: false, code: "instruction_limit", message: "the module used up its fuel" };
	if (thrown instanceof OutsideMemory)
		return { ok: false, code: "invalid_response", message: "the module names bytes outside its memory" };
	if (thrown instanceof RangeError) return codeError("StackOverflow", "the module recursed too deeply");
	if (!(thrown instanceof WebAssembly.RuntimeError)) throw thrown;
	if (isFull(memory)) return { ok: false, code: "oom", message: "the module used up its memory" };
	return codeError("Trap", `the module trapped: ${thrown.message}`);
}

function codeError(type: string, message: string): RunEnd {
	return { ok: false, code: "code_error", message, error: { type, message, line: null, snippet: null } };
}

/** Whether the memory cannot grow any more. The instance is dead already, so trying harms nothing. */
function isFull(memory: WebAssembly.Memory): boolean {
	try {
		memory.grow(NEAR_CAP_PAGES);
		return false;
	} catch {
		return true;
	}
}
