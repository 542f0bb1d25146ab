/**
 * Judges a descriptor as a whole before it is stored (R2): shape, schemas, expressions and the relations between fields.
 * Every error is named by its field, all of them at once. It writes nothing and asks no network. Called by the routes
 * that register tools and by importers.
 */
import { compileExpression, type Expression } from "../expression.ts";
import { refTarget } from "../expression-schema.ts";
import { atPointer, canonicalJson, type Digest, isJsonObject, type Json, type JsonObject, own, pointerSegment } from "../json.ts";
import { DESCRIPTOR_MAX_BYTES } from "../limits.ts";
import type { FieldError, Issue } from "../refusal.ts";
import { TOOL_ID, type ToolDescriptor, toolDescriptor } from "./descriptor.ts";
import { importSchema } from "./import-schema.ts";
import { parseRequirement } from "./requirements.ts";
import { isFullThreePart, parseThreePart } from "./three-part.ts";

export { type CompiledTool, compileTool } from "./compile.ts";
export { judgePublish } from "./publish.ts";

export type CheckedDescriptor =
	| {
			readonly ok: true;
			readonly descriptor: ToolDescriptor;
			readonly definition_hash: string;
			readonly warnings: readonly string[];
	  }
	| { readonly ok: false; readonly errors: readonly FieldError[] };

/** `input` is whatever came over the wire. The hash covers the descriptor with its defaults filled in. */
export function checkDescriptor(input: unknown, digest: Digest): CheckedDescriptor {
	if (!isJsonObject(input))
		return { ok: false, errors: [fault("", "a tool descriptor must be an object", "object", "type_mismatch")] };
	const size = sizeOf(input);
	if (size === undefined || size > DESCRIPTOR_MAX_BYTES)
		return {
			ok: false,
			errors: [fault("", "the descriptor is too large", `at most ${DESCRIPTOR_MAX_BYTES} characters`, "too_large")],
		};
	const parsed = toolDescriptor.safeParse(input);
	const errors: FieldError[] = parsed.success ? [] : parsed.error.issues.flatMap((issue) => readIssue(issue, input));
	const warnings: string[] = [];
	checkParts(input, errors, warnings);
	if (!parsed.success || errors.length > 0) return { ok: false, errors: dedupe(errors) };
	const descriptor = parsed.data;
	checkRelations(descriptor, errors);
	if (errors.length > 0) return { ok: false, errors: dedupe(errors) };
	if (!saysWhatItDoesNot(descriptor.description))
		warnings.push("/description: say also what the tool does not do, and which tool to use instead");
	return { ok: true, descriptor, definition_hash: definitionHash(descriptor, digest), warnings };
}

/** The content address of a definition (decision 12). */
export function definitionHash(descriptor: ToolDescriptor, digest: Digest): string {
	return digest(canonicalJson(descriptor));
}

/** Characters of the JSON text; undefined for what JSON cannot say (too deep, not well-formed, not finite). */
function sizeOf(input: JsonObject): number | undefined {
	try {
		const text = JSON.stringify(input);
		canonicalJson(JSON.parse(text));
		return text.length;
	} catch {
		return undefined;
	}
}

/** What can be judged field by field, also when other fields are wrong. */
function checkParts(input: JsonObject, errors: FieldError[], warnings: string[]): void {
	const schema = own(input, "input_schema");
	let imported: JsonObject | undefined;
	if (isJsonObject(schema)) {
		const found = importSchema(schema, "/input_schema");
		errors.push(...found.errors);
		warnings.push(...found.warnings);
		if (own(schema, "type") !== "object")
			errors.push(
				fault("/input_schema/type", "`input_schema` must describe an object", "`object`", "schema_violation"),
			);
		if (found.errors.length === 0) imported = found.schema;
	}
	const output = own(input, "output_schema");
	if (isJsonObject(output)) {
		const found = importSchema(output, "/output_schema");
		errors.push(...found.errors);
		warnings.push(...found.warnings);
	}
	texts(own(input, "capabilities"), (text, at) => {
		if (!isFullThreePart(text))
			errors.push(
				fault(`/capabilities/${at}`, "a capability has three parts", "`domain:action:object`", "format_invalid"),
			);
	});
	texts(own(input, "required_permissions"), (text, at) => {
		if (parseThreePart(text) === undefined)
			errors.push(
				fault(
					`/required_permissions/${at}`,
					"a permission has three parts",
					"`domain:action:object`",
					"format_invalid",
				),
			);
	});
	texts(own(input, "requires"), (text, at) => {
		if (parseRequirement(text) === undefined)
			errors.push(
				fault(
					`/requires/${at}`,
					"not a known precondition",
					"workspace, device:browser, microapp:<id>, connection:<provider>, expert:<id>, mcp:<server>, provider:<id> or process:<id>",
					"enum_out_of_range",
				),
			);
	});
	for (const list of ["capabilities", "tags", "required_permissions", "requires", "depends_on", "aliases"])
		repeats(own(input, list), (at) =>
			errors.push(fault(`/${list}/${at}`, "is listed twice", "different entries", "not_unique")),
		);
	if (imported !== undefined) checkExpressions(input, imported, errors);
}

