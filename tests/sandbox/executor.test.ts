/** The executor and its invokers: limits on instances and time, and the words in which runs end for the choke point. */
import { exports } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { CodeInvoker } from "#adapters/wasm/code-invoker.ts";
import { EngineSlots } from "#adapters/wasm/engine-slots.ts";
import { executeCode, executeWasm } from "#adapters/wasm/execute.ts";
import type { CodeRequest, ExecutorApi, RunOutcome, WasmRequest } from "#adapters/wasm/executor-api.ts";
import { WasmInvoker } from "#adapters/wasm/wasm-invoker.ts";
import type { JsonObject } from "#core/json.ts";
import { ENGINE_INSTANCES_MAX, FUEL_MAX } from "#core/limits.ts";
import type { Invocation } from "#core/ports.ts";
import { type Implementation, toolDescriptor } from "#core/registry/descriptor.ts";

const executor: ExecutorApi = { runWasm: executeWasm, runCode: executeCode };
const never: ExecutorApi = { runWasm: () => new Promise(() => {}), runCode: () => new Promise(() => {}) };
const quiet = new AbortController().signal;

function invocation(implementation: Implementation, args: JsonObject, timeout_ms = 10_000): Invocation {
	return {
		tenant_id: "t",
		run_id: "run_1",
		tool_call_id: "call_1",
		attempt: 1,
		principal: { principal_id: "p", kind: "user" } as never,
		descriptor: toolDescriptor.parse({
			tool_id: "code",
			name: "code",
			version: "1.0.0",
			description: "runs code",
			category: "compute",
			input_schema: {},
			implementation,
		}),
		arguments: args,
		timeout_ms,
		idempotency_key: null,
		trace_id: "0".repeat(32),
	};
}

const javascript: Implementation = { kind: "code", language: "javascript", source: "/code", inputs: "/inputs" };

describe("engine slots", () => {
	it("never hold more than their number, and serve in order", async () => {
		const slots = new EngineSlots(2);
		const order: number[] = [];
		let most = 0;
		const gates = [0, 1, 2, 3, 4].map(() => Promise.withResolvers<void>());
		const runs = gates.map((gate, n) =>
			slots.run(60_000, async () => {
				order.push(n);
				most = Math.max(most, slots.taken);
				await gate.promise;
				return n;
			}),
		);
		await Promise.resolve();
		expect(order).toEqual([0, 1]);
		for (const gate of gates) gate.resolve();
		expect(await Promise.all(runs)).toEqual([0, 1, 2, 3, 4]);
		expect([order, most, slots.taken]).toEqual([[0, 1, 2, 3, 4], 2, 0]);
	});

	it("are freed by work that throws, and by nobody twice", async () => {
		const slots = new EngineSlots(1);
		const broken = slots.run(1_000, async () => Promise.reject(new Error("broken")));
		const next = slots.run(1_000, async () => "served");
		await expect(broken).rejects.toThrow("broken");
		expect(await next).toBe("served");
		expect(slots.taken).toBe(0);
	});

	it("are not waited for longer than asked", async () => {
		const slots = new EngineSlots(1);
		const gate = Promise.withResolvers<void>();
		const first = slots.run(1_000, () => gate.promise);
		expect(await slots.run(5, async () => "late")).toBeUndefined();
		gate.resolve();
		await first;
		expect(await slots.run(5, async () => "free")).toBe("free");
	});
});

describe("an executor", () => {
	it("serves more requests than it has engines", async () => {
		const sources = Array.from({ length: ENGINE_INSTANCES_MAX * 4 }, (_, n) => n);
		const answers = await Promise.all(
			sources.map((n) =>
				n % 2 === 0
					? executeCode({ language: "javascript", source: `${n} * 2`, inputs: {}, wall_ms: 30_000 })
					: executeCode({ language: "python", source: `result = ${n} * 2`, inputs: {}, wall_ms: 30_000 }),
			),
		);
		expect(answers.map((answer) => answer.ok && answer.result)).toEqual(sources.map((n) => n * 2));
	});

	it("stops a javascript program at its time limit where the clock moves", async () => {
		const request: CodeRequest = { language: "javascript", source: "for (;;) {}", inputs: {}, fuel: 1e12, wall_ms: 50 };
		const outcome = await executeCode(request);
		expect(outcome).toMatchObject({ ok: false, code: "wall_exceeded" });
		expect(outcome.fuel_used).toBeLessThan(Number(FUEL_MAX));
	});

	it.each([0, -5, Number.NEGATIVE_INFINITY])("takes no fuel for less than some: %d", async (fuel) => {
		const outcome = await executeWasm({ module: "echo", input: {}, fuel, wall_ms: 1_000 });
		expect(outcome).toMatchObject({ ok: false, code: "instruction_limit" });
	});

	it.each([Number.NaN, Number.POSITIVE_INFINITY, 1e300])("takes fuel that is no number of ours: %d", async (fuel) => {
		expect(await executeWasm({ module: "echo", input: {}, fuel, wall_ms: 1_000 })).toMatchObject({ ok: true });
	});
});

