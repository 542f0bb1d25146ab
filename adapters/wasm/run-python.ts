/**
 * Runs one Python program in a MicroPython of its own (S4). It sees the language, a small library and `inputs`; no files,
 * no network, no host object. Its result is the variable `result`; what it prints is its output.
 */
import { SANDBOX_RESULT_MAX_BYTES, STDOUT_MAX_BYTES } from "#core/limits.ts";
import type { RunEnd, RunOutcome } from "./executor-api.ts";
import { type MicroPython, NoInput, startMicroPython } from "./micropython.ts";
import { readTraceback } from "./python-traceback.ts";
import { RESULT_TOO_LARGE, readResult } from "./read-result.ts";
import type { Program } from "./run-javascript.ts";
import { StdoutBuffer } from "./stdout-buffer.ts";
import { wellFormedJson } from "./well-formed-json.ts";

/**
 * Before the program. Its functions are compiled under a name of their own, so that a traceback through them still ends
 * in the program's last line. `input` would wait for ever for a line that nobody types.
 */
const PRELUDE = `
exec(compile("def input(prompt=''):\\n raise OSError('there is no standard input')\\n", "<belay>", "exec"))
import json
inputs = json.loads(`;

/**
 * Behind the program: the result as JSON on an output of its own. `dump` and not `dumps`, which copies its text again for
 * every few bytes: 150 KB of rows used up all fuel.
 */
const EPILOGUE = `
import json, sys
json.dump(globals().get("result"), sys.stdout)
`;

/** Never throws for anything that the program does. */
export async function runPython(program: Program): Promise<RunOutcome> {
	const { default: module } = await import("../../wasm-tools/built/micropython.wasm");
	const stdout = new StdoutBuffer(STDOUT_MAX_BYTES);
	const answer = new StdoutBuffer(SANDBOX_RESULT_MAX_BYTES + 1);
	let sink = answer;
	const python = startMicroPython(module, {
		write: (bytes) => sink.write(bytes),
		now: () => Date.now(),
		random: () => crypto.getRandomValues(new Uint32Array(1))[0] ?? 0,
	});
	let end: RunEnd;
	try {
		// A JSON text as a JSON string is a Python string literal as well.
		const inputs = JSON.stringify(wellFormedJson(JSON.stringify(program.inputs ?? null)));
		const unfit = python.exec(`${PRELUDE}${inputs})\ndel json\n`);
		if (unfit === null) {
			python.gauge.fill(program.fuel);
			sink = stdout;
			end = run(python, program, () => {
				sink = answer;
				return answer;
			});
		} else end = { ok: false, code: "oom", message: "the inputs do not fit into the program's memory" };
	} catch (error) {
		end = fault(error, python);
	}
	return {
		...end,
		stdout: stdout.text(),
		stdout_truncated: stdout.truncated,
		fuel_used: python.gauge.used,
		peak_memory_bytes: python.memory.buffer.byteLength,
	};
}

function run(python: MicroPython, program: Program, toAnswer: () => StdoutBuffer): RunEnd {
	const raised = python.exec(program.source);
	if (raised !== null) {
		const error = readTraceback(raised, program.source);
		if (error.type === "MemoryError") return OUT_OF_MEMORY;
		// `sys.exit()` is an orderly end.
		const isExit = error.type === "SystemExit" && ["", "0", "None"].includes(error.message);
		if (!isExit) return { ok: false, code: "code_error", message: `${error.type}: ${error.message}`, error };
	}
	const answer = toAnswer();
	const unfit = python.exec(EPILOGUE);
	if (unfit !== null) {
		const error = readTraceback(unfit, "");
		if (error.type === "MemoryError") return OUT_OF_MEMORY;
		return { ok: false, code: "invalid_response", message: `\`result\` is not JSON (${error.type}: ${error.message})` };
	}
	if (answer.truncated) return RESULT_TOO_LARGE;
	const read = readResult(answer.text());
	return read.ok || read.code !== "invalid_response"
		? read
		: { ...read, message: read.message.replace("the result", "`result`") };
}

const OUT_OF_MEMORY: RunEnd = { ok: false, code: "oom", message: "the program used up its memory" };

/** A trap or an exception of the host while guest code ran: the engine is dead. */
function fault(thrown: unknown, python: MicroPython): RunEnd {
	if (python.gauge.dry) return { ok: false, code: "instruction_limit", message: "the program used up its fuel" };
	const said = (type: string, message: string): RunEnd => ({
		ok: false,
		code: "code_error",
		message: `${type}: ${message}`,
		error: { type, message, line: null, snippet: null },
	});
	if (thrown instanceof NoInput) return said("OSError", thrown.message);
	if (thrown instanceof RangeError) return said("RuntimeError", "maximum recursion depth exceeded");
	if (thrown instanceof WebAssembly.RuntimeError) return said("RuntimeError", "the interpreter trapped");
	return said("RuntimeError", "a way out of the sandbox is closed");
}
