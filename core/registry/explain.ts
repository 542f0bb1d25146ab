/**
 * Turns the validator's output units into what a planner can repair from (V4): one entry per fault, by JSON Pointer, with
 * a frozen issue, what was expected and a hint from the schema's own examples. It never quotes the value that was sent,
 * which may be a secret, and drops the units that only say "something inside is wrong". Called by the compiled validator.
 */
import type { OutputUnit } from "@cfworker/json-schema";
import { certainParts, propertySchema, refTarget } from "../expression-schema.ts";
import { atPointer, isJsonObject, type Json, type JsonObject, own, pointerSegment } from "../json.ts";
import type { FieldError, Issue } from "../refusal.ts";
import { describe, exampleHint } from "./describe-schema.ts";

/** More than a model repairs at once. */
const ERRORS_MAX = 20;
/** A list of 60,000 wrong items has as many units; the first ones say it all. */
const UNITS_MAX = 2_000;

/** Keywords whose unit only wraps the units of what is inside. */
const WRAPPERS = new Set([
	"$ref",
	"allOf",
	"if",
	"properties",
	"patternProperties",
	"additionalProperties",
	"unevaluatedProperties",
	"propertyNames",
	"dependentSchemas",
	"items",
	"prefixItems",
	"unevaluatedItems",
]);

const ISSUE_OF: ReadonlyMap<string, Issue> = new Map<string, Issue>([
	["type", "type_mismatch"],
	["enum", "enum_out_of_range"],
	["const", "enum_out_of_range"],
	["required", "required_field_missing"],
	["dependentRequired", "required_field_missing"],
	["format", "format_invalid"],
	["pattern", "pattern_mismatch"],
	["minimum", "out_of_range"],
	["maximum", "out_of_range"],
	["exclusiveMinimum", "out_of_range"],
	["exclusiveMaximum", "out_of_range"],
	["multipleOf", "out_of_range"],
	["minLength", "out_of_range"],
	["maxLength", "out_of_range"],
	["minItems", "out_of_range"],
	["maxItems", "out_of_range"],
	["minProperties", "out_of_range"],
	["maxProperties", "out_of_range"],
	["uniqueItems", "not_unique"],
	["false", "unknown_field"],
]);

type Unit = { readonly keyword: string; readonly field: string; readonly location: string; readonly node: JsonObject };

/** `schema` is the imported root, `value` the instance. Never empty for a non-empty list of units. */
export function explain(units: readonly OutputUnit[], schema: JsonObject, value: Json): FieldError[] {
	const read = units.slice(0, UNITS_MAX).map((unit): Unit => {
		const location = decodeURIComponent(unit.keywordLocation.slice(1));
		const node = unit.keyword === "false" ? {} : schemaAt(schema, location.slice(0, location.lastIndexOf("/")));
		return { keyword: unit.keyword, field: decodeURIComponent(unit.instanceLocation.slice(1)), location, node };
	});
	const noise = read.filter(hidesInside).map(insidePrefix);
	const found = new Map<string, FieldError>();
	const add = (error: FieldError): void => {
		const key = `${error.field}\n${error.issue}`;
		if (!found.has(key)) found.set(key, error);
	};
	const unknown: Unit[] = [];
	for (const unit of read) {
		if (WRAPPERS.has(unit.keyword) || noise.some((prefix) => isInside(unit, prefix))) continue;
		if (unit.keyword === "false") unknown.push(unit);
		else if (unit.keyword === "required" || unit.keyword === "dependentRequired")
			for (const error of missing(unit, schema, value)) add(error);
		else add(one(unit, schema));
	}
	// `unevaluatedProperties: false` also names declared fields that failed by themselves
	const failed = [...found.values()].map((error) => error.field);
	for (const unit of unknown)
		if (!failed.some((field) => field === unit.field || field.startsWith(`${unit.field}/`)))
			add(unknownField(unit, schema));
	const errors = [...found.values()].slice(0, ERRORS_MAX);
	if (errors.length > 0) return errors;
	return [
		{
			error: "does not match the schema",
			field: "",
			issue: "schema_violation",
			expected: describe(schema, schema),
			hint: "",
		},
	];
}

/** Follows a keyword location from the root, through references. */
function schemaAt(root: JsonObject, location: string): JsonObject {
	let at: Json | undefined = root;
	for (const raw of location.split("/").slice(1)) {
		const token = raw.replaceAll("~1", "/").replaceAll("~0", "~");
		const next: Json | undefined = Array.isArray(at) ? at[Number(token)] : own(at, token);
		at = token === "$ref" && typeof next === "string" ? refTarget(root, next) : next;
	}
	return isJsonObject(at) ? at : {};
}

const hidesInside = (unit: Unit): boolean =>
	["anyOf", "oneOf", "contains", "minContains", "maxContains"].includes(unit.keyword);

function insidePrefix(unit: Unit): { location: string; field: string } {
	const location = unit.keyword.endsWith("Contains")
		? `${unit.location.slice(0, unit.location.lastIndexOf("/"))}/contains`
		: unit.location;
	return { location, field: unit.field };
}

