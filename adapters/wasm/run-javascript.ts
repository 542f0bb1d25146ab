/**
 * Runs one JavaScript program in a QuickJS of its own (S4). It sees the language, `inputs` and `console`; no timers, no
 * modules, no network, no host object. Its result is the variable `result` when it sets one, else the value of its last
 * statement; with `return` or `await` at the top, what it returns. A promise is waited for as far as it can get by itself.
 */
import type { QuickJSHandle } from "quickjs-emscripten-core";
import { type Json, own, parseJson } from "#core/json.ts";
import { STDOUT_MAX_BYTES } from "#core/limits.ts";
import { codeSnippet } from "./code-snippet.ts";
import type { ProgramError, RunEnd, RunOutcome } from "./executor-api.ts";
import { asFunctionBody, JAVASCRIPT_PRELUDE, READ_RESULT_VARIABLE } from "./javascript-prelude.ts";
import { type QuickJs, startQuickJs } from "./quickjs.ts";
import { RESULT_TOO_LARGE, readResult } from "./read-result.ts";
import { StdoutBuffer } from "./stdout-buffer.ts";
import { wellFormedJson } from "./well-formed-json.ts";

const FILE = "program.js";

export type Program = {
	readonly source: string;
	readonly inputs: Json;
	readonly fuel: number;
	readonly compile_only?: boolean | undefined;
	/** Asked now and then while the program runs; true ends it. Where the clock stands still it never says so. */
	readonly isLate: () => boolean;
};

/** Never throws for anything that the program does. */
export async function runJavascript(program: Program): Promise<RunOutcome> {
	const stdout = new StdoutBuffer(STDOUT_MAX_BYTES);
	let late = false;
	const engine = await startQuickJs(() => {
		late ||= program.isLate();
		return late;
	});
	let end: RunEnd;
	try {
		const guest = new Guest(engine, program, stdout);
		end = guest.run();
	} catch (error) {
		end = fault(error, engine);
	}
	if (late) end = { ok: false, code: "wall_exceeded", message: "the program ran longer than its time limit" };
	// Nothing is disposed of: after a trap the instance must not be entered again, and it is garbage as a whole.
	return {
		...end,
		stdout: stdout.text(),
		stdout_truncated: stdout.truncated,
		fuel_used: engine.gauge.used,
		peak_memory_bytes: engine.memory.buffer.byteLength,
	};
}

/** A trap or an exception of the host while guest code ran: the engine is dead. */
function fault(thrown: unknown, engine: QuickJs): RunEnd {
	if (engine.gauge.dry) return { ok: false, code: "instruction_limit", message: "the program used up its fuel" };
	if (thrown instanceof RangeError)
		return codeError({ type: "InternalError", message: "stack overflow", line: null, snippet: null });
	throw thrown;
}

function codeError(error: ProgramError): RunEnd {
	return { ok: false, code: "code_error", message: `${error.type}: ${error.message}`, error };
}

class Guest {
	readonly #engine: QuickJs;
	readonly #program: Program;
	readonly #describe: QuickJSHandle;
	readonly #encode: QuickJSHandle;

	constructor(engine: QuickJs, program: Program, stdout: StdoutBuffer) {
		this.#engine = engine;
		this.#program = program;
		const { context } = engine;
		const print = context.newFunction("print", (line) => stdout.writeLine(context.getString(line)));
		const prelude = context.unwrapResult(context.evalCode(JAVASCRIPT_PRELUDE, "prelude.js"));
		const inputs = context.newString(wellFormedJson(JSON.stringify(program.inputs ?? null)));
		const kit = context.unwrapResult(context.callFunction(prelude, context.undefined, print, inputs));
		this.#describe = context.getProp(kit, "describe");
		this.#encode = context.getProp(kit, "encode");
	}

