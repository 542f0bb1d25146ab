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
import { chooseBranches, type Hidden } from "./explain-branches.ts";
import { type Locale, phrase, saysFor, wantsFor } from "./explain-words.ts";

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

/**
 * `schema` is the imported root, `value` the instance, `locale` the language of what is said about it. Never empty for a
 * non-empty list of units.
 */
export function explain(
	units: readonly OutputUnit[],
	schema: JsonObject,
	value: Json,
	locale: Locale = "en",
): FieldError[] {
	const read = readUnits(units, schema);
	const { hidden, told, tagged } = chooseBranches(
		read,
		(at) => Object.values(own(read[at]?.node, read[at]?.keyword ?? "") ?? []).length,
		(keyword) => WRAPPERS.has(keyword),
	);
	const isHidden = hiddenBy([...hidden, ...read.filter(countsItems).map(containsPrefix)]);
	const found = new Map<string, FieldError>();
	const add = (error: FieldError): void => {
		const key = `${error.field}\n${error.issue}`;
		if (!found.has(key)) found.set(key, error);
	};
	const unknown: Unit[] = [];
	for (const [at, unit] of read.entries()) {
		if (WRAPPERS.has(unit.keyword) || told.has(at) || isHidden(unit)) continue;
		const tags = tagged.get(at);
		if (tags !== undefined)
			add(
				wrongTag(
					tags.map((place) => read[place] as Unit),
					locale,
				),
			);
		else if (unit.keyword === "false") unknown.push(unit);
		else if (unit.keyword === "required" || unit.keyword === "dependentRequired")
			for (const error of missing(unit, schema, value, locale)) add(error);
		else add(one(unit, schema, locale));
	}
	// `unevaluatedProperties: false` also names declared fields that failed by themselves
	const failed = [...found.values()].map((error) => error.field);
	for (const unit of unknown)
		if (!failed.some((field) => field === unit.field || field.startsWith(`${unit.field}/`)))
			add(unknownField(unit, schema, locale));
	const errors = [...found.values()].slice(0, ERRORS_MAX);
	if (errors.length > 0) return errors;
	return [
		{
			error: saysFor("other", locale),
			field: "",
			issue: "schema_violation",
			expected: describe(schema, schema, locale),
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

/** `false` has no place of its own in the schema: the validator tells it right after the keyword that led to it. */
function readUnits(units: readonly OutputUnit[], schema: JsonObject): Unit[] {
	let before = "";
	return units.slice(0, UNITS_MAX).map((unit): Unit => {
		const place = decodeURIComponent(unit.keywordLocation.slice(1));
		const location = unit.keyword === "false" ? `${before}/false` : place;
		before = location;
		const node = unit.keyword === "false" ? {} : schemaAt(schema, location.slice(0, location.lastIndexOf("/")));
		return { keyword: unit.keyword, field: decodeURIComponent(unit.instanceLocation.slice(1)), location, node };
	});
}

const countsItems = (unit: Unit): boolean => ["contains", "minContains", "maxContains"].includes(unit.keyword);

const containsPrefix = (unit: Unit): Hidden => ({
	location: `${unit.location.slice(0, unit.location.lastIndexOf("/"))}/contains`,
	field: unit.field,
});

/** By place, so that a list of a thousand wrong items does not compare each of its units with each of its branches. */
function hiddenBy(prefixes: readonly Hidden[]): (unit: Unit) => boolean {
	const fieldsAt = new Map<string, Set<string>>();
	for (const { location, field } of prefixes) fieldsAt.set(location, (fieldsAt.get(location) ?? new Set()).add(field));
	return (unit) =>
		above(unit.location).some((place) => {
			const fields = fieldsAt.get(place);
			return fields !== undefined && [unit.field, ...above(unit.field)].some((field) => fields.has(field));
		});
}

/** All pointers that lead to this one, the nearest first. */
function above(pointer: string): string[] {
	const found: string[] = [];
	for (let cut = pointer.lastIndexOf("/"); cut >= 0; cut = cut === 0 ? -1 : pointer.lastIndexOf("/", cut - 1))
		found.push(pointer.slice(0, cut));
	return found;
}

function missing(unit: Unit, root: JsonObject, value: Json, locale: Locale): FieldError[] {
	const holder = atPointer(value, unit.field);
	const names = unit.keyword === "required" ? list(own(unit.node, "required")) : dependents(unit.node, holder);
	return names
		.filter((name) => !(isJsonObject(holder) && Object.hasOwn(holder, name)))
		.map((name) => {
			const inner = propertySchema(certainParts(root, unit.node), name);
			return {
				error: `\`${name}\` ${saysFor("required", locale)}`,
				field: `${unit.field}/${pointerSegment(name)}`,
				issue: "required_field_missing",
				expected: describe(inner, root, locale),
				hint: exampleHint(inner, root, name, locale),
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

function one(unit: Unit, root: JsonObject, locale: Locale): FieldError {
	const name = label(unit.field, locale);
	const issue = ISSUE_OF.get(unit.keyword) ?? "schema_violation";
	const rule = own(unit.node, unit.keyword);
	const words = wantsFor(unit.keyword, locale);
	const expected = words === undefined ? describe(unit.node, root, locale) : `${words} ${JSON.stringify(rule)}`;
	return {
		error: `${name} ${saysFor(unit.keyword, locale)}`,
		field: unit.field,
		issue,
		expected,
		hint: exampleHint(unit.node, root, undefined, locale),
	};
}

/** `type: "crad"`: no branch is meant more than another, so all their tags are named. */
function wrongTag(refusals: readonly Unit[], locale: Locale): FieldError {
	const field = refusals[0]?.field ?? "";
	const allowed = refusals.flatMap(({ keyword, node }): Json[] => {
		const rule = own(node, keyword) ?? null;
		return keyword === "enum" && Array.isArray(rule) ? rule : [rule];
	});
	const named = [...new Set(allowed.map((item) => JSON.stringify(item)))].slice(0, 20).join(", ").slice(0, 400);
	return {
		error: `${label(field, locale)} ${saysFor("enum", locale)}`,
		field,
		issue: "enum_out_of_range",
		expected: `${phrase("one_of", locale)} ${named}`,
		hint: "",
	};
}

function unknownField(unit: Unit, root: JsonObject, locale: Locale): FieldError {
	const cut = unit.field.lastIndexOf("/");
	const holder = fieldSchema(root, unit.field.slice(0, cut));
	const known = certainParts(root, holder).flatMap((part) => Object.keys(own(part, "properties") ?? {}));
	const expected =
		known.length === 0
			? phrase("no_further_fields", locale)
			: `${phrase("one_of", locale)} ${known.slice(0, 30).join(", ")}`;
	return {
		error: `${label(unit.field, locale)} ${saysFor("false", locale)}`,
		field: unit.field,
		issue: "unknown_field",
		expected,
		hint: phrase("leave_out", locale),
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

function label(field: string, locale: Locale): string {
	const name = field
		.slice(field.lastIndexOf("/") + 1)
		.replaceAll("~1", "/")
		.replaceAll("~0", "~");
	return field === "" ? phrase("whole", locale) : `\`${name.slice(0, 64)}\``;
}
