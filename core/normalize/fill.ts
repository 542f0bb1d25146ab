/**
 * Completes arguments before they are judged and frozen: defaults, and the one coercion Belay makes (T07). A text becomes
 * a number, boolean, array or object only where the schema wants exactly that type and nothing is lost; where it wants
 * text, text stays. Defaults and coercion follow properties, items, prefixItems, local $ref and allOf, never anyOf, oneOf
 * or if (decision 26): what applies there is not certain. It judges nothing. Called by normalize.
 */
import { certainParts, certainType } from "../expression-schema.ts";
import { isJsonObject, type Json, type JsonObject, own, parseJson, pointerSegment, put } from "../json.ts";
import { JSON_DEPTH_MAX } from "../limits.ts";
import { depthOf } from "./plain.ts";

export type Filled = { readonly value: JsonObject; readonly notes: readonly string[] };

/** `schema` is an imported root. The input is left as it is. */
export function fill(schema: JsonObject, args: JsonObject): Filled {
	const notes: string[] = [];
	const value = complete({ root: schema, notes }, [schema], args, null, 0, new Set());
	return { value: isJsonObject(value) ? value : args, notes };
}

/** Where a value is, written out only when there is something to say about it. */
type Place = { readonly above: Place; readonly key: string | number } | null;

function pointerOf(place: Place): string {
	return place === null ? "" : `${pointerOf(place.above)}/${pointerSegment(String(place.key))}`;
}

type Work = { readonly root: JsonObject; readonly notes: string[] };

/** What schemas say about one place, worked out once per schema. */
type Plan = {
	readonly parts: readonly JsonObject[];
	readonly type: string | undefined;
	readonly properties: ReadonlyMap<string, readonly Json[]>;
	readonly further: readonly Json[];
	/** Of every item alike; null where the place in the array matters. */
	readonly items: readonly Json[] | null;
	readonly defaults: readonly { readonly name: string; readonly holder: JsonObject }[];
};
const plans = new WeakMap<JsonObject, Plan>();

function planFor(root: JsonObject, schemas: readonly Json[]): Plan {
	const [only] = schemas;
	if (schemas.length !== 1 || !isJsonObject(only)) return makePlan(root, schemas);
	const known = plans.get(only) ?? makePlan(root, schemas);
	plans.set(only, known);
	return known;
}

function makePlan(root: JsonObject, schemas: readonly Json[]): Plan {
	const parts = schemas.flatMap((schema) => certainParts(root, schema));
	const properties = new Map<string, Json[]>();
	for (const part of parts) {
		const map = own(part, "properties");
		if (!isJsonObject(map)) continue;
		for (const name of Object.keys(map)) properties.set(name, [...(properties.get(name) ?? []), map[name] as Json]);
	}
	const defaults = [...properties].flatMap(([name, inner]) => {
		const holder = inner.flatMap((schema) => certainParts(root, schema)).find((part) => Object.hasOwn(part, "default"));
		return holder === undefined ? [] : [{ name, holder }];
	});
	const further = parts.map((part) => own(part, "additionalProperties")).filter(isJsonObject);
	const items = parts.some((part) => Array.isArray(own(part, "prefixItems"))) ? null : itemSchemas(parts, 0);
	return { parts, type: certainType(parts), properties, further, items, defaults };
}

/** `defaulted` holds the schemas whose default is being filled in: a default inside its own kind would never end. */
function complete(
	work: Work,
	schemas: readonly Json[],
	given: Json,
	at: Place,
	depth: number,
	defaulted: ReadonlySet<Json>,
): Json {
	const plan = planFor(work.root, schemas);
	if (plan.parts.length === 0 || depth > JSON_DEPTH_MAX) return given;
	const value = typeof given === "string" ? coerce(work, plan.type, given, at, depth) : given;
	if (Array.isArray(value))
		return value.map((item, i) =>
			complete(work, plan.items ?? itemSchemas(plan.parts, i), item, { above: at, key: i }, depth + 1, defaulted),
		);
	if (!isJsonObject(value)) return value;
	const result: JsonObject = {};
	for (const name of Object.keys(value)) {
		const inner = plan.properties.get(name) ?? plan.further;
		const filled = complete(work, inner, value[name] as Json, { above: at, key: name }, depth + 1, defaulted);
		// assigning is ten times as fast, and safe for every name but one
		if (name === "__proto__") put(result, name, filled);
		else result[name] = filled;
	}
	for (const { name, holder } of plan.defaults) {
		if (Object.hasOwn(result, name) || defaulted.has(holder)) continue;
		const where = { above: at, key: name };
		const inner = plan.properties.get(name) ?? [];
		const filled = structuredCopy(holder.default as Json);
		put(result, name, complete(work, inner, filled, where, depth + 1, new Set(defaulted).add(holder)));
	}
	return result;
}

/** A default belongs to the schema: no call may hold, and change, the same object as the next. */
function structuredCopy(value: Json): Json {
	return typeof value === "object" && value !== null ? (JSON.parse(JSON.stringify(value)) as Json) : value;
}

function itemSchemas(parts: readonly JsonObject[], i: number): Json[] {
	return parts.flatMap((part) => {
		const prefix = own(part, "prefixItems");
		const schema = Array.isArray(prefix) && i < prefix.length ? prefix[i] : own(part, "items");
		return schema === undefined ? [] : [schema];
	});
}

function coerce(work: Work, type: string | undefined, text: string, at: Place, depth: number): Json {
	const value = type === undefined ? undefined : read(type, text, depth);
	if (value === undefined) return text;
	work.notes.push(`\`${pointerOf(at)}\` was sent as text and read as ${type}`);
	return value;
}

/** The value a text stands for, without loss; undefined when it does not. */
function read(type: string, text: string, depth: number): Json | undefined {
	switch (type) {
		case "integer":
			return /^(?:0|-?[1-9]\d{0,15})$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
		case "number":
			return readNumber(text);
		case "boolean":
			return text === "true" ? true : text === "false" ? false : undefined;
		case "array":
		case "object":
			return readJson(type, text, depth);
		default:
			return undefined;
	}
}

/** Fifteen significant digits always survive a double; more may not. */
function readNumber(text: string): number | undefined {
	const found = /^-?(0|[1-9]\d{0,20})(\.\d{1,20})?(?:[eE][+-]?\d{1,3})?$/.exec(text);
	if (found === null) return undefined;
	const digits = `${found[1]}${(found[2] ?? "").slice(1)}`.replace(/^0+/, "").replace(/0+$/, "");
	const value = Number(text);
	if (digits.length > 15 || !Number.isFinite(value) || Object.is(value, -0)) return undefined;
	// an exponent can flush a small number to zero
	return value === 0 && digits !== "" ? undefined : value;
}

function readJson(type: "array" | "object", text: string, depth: number): Json | undefined {
	const parsed = parseJson(text);
	if (!parsed.ok || parsed.unsafe_integers.length > 0 || depth + depthOf(parsed.value) > JSON_DEPTH_MAX)
		return undefined;
	return (type === "array" ? Array.isArray(parsed.value) : isJsonObject(parsed.value)) ? parsed.value : undefined;
}