describe("the Executor entrypoint", () => {
	it("answers over RPC with plain values", async () => {
		const { Executor } = exports as unknown as { Executor: ExecutorApi };
		const code = await Executor.runCode({ language: "python", source: "print(1)\n1/0", inputs: {}, wall_ms: 30_000 });
		expect(code).toMatchObject({
			ok: false,
			code: "code_error",
			stdout: "1\n",
			error: { type: "ZeroDivisionError", line: 2 },
		});
		const wasm = await Executor.runWasm({ module: "echo", input: [1, { a: null }], wall_ms: 30_000 });
		expect(wasm).toMatchObject({ ok: true, result: [1, { a: null }] });
	});
});

describe("the code invoker", () => {
	const invoker = new CodeInvoker(executor);

	it("runs the program at its pointer with the inputs at theirs", async () => {
		const outcome = await invoker.invoke(
			invocation(javascript, { code: "console.log('hi'); inputs.a + 1", inputs: { a: 1 } }),
			quiet,
		);
		expect(outcome).toMatchObject({ kind: "success", result: { result: 2, stdout: "hi\n" }, notes: [] });
		expect(outcome.kind === "success" && outcome.facts.join("; ")).toMatch(
			/^\d+ fuel used; \d+ bytes of memory at the peak$/,
		);
	});

	it("speaks python, from any pointer, without inputs", async () => {
		const implementation: Implementation = { kind: "code", language: "python", source: "/job/text" };
		const outcome = await invoker.invoke(invocation(implementation, { job: { text: "result = inputs" } }), quiet);
		expect(outcome).toMatchObject({ kind: "success", result: { result: {}, stdout: "" } });
	});

	it("hands on where a program failed", async () => {
		const outcome = await invoker.invoke(invocation(javascript, { code: "console.log(1);\nnope()" }), quiet);
		expect(outcome).toEqual({
			kind: "failed",
			code: "code_error",
			message: "ReferenceError: 'nope' is not defined",
			detail: {
				type: "ReferenceError",
				message: "'nope' is not defined",
				line: 2,
				code_snippet: "  1 | console.log(1);\n> 2 | nope()",
				stdout: "1\n",
			},
			effect: "none",
			retryable: false,
		});
	});

	it("says what a program had used when a limit ended it", async () => {
		const outcome = await invoker.invoke(invocation(javascript, { code: "new ArrayBuffer(1e9)" }), quiet);
		expect(outcome).toMatchObject({ kind: "failed", code: "oom", effect: "none" });
		expect(outcome.kind === "failed" && outcome.detail).toHaveProperty("peak_memory_bytes");
	});

	it.each([[{}], [{ code: 1 }], [{ code: null }]])("wants a program: %j", async (args) => {
		expect(await invoker.invoke(invocation(javascript, args as JsonObject), quiet)).toMatchObject({
			kind: "failed",
			message: "there is no program at `/code`",
		});
	});

	it("ends when the call is cancelled", async () => {
		const controller = new AbortController();
		const running = new CodeInvoker(never).invoke(invocation(javascript, { code: "1" }), controller.signal);
		controller.abort();
		expect(await running).toMatchObject({ kind: "failed", code: "interrupted", effect: "none" });
		const refused = await new CodeInvoker(never).invoke(invocation(javascript, { code: "1" }), controller.signal);
		expect(refused).toMatchObject({ kind: "failed", code: "interrupted" });
	});

	it("ends when the executor never answers, goes away, or cannot be asked", async () => {
		const silent = await new CodeInvoker(never).invoke(invocation(javascript, { code: "1" }, 20), quiet);
		expect(silent).toEqual({ kind: "timeout", phase: "wall", effect: "none" });
		const gone = { ...never, runCode: () => Promise.reject(new Error("10.0.0.7 reset")) };
		const lost = await new CodeInvoker(gone).invoke(invocation(javascript, { code: "1" }), quiet);
		expect(lost).toMatchObject({ kind: "failed", code: "interrupted", retryable: true, effect: "none" });
		expect(JSON.stringify(lost)).not.toContain("10.0.0.7");
		const broken = {
			...never,
			runCode: (): Promise<RunOutcome> => {
				throw new Error("no stub");
			},
		};
		expect(await new CodeInvoker(broken).invoke(invocation(javascript, { code: "1" }), quiet)).toMatchObject({
			kind: "failed",
		});
	});

	it("is for its own kind only", async () => {
		expect(await invoker.invoke(invocation({ kind: "wasm", module: "echo" }, {}), quiet)).toMatchObject({
			code: "internal",
		});
	});
});

describe("the wasm invoker", () => {
	it("gives the arguments to the module and its answer back", async () => {
		const asked: WasmRequest[] = [];
		const watched: ExecutorApi = {
			...executor,
			runWasm: (request) => {
				asked.push(request);
				return executeWasm(request);
			},
		};
		const call = invocation({ kind: "wasm", module: "text_stats" }, { text: "a b" });
		expect(await new WasmInvoker(watched).invoke(call, quiet)).toMatchObject({
			kind: "success",
			result: { characters: 3, words: 2, lines: 1 },
		});
		expect(asked).toEqual([{ module: "text_stats", input: { text: "a b" }, wall_ms: 10_000 }]);
	});

	it("says when there is no such module", async () => {
		const call = invocation({ kind: "wasm", module: "missing" }, {});
		expect(await new WasmInvoker(executor).invoke(call, quiet)).toMatchObject({
			kind: "failed",
			code: "not_configured",
			message: "there is no built-in module `missing`",
		});
	});

	it("is for its own kind only", async () => {
		expect(await new WasmInvoker(executor).invoke(invocation(javascript, {}), quiet)).toMatchObject({
			code: "internal",
		});
	});
});
