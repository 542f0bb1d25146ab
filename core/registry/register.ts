/**
 * Judges a descriptor as a whole before it is stored (R2): shape, schemas, expressions and the relations between fields.
 * Every error is named by its field, all of them at once. It writes nothing and asks no network. Called by the routes
 * that register tools and by importers.
 */
import { compileExpression, type Expression } from "../expression.ts";
import { canonicalJson, type Digest, isJsonObject, type Json, type JsonObject, own, pointerSegment } from "../json.ts";
import { DESCRIPTOR_MAX_BYTES } from "../limits.ts";
import type { FieldError } from "../refusal.ts";
import { type ToolDescriptor, toolDescriptor } from "./descriptor.ts";
import { importSchema } from "./import-schema.ts";
import { fault, readIssue } from "./read-issue.ts";
import { checkRelations, namesField } from "./relations.ts";
import { isObserved, parseRequirement } from "./requirements.ts";
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
		const requirement = parseRequirement(text);
		if (requirement !== undefined && isObserved(requirement)) return;
		const error =
			requirement === undefined
				? "not a known precondition"
				: "nothing in this version can observe this precondition, so the tool would never be available";
		errors.push(fault(`/requires/${at}`, error, "`workspace`, or no entry", "enum_out_of_range"));
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

/** R2's lint: a description sets a limit or names a sibling. */
function saysWhatItDoesNot(description: string): boolean {
	return /\b(?:not|never|only|cannot|can't|doesn't|don't|instead|except|unless|without)\b|不|仅|只|请使用/i.test(
		description,
	);
}

function texts(value: Json | undefined, visit: (text: string, at: number) => void): void {
	if (Array.isArray(value)) for (const [i, item] of value.entries()) if (typeof item === "string") visit(item, i);
}

function repeats(value: Json | undefined, visit: (at: number) => void): void {
	if (Array.isArray(value)) for (const [i, item] of value.entries()) if (value.indexOf(item) !== i) visit(i);
}

function dedupe(errors: readonly FieldError[]): FieldError[] {
	return [...new Map(errors.map((error) => [`${error.field}\n${error.issue}\n${error.error}`, error])).values()];
}
