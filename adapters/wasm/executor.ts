/**
 * The sandbox as an entrypoint of its own: engines run here and not in the turn of the object that asks (decision 8).
 * A shell; all it does is in `execute.ts`. Called over RPC by the `wasm` and `code` invokers: `ctx.exports.Executor()`.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import { executeCode, executeWasm } from "./execute.ts";
import type { CodeRequest, ExecutorApi, RunOutcome, WasmRequest } from "./executor-api.ts";

export class Executor extends WorkerEntrypoint implements ExecutorApi {
	async runWasm(request: WasmRequest): Promise<RunOutcome> {
		return executeWasm(request);
	}

	async runCode(request: CodeRequest): Promise<RunOutcome> {
		return executeCode(request);
	}
}
