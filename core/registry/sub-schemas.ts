/**
 * Where the sub-schemas of an imported schema are, and which of them judge the same value again. Plain iteration, shared by
 * everything in the registry that walks a schema.
 */
import { refTarget } from "../expression-schema.ts";
import { isJsonObject, type Json, type JsonObject, own, pointerSegment } from "../json.ts";
import { ONE_SCHEMA, SCHEMA_LIST, SCHEMA_MAP } from "./schema-keywords.ts";

/** Every direct sub-schema of an imported schema with its pointer. */
export function* subSchemas(node: JsonObject, at: string): Generator<[Json, string]> {
	for (const keyword of Object.keys(node)) {
		const value = node[keyword] as Json;
		if (ONE_SCHEMA.includes(keyword)) yield [value, `${at}/${keyword}`];
		else if (SCHEMA_LIST.includes(keyword) && Array.isArray(value))
			for (const [i, part] of value.entries()) yield [part, `${at}/${keyword}/${i}`];
		else if (SCHEMA_MAP.includes(keyword) && isJsonObject(value))
			for (const name of Object.keys(value)) yield [value[name] as Json, `${at}/${keyword}/${pointerSegment(name)}`];
	}
}

/** Every schema that judges the same value as this one. */
export function* inPlace(root: JsonObject, node: JsonObject): Generator<Json | undefined> {
	const ref = own(node, "$ref");
	if (typeof ref === "string") yield refTarget(root, ref);
	for (const keyword of ["allOf", "anyOf", "oneOf"]) {
		const branches = own(node, keyword);
		if (Array.isArray(branches)) yield* branches;
	}
	for (const keyword of ["not", "if", "then", "else"]) yield own(node, keyword);
	const dependent = own(node, "dependentSchemas");
	if (isJsonObject(dependent)) yield* Object.values(dependent);
}