	run(): RunEnd {
		const { context, gauge } = this.#engine;
		gauge.fill(this.#program.fuel);
		const prepared = this.#prepare();
		if ("error" in prepared) return this.#failed(prepared.error);
		if (this.#program.compile_only === true) return { ok: true, result: null, notes: [] };
		const ran = context.evalCode(prepared.code, FILE, { type: "global", strict: false });
		if (ran.error) return this.#failed(ran.error);
		const jobs = context.runtime.executePendingJobs();
		if (jobs.error) return this.#failed(jobs.error);
		if (prepared.wrapped) return this.#settled(ran.value, true);
		const variable = context.evalCode(READ_RESULT_VARIABLE, "result.js");
		if (variable.error) return this.#failed(variable.error);
		const isSet = context.typeof(variable.value) !== "undefined";
		return this.#settled(isSet ? variable.value : ran.value, isSet);
	}

	/** The program as a script; as a function body when only that compiles. Nothing has run when a compilation fails. */
	#prepare(): { code: string; wrapped: boolean } | { error: QuickJSHandle } {
		const { context } = this.#engine;
		const script = context.evalCode(this.#program.source, FILE, { type: "global", compileOnly: true });
		if (!script.error) return { code: this.#program.source, wrapped: false };
		const body = asFunctionBody(this.#program.source);
		const wrapped = context.evalCode(body, FILE, { type: "global", compileOnly: true });
		return wrapped.error ? { error: script.error } : { code: body, wrapped: true };
	}

	/** `chosen`: the program named this value as its result, so it has to be JSON. A mere last value may be anything. */
	#settled(value: QuickJSHandle, chosen: boolean): RunEnd {
		const { context } = this.#engine;
		const state = context.getPromiseState(value);
		if (state.type === "rejected") return this.#failed(state.error);
		if (state.type === "pending") {
			const message = "the result is a promise that never settles: there are no timers and no network here";
			return { ok: false, code: "invalid_response", message };
		}
		const settled = state.value;
		if (!chosen && ["function", "symbol"].includes(context.typeof(settled)))
			return { ok: true, result: null, notes: [] };
		const encoded = context.callFunction(this.#encode, context.undefined, settled);
		if (encoded.error) {
			const reason = this.#read(encoded.error);
			if (reason === undefined || reason.message === "out of memory") return this.#outOfMemory();
			return { ok: false, code: "invalid_response", message: `the result is not JSON: ${reason.message}` };
		}
		const kind = context.typeof(encoded.value);
		if (kind === "number") return RESULT_TOO_LARGE;
		if (kind !== "string") return { ok: false, code: "invalid_response", message: "the result is not JSON" };
		return readResult(context.getString(encoded.value));
	}

	#failed(thrown: QuickJSHandle): RunEnd {
		const error = this.#read(thrown);
		if (error === undefined || (error.type === "InternalError" && error.message === "out of memory"))
			return this.#outOfMemory();
		return codeError(error);
	}

	#outOfMemory(): RunEnd {
		return { ok: false, code: "oom", message: "the program used up its memory" };
	}

	/** Undefined when describing the error fails itself, which an engine without memory does. */
	#read(thrown: QuickJSHandle): ProgramError | undefined {
		const { context } = this.#engine;
		const described = context.callFunction(this.#describe, context.undefined, thrown);
		if (described.error) return undefined;
		const { type, message, stack } = readDescription(context.getString(described.value));
		const found = new RegExp(`\\b${FILE}:(\\d+)`).exec(stack)?.[1];
		const line = found === undefined ? null : Number(found);
		return { type, message, line, snippet: codeSnippet(this.#program.source, line) };
	}
}

/** The guest's own words about its error: whatever they are, they are text and nothing more. */
function readDescription(json: string): { type: string; message: string; stack: string } {
	const parsed = parseJson(json);
	const text = (key: string): string => {
		const value = parsed.ok ? own(parsed.value, key) : undefined;
		return typeof value === "string" ? value : "";
	};
	return { type: text("type") || "Error", message: text("message"), stack: text("stack") };
}
