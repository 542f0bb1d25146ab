/**
 * Compiles an imported schema to a function that names everything structurally wrong with a value (V1, V4). Built once
 * per definition. It takes imported schemas only, never a raw one, and bounds the work of one validation before and while
 * it runs: a recursive schema with overlapping branches would otherwise double it with every level. Called by `compile.ts`.
 */
import { dereference, validate } from "@cfworker/json-schema";
import { lintPattern } from "../expression-patterns.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../json.ts";
import type { FieldError } from "../refusal.ts";
import { explain } from "./explain.ts";
import type { Locale } from "./explain-words.ts";
import { followSchema, schemasLeadingTo } from "./follow-schema.ts";
import { subSchemas } from "./sub-schemas.ts";

/**
 * Sub-schema applications per validation: a floor for small values, so much per part of a larger one, and a ceiling. An
 * honest schema applies a handful to each part; 10,000 deep ones take some 0.1 s.
 */
const STEPS_FLOOR = 10_000;
const STEPS_PER_PART = 20;
const STEPS_MAX = 300_000;
/** `uniqueItems` compares every pair: 2,000 items are four million comparisons, some 20 ms. */
const UNIQUE_ITEMS_MAX = 2_000;
/** Names that are matched against patterns: below the smallest bound that the linter gives. */
const KEY_MAX_CHARS = 512;

class OverBudget extends Error {}

/** What a schema makes costly: counted once, checked before each validation. */
type Costs = {
	unique: boolean;
	keys: boolean;
	readonly texts: Map<JsonObject, number>;
	leading: ReadonlySet<JsonObject>;
};

/** Returns all structural errors of a value, none when it is valid. Never throws on any JSON value. */
export function compileValidator(imported: JsonObject): (value: Json, locale?: Locale) => FieldError[] {
	let left = Number.POSITIVE_INFINITY; // compiling reads the keyword too
	const count = (): void => {
		left -= 1;
		if (left < 0) throw new OverBudget();
	};
	const schema = JSON.parse(JSON.stringify(imported)) as JsonObject;
	meter(schema, count);
	const costs = costsOf(imported);
	const lookup = dereference(schema);
	return (value, locale = "en") => {
		const costly = tooCostly(imported, costs, value);
		if (costly !== undefined) return [costly];
		left = Math.min(STEPS_MAX, STEPS_FLOOR + STEPS_PER_PART * partsOf(value));
		try {
			const result = validate(value, schema, "2020-12", lookup, false);
			return result.valid ? [] : explain(result.errors, imported, value, locale);
		} catch (error) {
			if (error instanceof OverBudget || error instanceof RangeError)
				return [tooLarge("", "the arguments take too much work to check against the schema")];
			throw error;
		}
	};
}

/** The validator reads `$recursiveRef`, which import refuses, once for every application of a sub-schema. */
function meter(node: Json, count: () => void): void {
	if (!isJsonObject(node)) return;
	for (const [inner] of subSchemas(node, "")) meter(inner, count);
	Object.defineProperty(node, "$recursiveRef", { enumerable: false, get: count });
}

function costsOf(root: JsonObject): Costs {
	const costs: Costs = { unique: false, keys: false, texts: new Map(), leading: new Set() };
	const look = (node: Json): void => {
		if (!isJsonObject(node)) return;
		costs.unique ||= own(node, "uniqueItems") === true;
		costs.keys ||= Object.hasOwn(node, "patternProperties") || Object.hasOwn(node, "propertyNames");
		const pattern = own(node, "pattern");
		const verdict = typeof pattern === "string" ? lintPattern(pattern) : undefined;
		if (verdict?.ok && verdict.max_chars !== Number.POSITIVE_INFINITY) costs.texts.set(node, verdict.max_chars);
		for (const [inner] of subSchemas(node, "")) look(inner);
	};
	look(root);
	costs.leading = schemasLeadingTo(root, (node) => costs.texts.has(node));
	return costs;
}

function tooCostly(root: JsonObject, costs: Costs, value: Json): FieldError | undefined {
	if (costs.unique && some(value, (node) => Array.isArray(node) && node.length > UNIQUE_ITEMS_MAX))
		return tooLarge("", `an array here may hold at most ${UNIQUE_ITEMS_MAX} items`);
	if (
		costs.keys &&
		some(value, (node) => isJsonObject(node) && Object.keys(node).some((key) => key.length > KEY_MAX_CHARS))
	)
		return tooLarge("", `a field name here may hold at most ${KEY_MAX_CHARS} characters`);
	let found: FieldError | undefined;
	let spent = 0;
	followSchema(root, value, costs.leading, (node, text, pointer) => {
		const max = costs.texts.get(node);
		if (max === undefined || typeof text !== "string") return;
		// the bound is one for all texts together: sixteen at the limit took three seconds
		spent += (text.length / max) ** 2;
		if (spent > 1)
			found ??= tooLarge(pointer, `at most ${max} characters of text can be matched against patterns here`);
	});
	return found;
}

function partsOf(value: Json): number {
	if (typeof value !== "object" || value === null) return 1;
	let parts = 1;
	for (const inner of Object.values(value)) parts += partsOf(inner as Json);
	return parts;
}

function some(value: Json, test: (node: Json) => boolean): boolean {
	if (test(value)) return true;
	return typeof value === "object" && value !== null && Object.values(value).some((inner) => some(inner as Json, test));
}

function tooLarge(field: string, error: string): FieldError {
	return { error, field, issue: "too_large", expected: "smaller arguments", hint: "send less, or in several calls" };
}
