/**
 * Takes a tool's JSON Schema in (V1): checks that it is sound 2020-12 within Belay's limits and hands back the copy that
 * the validator runs, holding known keywords only. It refuses what would reach outside (`$ref` elsewhere), run long
 * (patterns, cycles in place) or be misread (older drafts, `$dynamicRef`). Called when a descriptor is checked and compiled.
 */

import { lintPattern } from "../expression-patterns.ts";
import { isJsonObject, type Json, type JsonObject, pointerSegment, put } from "../json.ts";
import { JSON_DEPTH_MAX } from "../limits.ts";
import type { FieldError } from "../refusal.ts";
import { DANGER_KINDS, FORMATS, ONE_SCHEMA, PLAIN, REFUSED, SCHEMA_LIST, SCHEMA_MAP } from "./schema-keywords.ts";
import { brokenRefs } from "./schema-refs.ts";

/** A tool's schema is read by a model: real ones have tens of nodes, imported giants some hundreds. */
export const SCHEMA_NODES_MAX = 2_000;
const DIALECT = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

export type ImportedSchema = {
	readonly schema: JsonObject;
	readonly errors: readonly FieldError[];
	readonly warnings: readonly string[];
};

/** `at` is the JSON Pointer of the schema in its descriptor; all errors are reported, each at its own pointer. */
export function importSchema(source: JsonObject, at: string): ImportedSchema {
	const work: Work = { root: source, errors: [], warnings: [], nodes: 0 };
	const schema = copy(source, at, 0, work);
	const imported = isJsonObject(schema) ? schema : {};
	if (work.errors.length === 0) {
		for (const { pointer, error } of brokenRefs(imported, at))
			complain(work, pointer, error, "references that lead to a schema of this document and come to an end");
	}
	return { schema: imported, errors: work.errors, warnings: work.warnings };
}

type Work = {
	readonly root: JsonObject;
	readonly errors: FieldError[];
	readonly warnings: string[];
	nodes: number;
};

function complain(work: Work, field: string, error: string, expected: string, hint = ""): void {
	if (work.errors.length < 50) work.errors.push({ error, field, issue: "schema_violation", expected, hint });
}

function copy(source: Json, at: string, depth: number, work: Work): Json {
	if (typeof source === "boolean") return source;
	if (!isJsonObject(source)) {
		complain(work, at, "a schema must be an object, true or false", "a JSON Schema");
		return true;
	}
	work.nodes += 1;
	if (depth > JSON_DEPTH_MAX || work.nodes > SCHEMA_NODES_MAX) {
		if (work.nodes <= SCHEMA_NODES_MAX + 1)
			complain(
				work,
				at,
				"schema is too deep or too large",
				`at most ${JSON_DEPTH_MAX} levels and ${SCHEMA_NODES_MAX} sub-schemas`,
			);
		return true;
	}
	const target: JsonObject = {};
	for (const keyword of Object.keys(source)) {
		const value = source[keyword] as Json;
		const where = `${at}/${pointerSegment(keyword)}`;
		const refused = REFUSED.get(keyword);
		if (refused !== undefined) complain(work, where, `\`${keyword}\` ${refused}`, "JSON Schema 2020-12");
		else if (ONE_SCHEMA.includes(keyword)) {
			if (keyword === "items" && Array.isArray(value))
				complain(work, where, "`items` is an array", "a schema", "use `prefixItems` for one schema per position");
			else put(target, keyword, copy(value, where, depth + 1, work));
		} else if (SCHEMA_LIST.includes(keyword)) {
			if (!Array.isArray(value) || value.length === 0)
				complain(work, where, `\`${keyword}\` has the wrong form`, "an array of schemas");
			else
				put(
					target,
					keyword,
					value.map((part, i) => copy(part, `${where}/${i}`, depth + 1, work)),
				);
		} else if (SCHEMA_MAP.includes(keyword)) copyMap(target, keyword, value, where, depth, work);
		else if (keyword === "$ref") copyRef(target, value, where, work);
		else if (keyword === "$schema" || keyword === "$id" || keyword === "id")
			checkIdentity(keyword, value, where, depth, work);
		else if (keyword === "x-belay-kind") copyKind(target, value, where, work);
		else if (keyword === "default" || keyword === "examples" || keyword === "description") put(target, keyword, value);
		else copyPlain(target, keyword, value, where, work);
	}
	return target;
}

function copyPlain(target: JsonObject, keyword: string, value: Json, where: string, work: Work): void {
	const shape = PLAIN.get(keyword);
	if (shape === undefined) {
		if (keyword === "nullable") work.warnings.push(`${where}: \`nullable\` has no effect, add "null" to \`type\``);
		return;
	}
	if (!shape.fits(value)) {
		complain(work, where, `\`${keyword}\` has the wrong form`, shape.expected);
		return;
	}
	if (keyword === "pattern") {
		const verdict = lintPattern(value as string);
		if (!verdict.ok) {
			complain(work, where, verdict.message, "a pattern that runs in linear time");
			return;
		}
	}
	if (keyword === "format") {
		const format = FORMATS.get(value as string);
		if (format === undefined) work.warnings.push(`${where}: format \`${String(value)}\` is not checked`);
		else put(target, keyword, format);
		return;
	}
	put(target, keyword, value);
}

function copyMap(target: JsonObject, keyword: string, value: Json, where: string, depth: number, work: Work): void {
	if (!isJsonObject(value)) {
		complain(work, where, `\`${keyword}\` has the wrong form`, "an object of schemas");
		return;
	}
	const map: JsonObject = {};
	for (const name of Object.keys(value)) {
		const inner = `${where}/${pointerSegment(name)}`;
		if (!name.isWellFormed()) complain(work, where, "a name holds half a character", "well-formed Unicode");
		if (keyword === "patternProperties") {
			const verdict = lintPattern(name);
			if (!verdict.ok) {
				complain(work, inner, verdict.message, "a pattern that runs in linear time");
				continue;
			}
		}
		put(map, name, copy(value[name] as Json, inner, depth + 1, work));
	}
	put(target, keyword, map);
}

function copyRef(target: JsonObject, value: Json, where: string, work: Work): void {
	if (typeof value !== "string" || !/^#(\/|$)/.test(value)) {
		complain(work, where, "`$ref` leads out of the schema", "a local reference `#/…`", "move the schema into `$defs`");
		return;
	}
	put(target, "$ref", value);
}

function checkIdentity(keyword: string, value: Json, where: string, depth: number, work: Work): void {
	if (keyword === "$schema" && !(typeof value === "string" && DIALECT.test(value)))
		complain(work, where, "`$schema` names another dialect", "JSON Schema 2020-12");
	// a nested $id would move the base that local references are read against
	if (keyword === "$id" && depth > 0)
		complain(work, where, "`$id` inside a schema is not supported", "no `$id` below the root");
}

function copyKind(target: JsonObject, value: Json, where: string, work: Work): void {
	if (typeof value !== "string" || !(DANGER_KINDS as readonly string[]).includes(value)) {
		complain(work, where, "`x-belay-kind` is not a known kind", DANGER_KINDS.join(", "));
		return;
	}
	put(target, "x-belay-kind", value);
}
