/**
 * Runs one request in a fresh engine and answers with a value, whatever happens. The whole executor as two plain
 * functions: the `Executor` entrypoint is a shell around them, and tests call them as they are.
 *
 * Fuel bounds computation, because the platform's clock stands still while a program computes (decision 8). The wall clock
 * bounds waiting, and a program as well where the clock moves.
 */
import {
	ENGINE_INSTANCES_MAX,
	FUEL_MAX,
	JAVASCRIPT_FUEL_DEFAULT,
	PYTHON_FUEL_DEFAULT,
	SOURCE_MAX_BYTES,
	WASM_FUEL_DEFAULT,
} from "#core/limits.ts";
import { EngineSlots } from "./engine-slots.ts";
import type { CodeRequest, RunCode, RunOutcome, WasmRequest } from "./executor-api.ts";
import { type Program, runJavascript } from "./run-javascript.ts";
import { runModule } from "./run-module.ts";
import { runPython } from "./run-python.ts";
import { toolModule } from "./tool-modules.ts";

const slots = new EngineSlots(ENGINE_INSTANCES_MAX);

export async function executeWasm(request: WasmRequest): Promise<RunOutcome> {
	return inSlot(request.wall_ms, async () => {
		const module = await toolModule(request.module);
		if (module === undefined) return refused("not_configured", `there is no built-in module \`${request.module}\``);
		return runModule(module, request.input, fuelOf(request.fuel, WASM_FUEL_DEFAULT));
	});
}

export async function executeCode(request: CodeRequest): Promise<RunOutcome> {
	// Characters first: text of a billion of them should not be encoded to be found too long.
	const { source, language } = request;
	if (source.length > SOURCE_MAX_BYTES || new TextEncoder().encode(source).length > SOURCE_MAX_BYTES)
		return refused("code_error", `the program has more than ${SOURCE_MAX_BYTES} bytes`);
	return inSlot(request.wall_ms, (isLate) => {
		const fallback = language === "python" ? PYTHON_FUEL_DEFAULT : JAVASCRIPT_FUEL_DEFAULT;
		const fuel = fuelOf(request.fuel, fallback);
		const program: Program = { source, inputs: request.inputs, fuel, compile_only: request.compile_only, isLate };
		return language === "python" ? runPython(program) : runJavascript(program);
	});
}

async function inSlot(wall_ms: number, run: (isLate: () => boolean) => Promise<RunOutcome>): Promise<RunOutcome> {
	const until = Date.now() + wall_ms;
	const isLate = (): boolean => Date.now() > until;
	try {
		const outcome = await slots.run(wall_ms, () => run(isLate));
		if (outcome === undefined) return refused("wall_exceeded", "no sandbox came free within the time limit");
		if (!outcome.ok || !isLate()) return outcome;
		const { stdout, stdout_truncated, fuel_used, peak_memory_bytes } = outcome;
		const usage = { stdout, stdout_truncated, fuel_used, peak_memory_bytes };
		return { ok: false, code: "wall_exceeded", message: "the program ran longer than its time limit", ...usage };
	} catch (error) {
		// A defect of the host, not of the program: its text may say things about the host, so it goes to the log only.
		console.error("sandbox defect", error);
		return refused("internal", "the sandbox failed");
	}
}

function refused(code: RunCode, message: string): RunOutcome {
	return { ok: false, code, message, stdout: "", stdout_truncated: false, fuel_used: 0, peak_memory_bytes: 0 };
}

/** What was asked for, made whole and lowered to the cap. */
function fuelOf(asked: number | undefined, fallback: bigint): number {
	const fuel = asked === undefined || Number.isNaN(asked) ? Number(fallback) : Math.trunc(asked);
	return Math.min(Math.max(fuel, 1), Number(FUEL_MAX));
}
