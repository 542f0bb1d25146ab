/** Tools for unit tests: a complete descriptor with what a test wants to vary. Nothing that ships calls it. */
import { invariant } from "../invariant.ts";
import type { Digest, JsonObject } from "../json.ts";
import type { ToolVersion } from "./descriptor.ts";
import { checkDescriptor } from "./register.ts";

export function sampleDescriptor(more: JsonObject = {}): JsonObject {
	return {
		tool_id: "pay",
		name: "pay",
		version: "1.0.0",
		description: "Pays an amount. Does not refund, use `refund` instead.",
		category: "data_retrieval",
		input_schema: {
			type: "object",
			properties: { to: { type: "string" }, amount: { type: "integer" } },
			required: ["to"],
			additionalProperties: false,
		},
		implementation: { kind: "builtin", name: "pay" },
		...more,
	};
}

/** A checked, stored version; throws when the descriptor is not accepted. */
export function sampleTool(more: JsonObject = {}, digest: Digest = (text) => `hash of ${text.length}`): ToolVersion {
	const checked = checkDescriptor(sampleDescriptor(more), digest);
	invariant(checked.ok, `sample is not accepted: ${JSON.stringify(checked)}`);
	const { descriptor, definition_hash } = checked;
	return { descriptor, definition_hash, status: "online", created_at: "2026-11-30T00:00:00.000Z", offline_since: null };
}
