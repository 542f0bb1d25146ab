/**
 * What a JSON Schema says about the values an expression sees: its CEL type, and the conversion of JSON into the values
 * CEL computes with (decision 28: integer-typed numbers enter as int, that is BigInt). Used by the expression compiler
 * and by stages that follow a schema alongside a value. It validates nothing: normalize does.
 */
import { atPointer, isJsonObject, type Json, type JsonObject, own } from "./json.ts";

/** The schema at `#` or `#/…` (percent-decoded), or undefined. */
export function refTarget(root: JsonObject, ref: string): Json | undefined {
	if (!ref.startsWith("#")) return undefined;
	try {
		const pointer = decodeURIComponent(ref.slice(1));
		return pointer === "" || pointer.startsWith("/") ? atPointer(root, pointer) : undefined;
	} catch {
		return undefined;
	}
}

/** By root and schema: both are values that nothing changes once they are imported. */
const partsOf = new WeakMap<JsonObject, WeakMap<JsonObject, readonly JsonObject[]>>();

/** The schema and everything it says about the same value for certain: `$ref` and `allOf`, never anyOf / oneOf / if. */
export function certainParts(root: JsonObject, schema: Json | undefined): readonly JsonObject[] {
	if (!isJsonObject(schema)) return [];
	const ofRoot = partsOf.get(root) ?? new WeakMap<JsonObject, readonly JsonObject[]>();
	partsOf.set(root, ofRoot);
	const known = ofRoot.get(schema);
	if (known !== undefined) return known;
	const parts = gatherParts(root, schema);
	ofRoot.set(schema, parts);
	return parts;
}

function gatherParts(root: JsonObject, schema: JsonObject): JsonObject[] {
	const seen = new Set<JsonObject>();
	const add = (node: Json | undefined): void => {
		if (!isJsonObject(node) || seen.has(node)) return;
		seen.add(node);
		const ref = own(node, "$ref");
		if (typeof ref === "string") add(refTarget(root, ref));
		const all = own(node, "allOf");
		if (Array.isArray(all)) for (const part of all) add(part);
	};
	add(schema);
	return [...seen];
}

/** The one JSON type that the parts agree on, or undefined when they name none or several. */
export function certainType(parts: readonly JsonObject[]): string | undefined {
	for (const part of parts) {
		const type = own(part, "type");
		if (typeof type === "string") return type;
		if (Array.isArray(type) && type.length === 1 && typeof type[0] === "string") return type[0];
	}
	return undefined;
}

/** The schema of an object's property by name, when one of the parts declares it. */
export function propertySchema(parts: readonly JsonObject[], name: string): JsonObject | undefined {
	for (const part of parts) {
		const found = own(own(part, "properties"), name);
		if (isJsonObject(found)) return found;
	}
	return undefined;
}

/** The schema that all items of an array share, when there is one. */
export function itemSchema(parts: readonly JsonObject[]): JsonObject | undefined {
	for (const part of parts) {
		const items = own(part, "items");
		if (isJsonObject(items) && own(part, "prefixItems") === undefined) return items;
	}
	return undefined;
}

/** A property is there for certain when it is required, or when a default fills it (defaults run before expressions). */
export function isCertain(root: JsonObject, parts: readonly JsonObject[], name: string): boolean {
	for (const part of parts) {
		const required = own(part, "required");
		if (Array.isArray(required) && required.includes(name)) return true;
	}
	const schema = propertySchema(parts, name);
	return certainParts(root, schema).some((part) => own(part, "default") !== undefined);
}

/** CEL reads fields by identifier; names that walk prototypes elsewhere have no field at all. */
const FIELD = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const NO_FIELD = new Set(["__proto__", "constructor", "prototype", "hasOwnProperty", "toString", "valueOf"]);
/** Types are declared this deep; below it values are `dyn`. */
const TYPE_DEPTH_MAX = 8;

export type CelFields = { [name: string]: string | CelFields };

/** The CEL type of a value under this schema: a type name, or the fields of a declared object. */
export function celType(root: JsonObject, schema: Json | undefined, depth = 0): string | CelFields {
	const parts = certainParts(root, schema);
	switch (certainType(parts)) {
		case "integer":
			return "int";
		case "number":
			return "double";
		case "string":
			return "string";
		case "boolean":
			return "bool";
		case "array": {
			const item = celType(root, itemSchema(parts), depth + 1);
			return typeof item === "string" ? `list<${item}>` : "list<dyn>";
		}
		case "object":
			return depth >= TYPE_DEPTH_MAX ? "dyn" : (celFields(root, parts, depth) ?? "dyn");
		default:
			return "dyn";
	}
}

function celFields(root: JsonObject, parts: readonly JsonObject[], depth: number): CelFields | undefined {
	const fields: CelFields = Object.create(null);
	let count = 0;
	for (const part of parts) {
		const properties = own(part, "properties");
		if (!isJsonObject(properties)) continue;
		for (const name of Object.keys(properties)) {
			if (!FIELD.test(name) || NO_FIELD.has(name) || Object.hasOwn(fields, name)) continue;
			fields[name] = celType(root, properties[name], depth + 1);
			count += 1;
		}
	}
	return count === 0 ? undefined : fields;
}

/**
 * A JSON value as CEL takes it. Objects become Maps: CEL looks at `value.constructor`, which an argument named
 * `constructor` would otherwise answer. Numbers become BigInt exactly where the schema says integer and not number.
 */
export function celValue(root: JsonObject, schema: Json | undefined, value: Json): unknown {
	const parts = certainParts(root, schema);
	if (typeof value === "number") return Number.isSafeInteger(value) && wantsInteger(parts) ? BigInt(value) : value;
	if (Array.isArray(value)) {
		const prefix = parts.map((part) => own(part, "prefixItems")).find(Array.isArray) as Json[] | undefined;
		const items = parts.map((part) => own(part, "items")).find((found) => found !== undefined);
		return value.map((item, i) => celValue(root, prefix?.[i] ?? items, item));
	}
	if (!isJsonObject(value)) return value;
	const map = new Map<string, unknown>();
	for (const name of Object.keys(value))
		map.set(name, celValue(root, propertySchema(parts, name), value[name] as Json));
	return map;
}

function wantsInteger(parts: readonly JsonObject[]): boolean {
	return parts.some((part) => {
		const type = own(part, "type");
		return type === "integer" || (Array.isArray(type) && type.includes("integer") && !type.includes("number"));
	});
}
