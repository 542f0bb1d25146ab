/**
 * What relates one field of a descriptor to another (R2, C5): pointers that lead into the input schema, classes that need
 * a declaration, references that would go in a circle. Judged on the parsed descriptor. Called by `register.ts`.
 */
import { refTarget } from "../expression-schema.ts";
import { type Json, type JsonObject, own } from "../json.ts";
import type { FieldError } from "../refusal.ts";
import { TOOL_ID, type ToolDescriptor } from "./descriptor.ts";
import { fault } from "./read-issue.ts";
import { readReference } from "./tool-reference.ts";

/** What relates one field to another; judged on the parsed descriptor. */
export function checkRelations(descriptor: ToolDescriptor, errors: FieldError[]): void {
	const schema = descriptor.input_schema as JsonObject;
	const { implementation, idempotency, fallback, on_unknown, tool_id } = descriptor;
	const pointer = (field: string, target: string | undefined): void => {
		if (target !== undefined && !namesField(schema, target))
			errors.push(
				fault(field, "leads to no field of `input_schema`", "a JSON Pointer such as `/code`", "unknown_name"),
			);
	};
	if (implementation.kind === "code") {
		pointer("/implementation/source", implementation.source);
		pointer("/implementation/inputs", implementation.inputs);
	}
	pointer("/idempotency/target", idempotency.target);
	if (descriptor.category === "communication" && idempotency.mode === "none")
		errors.push(
			fault(
				"/idempotency/mode",
				"a communication tool must declare its idempotency",
				"`natural` or `key`",
				"schema_violation",
			),
		);
	if (descriptor.cache !== undefined && descriptor.effect !== "read")
		errors.push(fault("/cache", "only a declared read may be cached", "`effect: read`", "schema_violation"));
	if (fallback === "snapshot" && descriptor.effect !== "read")
		errors.push(
			fault("/fallback", "only a declared read may fall back to a snapshot", "`effect: read`", "schema_violation"),
		);
	if (typeof fallback === "object" && !TOOL_ID.test(readReference(fallback.tool_id).tool_id))
		errors.push(fault("/fallback/tool_id", "is not a tool id", "`tool_id` or `tool_id@major`", "format_invalid"));
	if (typeof fallback === "object" && readReference(fallback.tool_id).tool_id === tool_id)
		errors.push(fault("/fallback/tool_id", "a tool cannot fall back to itself", "another tool", "schema_violation"));
	for (const [i, name] of descriptor.depends_on.entries()) {
		if (!TOOL_ID.test(readReference(name).tool_id))
			errors.push(fault(`/depends_on/${i}`, "is not a tool id", "`tool_id` or `tool_id@major`", "format_invalid"));
		if (readReference(name).tool_id === tool_id)
			errors.push(fault(`/depends_on/${i}`, "a tool cannot depend on itself", "another tool", "schema_violation"));
	}
	if (on_unknown === `reconcile:${tool_id}`)
		errors.push(
			fault("/on_unknown", "a tool cannot reconcile itself", "another tool, one that reads", "schema_violation"),
		);
	if (tool_id.startsWith("mcp:"))
		errors.push(
			fault(
				"/tool_id",
				"ids of MCP projections are made by discovery only",
				"`^[a-z][a-z0-9_]{0,63}$`",
				"format_invalid",
			),
		);
}

/** A top-level name or a JSON Pointer to something that `input_schema` declares. */
export function namesField(root: JsonObject, field: string): boolean {
	const tokens = field.startsWith("/") ? field.slice(1).split("/") : [field];
	let at: Json[] = [root];
	for (const raw of tokens) {
		const token = raw.replaceAll("~1", "/").replaceAll("~0", "~");
		at = at
			.flatMap((node) => branches(root, node))
			.flatMap((node) => {
				const next = own(own(node, "properties"), token) ?? (/^(\d+|\*)$/.test(token) ? own(node, "items") : undefined);
				return next === undefined ? [] : [next];
			});
	}
	return at.length > 0;
}

/** A schema and all that may also describe the same value. */
function branches(root: JsonObject, node: Json, seen = new Set<Json>()): Json[] {
	if (seen.has(node)) return [];
	seen.add(node);
	const ref = own(node, "$ref");
	const more = ["allOf", "anyOf", "oneOf"].flatMap((keyword) => {
		const list = own(node, keyword);
		return Array.isArray(list) ? list : [];
	});
	const target = typeof ref === "string" ? refTarget(root, ref) : undefined;
	return [node, ...[...more, ...(target === undefined ? [] : [target])].flatMap((part) => branches(root, part, seen))];
}
