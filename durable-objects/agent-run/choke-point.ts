/**
 * The one function that invokes tools: every kind and every caller ends here, after the same stages, with a call that the
 * machine has moved to DISPATCHED in the same step that judged it. It adds the last bounds and lets nothing escape as a throw.
 */

import { invariant } from "#core/invariant.ts";
import { checkResult } from "#core/invoke/check-result.ts";
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { Invocation, ToolInvoker } from "#core/ports.ts";
import type { CompiledTool } from "#core/registry/compile.ts";
import type { ToolKind } from "#core/registry/descriptor.ts";
import type { CallRecord, RunRecord } from "#core/run/state.ts";
import type { Deadlines } from "./deadlines.ts";

export type Invokers = Readonly<Record<ToolKind, ToolInvoker>>;

/** An invoker keeps its own time; this is for one that does not. */
const OVERRUN_MS = 500;

export type Dispatched = {
	readonly run: RunRecord;
	readonly call: CallRecord;
	readonly attempt: number;
	readonly timeout_ms: number;
	readonly tool: CompiledTool;
};

export async function invokeTool(
	invokers: Invokers,
	dispatched: Dispatched,
	cancel: AbortController,
	deadlines: Deadlines,
): Promise<InvokeOutcome> {
	const { run, call, attempt, timeout_ms, tool } = dispatched;
	const { descriptor } = tool.version;
	invariant(
		call.state === "DISPATCHED" && call.frozen !== null && call.attempts.length === attempt,
		"only a dispatched, frozen call is invoked",
	);
	const invocation: Invocation = {
		tenant_id: run.tenant_id,
		run_id: run.run_id,
		tool_call_id: call.tool_call_id,
		attempt,
		principal: run.principal,
		descriptor,
		arguments: call.frozen,
		timeout_ms,
		idempotency_key: descriptor.idempotency.mode === "key" ? call.tool_call_id : null,
		trace_id: run.trace_id,
	};
	const possible = descriptor.effect === "read" ? "none" : "possible";
	const invoker = invokers[descriptor.implementation.kind];
	const { promise: overrun, resolve } = Promise.withResolvers<InvokeOutcome>();
	const callOff = deadlines.set(timeout_ms + OVERRUN_MS, () => {
		cancel.abort();
		resolve({ kind: "timeout", phase: "wall", effect: possible });
	});
	try {
		return checked(await Promise.race([invoker.invoke(invocation, cancel.signal), overrun]), tool, possible);
	} catch {
		// An invoker never throws; one that does may have acted, and its message may hold anything.
		return failed("internal", "the tool could not be invoked", { effect: possible });
	} finally {
		callOff();
	}
}

/** A result that JSON cannot say is none; one that the tool did not promise is said to be so. */
function checked(outcome: InvokeOutcome, tool: CompiledTool, possible: "none" | "possible"): InvokeOutcome {
	if (outcome.kind === "success" && JSON.stringify(outcome.result) === undefined) {
		return failed("invalid_response", "the tool returned nothing that JSON can say", { effect: possible });
	}
	return checkResult(tool.version.descriptor, tool.validateResult, outcome);
}