function checkExpressions(input: JsonObject, schema: JsonObject, errors: FieldError[]): void {
	const compiled = (source: Json | undefined, field: string): Expression | undefined => {
		if (typeof source !== "string") return undefined;
		const result = compileExpression(source, schema, "bool");
		if (result.ok) return result.expression;
		errors.push(fault(field, result.message, "an expression over `args` and `context`", "schema_violation"));
		return undefined;
	};
	compiled(own(own(input, "approval"), "when"), "/approval/when");
	const rules = own(input, "semantic_rules");
	if (Array.isArray(rules))
		for (const [i, rule] of rules.entries()) {
			compiled(own(rule, "expr"), `/semantic_rules/${i}/expr`);
			const field = own(rule, "field");
			if (typeof field === "string" && !namesField(schema, field))
				errors.push(
					fault(
						`/semantic_rules/${i}/field`,
						"names no field of `input_schema`",
						"a top-level field or a JSON Pointer",
						"unknown_name",
					),
				);
		}
	const args = own(own(input, "fallback"), "args");
	if (isJsonObject(args))
		for (const name of Object.keys(args)) {
			const source = args[name];
			if (typeof source !== "string") continue;
			const result = compileExpression(source, schema, "any");
			if (!result.ok)
				errors.push(
					fault(
						`/fallback/args/${pointerSegment(name)}`,
						result.message,
						"an expression over `args` and `context`",
						"schema_violation",
					),
				);
		}
}

/** What relates one field to another; judged on the parsed descriptor. */
function checkRelations(descriptor: ToolDescriptor, errors: FieldError[]): void {
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
				"a communication tool must declare its idempotency (C5)",
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
	if (typeof fallback === "object" && !TOOL_ID.test(baseId(fallback.tool_id)))
		errors.push(fault("/fallback/tool_id", "is not a tool id", "`tool_id` or `tool_id@major`", "format_invalid"));
	if (typeof fallback === "object" && baseId(fallback.tool_id) === tool_id)
		errors.push(fault("/fallback/tool_id", "a tool cannot fall back to itself", "another tool", "schema_violation"));
	for (const [i, name] of descriptor.depends_on.entries()) {
		if (!TOOL_ID.test(baseId(name)))
			errors.push(fault(`/depends_on/${i}`, "is not a tool id", "`tool_id` or `tool_id@major`", "format_invalid"));
		if (baseId(name) === tool_id)
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

/** `tool_id@major` pins a major (R3). */
const baseId = (reference: string): string => reference.replace(/@(?:0|[1-9]\d{0,5})$/, "");

/** A top-level name or a JSON Pointer to something that `input_schema` declares. */
function namesField(root: JsonObject, field: string): boolean {
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

/** R2's lint: a description sets a limit or names a sibling. */
function saysWhatItDoesNot(description: string): boolean {
	return /\b(?:not|never|only|cannot|can't|doesn't|don't|instead|except|unless|without)\b|不|仅|只|请使用/i.test(
		description,
	);
}

function fault(field: string, error: string, expected: string, issue: Issue, hint = ""): FieldError {
	return { error, field, issue, expected, hint };
}

type ZodIssue = {
	readonly code: string;
	readonly path: readonly PropertyKey[];
	readonly message: string;
	readonly input?: unknown;
};

/** One zod issue as named errors: every unknown member by its own pointer. */
function readIssue(issue: ZodIssue, input: JsonObject): FieldError[] {
	const field = issue.path.map((part) => `/${pointerSegment(String(part))}`).join("");
	const details = issue as ZodIssue & { keys?: string[]; expected?: string; values?: unknown[]; errors?: ZodIssue[][] };
	if (issue.code === "unrecognized_keys")
		return (details.keys ?? []).map((key) =>
			fault(
				`${field}/${pointerSegment(key)}`,
				`\`${key.slice(0, 64)}\` is not a known field`,
				"no such field",
				"unknown_field",
				"leave it out",
			),
		);
	if (atPointer(input, field) === undefined)
		return [fault(field, `\`${field.slice(1)}\` is missing`, String(details.expected ?? details.values?.join(", ") ?? "a value"), "required_field_missing")];
	const kinds: { [code: string]: Issue } = {
		invalid_type: "type_mismatch",
		invalid_value: "enum_out_of_range",
		invalid_union: "schema_violation",
		invalid_format: "pattern_mismatch",
		too_small: "out_of_range",
		too_big: "out_of_range",
	};
	const expected = details.values?.map(String).join(", ") ?? details.expected ?? "see the descriptor's documentation";
	return [fault(field, plain(issue.message), String(expected), kinds[issue.code] ?? "schema_violation")];
}

/** Messages start in lower case and end without a stop. */
const plain = (message: string): string =>
	(message.charAt(0).toLowerCase() + message.slice(1)).replace(/\.$/, "").slice(0, 300);

function texts(value: Json | undefined, visit: (text: string, at: number) => void): void {
	if (Array.isArray(value)) for (const [i, item] of value.entries()) if (typeof item === "string") visit(item, i);
}

function repeats(value: Json | undefined, visit: (at: number) => void): void {
	if (Array.isArray(value)) for (const [i, item] of value.entries()) if (value.indexOf(item) !== i) visit(i);
}

function dedupe(errors: readonly FieldError[]): FieldError[] {
	return [...new Map(errors.map((error) => [`${error.field}\n${error.issue}\n${error.error}`, error])).values()];
}
