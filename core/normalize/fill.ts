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
	const value = complete({ root: schema, notes }, [schema], args, "", 0, new Set());
	return { value: isJsonObject(value) ? value : args, notes };
}

type Work = { readonly root: JsonObject; readonly notes: string[] };

/** `defaulted` holds the schemas whose default is being filled in: a default inside its own kind would never end. */
function complete(
	work: Work,
	schemas: readonly Json[],
	given: Json,
	at: string,
	depth: number,
	defaulted: ReadonlySet<Json>,
): Json {
	const parts = schemas.flatMap((schema) => certainParts(work.root, schema));
	if (parts.length === 0 || depth > JSON_DEPTH_MAX) return given;
	const value = typeof given === "string" ? coerce(work, certainType(parts), given, at, depth) : given;
	if (Array.isArray(value)) {
		return value.map((item, i) => complete(work, itemSchemas(parts, i), item, `${at}/${i}`, depth + 1, defaulted));
	}
	if (!isJsonObject(value)) return value;
	const result: JsonObject = {};
	for (const name of Object.keys(value))
		put(
			result,
			name,
			complete(
				work,
				propertySchemas(parts, name),
				value[name] as Json,
				`${at}/${pointerSegment(name)}`,
				depth + 1,
				defaulted,
			),
		);
	for (const part of parts) {
		const properties = own(part, "properties");
		if (!isJsonObject(properties)) continue;
		for (const name of Object.keys(properties)) {
			if (Object.hasOwn(result, name)) continue;
			const inner = propertySchemas(parts, name);
			const holder = inner
				.flatMap((schema) => certainParts(work.root, schema))
				.find((found) => Object.hasOwn(found, "default"));
			if (holder === undefined || defaulted.has(holder)) continue;
			const where = `${at}/${pointerSegment(name)}`;
			put(
				result,
				name,
				complete(work, inner, holder.default as Json, where, depth + 1, new Set(defaulted).add(holder)),
			);
		}
	}
	return result;
}

function propertySchemas(parts: readonly JsonObject[], name: string): Json[] {
	const declared = parts.map((part) => own(own(part, "properties"), name)).filter((schema) => schema !== undefined);
	if (declared.length > 0) return declared;
	return parts.map((part) => own(part, "additionalProperties")).filter(isJsonObject);
}

function itemSchemas(parts: readonly JsonObject[], i: number): Json[] {
	return parts.flatMap((part) => {
		const prefix = own(part, "prefixItems");
		const schema = Array.isArray(prefix) && i < prefix.length ? prefix[i] : own(part, "items");
		return schema === undefined ? [] : [schema];
	});
}

function coerce(work: Work, type: string | undefined, text: string, at: string, depth: number): Json {
	const value = type === undefined ? undefined : read(type, text, depth);
	if (value === undefined) return text;
	work.notes.push(`\`${at}\` was sent as text and read as ${type}`);
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