function isInside(unit: Unit, prefix: { location: string; field: string }): boolean {
	const below = unit.location.startsWith(`${prefix.location}/`) || unit.keyword === "false";
	return (
		below && (unit.field === prefix.field || unit.field.startsWith(`${prefix.field}/`)) && !hidesHere(unit, prefix)
	);
}

const hidesHere = (unit: Unit, prefix: { location: string; field: string }): boolean =>
	unit.keyword === "false" && unit.field === prefix.field;

function missing(unit: Unit, root: JsonObject, value: Json): FieldError[] {
	const holder = atPointer(value, unit.field);
	const names = unit.keyword === "required" ? list(own(unit.node, "required")) : dependents(unit.node, holder);
	return names
		.filter((name) => !(isJsonObject(holder) && Object.hasOwn(holder, name)))
		.map((name) => {
			const inner = propertySchema(certainParts(root, unit.node), name);
			return {
				error: `\`${name}\` is missing`,
				field: `${unit.field}/${pointerSegment(name)}`,
				issue: "required_field_missing",
				expected: describe(inner, root),
				hint: exampleHint(inner, root, name),
			};
		});
}

function dependents(node: JsonObject, holder: Json | undefined): string[] {
	const rules = own(node, "dependentRequired");
	if (!isJsonObject(rules)) return [];
	return Object.keys(rules).flatMap((name) => (own(holder, name) === undefined ? [] : list(own(rules, name))));
}

const list = (value: Json | undefined): string[] =>
	Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];

function one(unit: Unit, root: JsonObject): FieldError {
	const name = label(unit.field);
	const issue = ISSUE_OF.get(unit.keyword) ?? "schema_violation";
	const rule = own(unit.node, unit.keyword);
	const words = WORDS.get(unit.keyword);
	const expected = words === undefined ? describe(unit.node, root) : `${words} ${JSON.stringify(rule)}`;
	return {
		error: `${name} ${SAYS.get(unit.keyword) ?? "does not match the schema"}`,
		field: unit.field,
		issue,
		expected,
		hint: exampleHint(unit.node, root, undefined),
	};
}

function unknownField(unit: Unit, root: JsonObject): FieldError {
	const cut = unit.field.lastIndexOf("/");
	const holder = fieldSchema(root, unit.field.slice(0, cut));
	const known = certainParts(root, holder).flatMap((part) => Object.keys(own(part, "properties") ?? {}));
	const expected = known.length === 0 ? "no further fields" : `one of ${known.slice(0, 30).join(", ")}`;
	return {
		error: `${label(unit.field)} is not a known field`,
		field: unit.field,
		issue: "unknown_field",
		expected,
		hint: "leave it out",
	};
}

/** The schema of a field by its pointer in the value, where properties and items lead there for certain. */
function fieldSchema(root: JsonObject, field: string): JsonObject | undefined {
	let at: JsonObject | undefined = root;
	for (const raw of field.split("/").slice(1)) {
		const token = raw.replaceAll("~1", "/").replaceAll("~0", "~");
		const parts = certainParts(root, at);
		const items = parts.map((part) => own(part, "items")).find(isJsonObject);
		at = propertySchema(parts, token) ?? (/^\d+$/.test(token) ? items : undefined);
	}
	return at;
}

const SAYS: ReadonlyMap<string, string> = new Map([
	["type", "has the wrong type"],
	["enum", "is not one of the allowed values"],
	["const", "is not the allowed value"],
	["format", "has the wrong format"],
	["pattern", "does not match the pattern"],
	["minimum", "is too small"],
	["maximum", "is too large"],
	["exclusiveMinimum", "is too small"],
	["exclusiveMaximum", "is too large"],
	["multipleOf", "is not a multiple of the step"],
	["minLength", "is too short"],
	["maxLength", "is too long"],
	["minItems", "has too few items"],
	["maxItems", "has too many items"],
	["minProperties", "has too few fields"],
	["maxProperties", "has too many fields"],
	["uniqueItems", "repeats an item"],
	["anyOf", "matches none of the allowed forms"],
	["oneOf", "does not match exactly one of the allowed forms"],
	["not", "matches a form that is excluded"],
	["contains", "lacks a required item"],
	["minContains", "has too few of the required items"],
	["maxContains", "has too many of the counted items"],
]);

const WORDS: ReadonlyMap<string, string> = new Map([
	["minimum", "at least"],
	["maximum", "at most"],
	["exclusiveMinimum", "more than"],
	["exclusiveMaximum", "less than"],
	["multipleOf", "a multiple of"],
	["minLength", "a text length of at least"],
	["maxLength", "a text length of at most"],
	["minItems", "a number of items of at least"],
	["maxItems", "a number of items of at most"],
	["minProperties", "a number of fields of at least"],
	["maxProperties", "a number of fields of at most"],
	["pattern", "text matching"],
	["format", "format"],
]);

function label(field: string): string {
	const name = field
		.slice(field.lastIndexOf("/") + 1)
		.replaceAll("~1", "/")
		.replaceAll("~0", "~");
	return field === "" ? "the whole" : `\`${name.slice(0, 64)}\``;
}
