/**
 * The keywords of JSON Schema 2020-12 that Belay runs, each with the shape its value must have, and those it refuses
 * with the reason. A keyword in neither list is an annotation and is dropped before validation. Called by schema import.
 */
import { isJsonObject, type Json } from "../json.ts";

/** Where sub-schemas live. */
export const ONE_SCHEMA: readonly string[] = [
	"items",
	"contains",
	"additionalProperties",
	"unevaluatedProperties",
	"unevaluatedItems",
	"propertyNames",
	"not",
	"if",
	"then",
	"else",
];
export const SCHEMA_LIST: readonly string[] = ["prefixItems", "allOf", "anyOf", "oneOf"];
export const SCHEMA_MAP: readonly string[] = [
	"$defs",
	"definitions",
	"properties",
	"patternProperties",
	"dependentSchemas",
];

const TYPES = ["null", "boolean", "object", "array", "number", "string", "integer"];
const isType = (value: Json): boolean => typeof value === "string" && TYPES.includes(value);
const isCount = (value: Json): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isNumber = (value: Json): boolean => typeof value === "number" && Number.isFinite(value);
const isText = (value: Json): boolean => typeof value === "string";
const isFlag = (value: Json): boolean => typeof value === "boolean";
const isNames = (value: Json): boolean =>
	Array.isArray(value) && value.every(isText) && new Set(value as string[]).size === value.length;

type Shape = { readonly fits: (value: Json) => boolean; readonly expected: string };
const count: Shape = { fits: isCount, expected: "a whole number of 0 or more" };
const number: Shape = { fits: isNumber, expected: "a number" };
const names: Shape = { fits: isNames, expected: "an array of different strings" };

/** Keywords that hold no sub-schema. */
export const PLAIN: ReadonlyMap<string, Shape> = new Map<string, Shape>([
	[
		"type",
		{
			fits: (value) =>
				isType(value) || (Array.isArray(value) && value.length > 0 && isNames(value) && value.every(isType)),
			expected: `one of ${TYPES.join(", ")}, or an array of them`,
		},
	],
	["enum", { fits: (value) => Array.isArray(value) && value.length > 0, expected: "an array with at least one value" }],
	["const", { fits: () => true, expected: "a value" }],
	["required", names],
	["minProperties", count],
	["maxProperties", count],
	["minItems", count],
	["maxItems", count],
	["minContains", count],
	["maxContains", count],
	["minLength", count],
	["maxLength", count],
	["minimum", number],
	["maximum", number],
	["exclusiveMinimum", number],
	["exclusiveMaximum", number],
	["multipleOf", { fits: (value) => isNumber(value) && (value as number) > 0, expected: "a number above 0" }],
	["uniqueItems", { fits: isFlag, expected: "true or false" }],
	["pattern", { fits: isText, expected: "a regular expression" }],
	["format", { fits: isText, expected: "the name of a format" }],
	[
		"dependentRequired",
		{
			fits: (value) => isJsonObject(value) && Object.values(value).every(isNames),
			expected: "an object of arrays of different strings",
		},
	],
]);

/** Refused: what the validator gets wrong (facts: $dynamicRef, $vocabulary), what would reach outside, and older drafts' words that would silently bind nothing. */
export const REFUSED: ReadonlyMap<string, string> = new Map([
	["$dynamicRef", "is not supported, use `$ref`"],
	["$dynamicAnchor", "is not supported, use `$defs`"],
	["$recursiveRef", "belongs to an older draft, use `$ref`"],
	["$recursiveAnchor", "belongs to an older draft, use `$defs`"],
	["$vocabulary", "is not supported"],
	["$anchor", "is not supported, use `$ref` with `#/…`"],
	["additionalItems", "belongs to an older draft, use `prefixItems` with `items`"],
	["dependencies", "belongs to an older draft, use `dependentRequired` or `dependentSchemas`"],
]);

/** Formats that are checked. Others are annotations. `url` is no JSON Schema format; it is read as `uri`. */
export const FORMATS: ReadonlyMap<string, string> = new Map(
	[
		"date",
		"time",
		"date-time",
		"duration",
		"uri",
		"uri-reference",
		"email",
		"hostname",
		"ipv4",
		"ipv6",
		"uuid",
		"json-pointer",
		"regex",
	]
		.map((format): [string, string] => [format, format])
		.concat([["url", "uri"]]),
);

/** Dangers that a parameter may be marked with (api: `x-belay-kind`). */
export const DANGER_KINDS = ["url", "sql", "path", "domain", "email", "shell", "code"] as const;
export type DangerKind = (typeof DANGER_KINDS)[number];
