/** An invocation of a dataset tool, with what the invoker reads and defaults for the rest. */
import type { JsonObject } from "#core/json.ts";
import type { InvokeOutcome, Success } from "#core/outcome.ts";
import type { Invocation } from "#core/ports.ts";
import { type Implementation, toolDescriptor } from "#core/registry/descriptor.ts";

export function invocation(
	implementation: Implementation,
	args: JsonObject,
	more: Partial<Invocation> & { input_schema?: JsonObject } = {},
): Invocation {
	const { input_schema = { type: "object" }, ...rest } = more;
	return {
		tenant_id: "tenant_dev",
		run_id: `run_${"0".repeat(32)}`,
		tool_call_id: "call_1",
		attempt: 1,
		principal: { tenant_id: "tenant_dev", principal_id: "usr_1", kind: "user", name: "U" },
		descriptor: toolDescriptor.parse({
			tool_id: "subject",
			name: "subject",
			version: "1.0.0",
			description: "the tool under test",
			category: "data_retrieval",
			input_schema,
			implementation,
			effect: "read",
			approval: { mode: "never" },
		}),
		arguments: args,
		timeout_ms: 5_000,
		idempotency_key: null,
		trace_id: "1".repeat(32),
		...rest,
	};
}

export function success(outcome: InvokeOutcome): Success {
	if (outcome.kind !== "success") throw new Error(`not a success: ${JSON.stringify(outcome)}`);
	return outcome;
}

export const quiet: AbortSignal = new AbortController().signal;
