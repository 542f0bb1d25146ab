/** Whether a result is what its tool promises (I10). Called by the choke point, before a large result becomes an artifact. */
import type { Json } from "../json.ts";
import { failed, type InvokeOutcome } from "../outcome.ts";
import type { FieldError } from "../refusal.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";

/**
 * A read's result that breaks its schema is worth nothing and fails; a write has acted, so its result is kept and the
 * difference noted. For `http` the schema describes the body, which is what its author knows.
 */
export function checkResult(
	descriptor: ToolDescriptor,
	validate: (result: Json) => readonly FieldError[],
	outcome: InvokeOutcome,
): InvokeOutcome {
	if (outcome.kind !== "success") return outcome;
	const { implementation, effect } = descriptor;
	const { body = null } =
		implementation.kind === "http" ? (outcome.result as { body?: Json }) : { body: outcome.result };
	const errors = validate(body);
	if (errors.length === 0) return outcome;
	const named = errors.slice(0, 3).map((error) => `${error.field || "the result"}: ${error.error}`);
	const message = `the result is not what the tool's output_schema promises: ${named.join("; ")}`;
	return effect === "read" ? failed("invalid_response", message) : { ...outcome, notes: [...outcome.notes, message] };
}
