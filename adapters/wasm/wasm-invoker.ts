/** Calls tools of kind `wasm`: the arguments go in as JSON, the module's answer comes out. Only the choke point calls it. */
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { CancelSignal, Invocation, ToolInvoker } from "#core/ports.ts";
import type { ExecutorApi } from "./executor-api.ts";
import { settleRun } from "./settle-run.ts";

export class WasmInvoker implements ToolInvoker {
	readonly #executor: ExecutorApi;

	constructor(executor: ExecutorApi) {
		this.#executor = executor;
	}

	async invoke(invocation: Invocation, signal: CancelSignal): Promise<InvokeOutcome> {
		const { implementation } = invocation.descriptor;
		if (implementation.kind !== "wasm") return failed("internal", "not a tool of kind `wasm`");
		const wall_ms = invocation.timeout_ms;
		const request = { module: implementation.module, input: invocation.arguments, wall_ms };
		return settleRun(
			() => this.#executor.runWasm(request),
			wall_ms,
			signal,
			(outcome) => outcome.result,
		);
	}
}
