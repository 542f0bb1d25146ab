/**
 * Calls tools of kind `code`: one of the arguments is a program. `implementation.source` and `implementation.inputs` are
 * JSON Pointers into the arguments. The result is `{result, stdout}`. Only the choke point calls it.
 */
import { atPointer } from "#core/json.ts";
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { CancelSignal, Invocation, ToolInvoker } from "#core/ports.ts";
import type { CodeRequest, ExecutorApi } from "./executor-api.ts";
import { settleRun } from "./settle-run.ts";

export class CodeInvoker implements ToolInvoker {
	readonly #executor: ExecutorApi;

	constructor(executor: ExecutorApi) {
		this.#executor = executor;
	}

	async invoke(invocation: Invocation, signal: CancelSignal): Promise<InvokeOutcome> {
		const { implementation } = invocation.descriptor;
		if (implementation.kind !== "code") return failed("internal", "not a tool of kind `code`");
		const source = atPointer(invocation.arguments, implementation.source);
		if (typeof source !== "string") return failed("code_error", `there is no program at \`${implementation.source}\``);
		const inputs = implementation.inputs === undefined ? {} : atPointer(invocation.arguments, implementation.inputs);
		const wall_ms = invocation.timeout_ms;
		const request: CodeRequest = { language: implementation.language, source, inputs: inputs ?? {}, wall_ms };
		return settleRun(
			() => this.#executor.runCode(request),
			wall_ms,
			signal,
			({ result, stdout }) => ({ result, stdout }),
		);
	}
}
