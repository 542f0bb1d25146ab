/**
 * What an executor is asked and what it answers, as plain data that crosses isolates. Invokers know only this; the
 * `Executor` entrypoint implements it. A failure of the program is a value here, never an exception.
 */
import type { Json } from "#core/json.ts";
import type { FaultCode } from "#core/outcome.ts";

export type WasmRequest = {
	/** Name of a built-in module. */
	readonly module: string;
	readonly input: Json;
	/** Default WASM_FUEL_DEFAULT, lowered to FUEL_MAX. */
	readonly fuel?: number | undefined;
	/** From the request to its answer, waiting included, ms. */
	readonly wall_ms: number;
};

export type CodeRequest = {
	readonly language: "javascript" | "python";
	readonly source: string;
	/** The program sees its own copy as `inputs`. */
	readonly inputs: Json;
	/** Default JAVASCRIPT_FUEL_DEFAULT or PYTHON_FUEL_DEFAULT, lowered to FUEL_MAX. */
	readonly fuel?: number | undefined;
	readonly wall_ms: number;
	/** JavaScript only: finds syntax errors and runs nothing. */
	readonly compile_only?: boolean | undefined;
};

export type RunCode = Extract<
	FaultCode,
	| "code_error"
	| "instruction_limit"
	| "oom"
	| "wall_exceeded"
	| "invalid_response"
	| "response_too_large"
	| "not_configured"
	| "internal"
>;

/** An error of the program. `line` counts from 1 in the program's own text; null when nothing says where. */
export type ProgramError = {
	readonly type: string;
	readonly message: string;
	readonly line: number | null;
	/** The line and its neighbours, the line itself marked with `>`. */
	readonly snippet: string | null;
};

export type RunUsage = { readonly fuel_used: number; readonly peak_memory_bytes: number };

/** How a run ended, whatever ran. */
export type RunEnd =
	| { readonly ok: true; readonly result: Json; readonly notes: readonly string[] }
	| { readonly ok: false; readonly code: RunCode; readonly message: string; readonly error?: ProgramError };

export type RunOutcome = RunEnd &
	RunUsage & {
		/** What the program printed, cut at STDOUT_MAX_BYTES; empty when it never started. */
		readonly stdout: string;
		readonly stdout_truncated: boolean;
	};

export interface ExecutorApi {
	runWasm(request: WasmRequest): Promise<RunOutcome>;
	runCode(request: CodeRequest): Promise<RunOutcome>;
}
