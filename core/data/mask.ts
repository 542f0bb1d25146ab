/**
 * The masked copy that evidence, audit and logs hold (E3): by field name and by the format of values, at any depth.
 * Never changes its input, walks own properties only, and masking a masked copy changes nothing. The hash beside it is
 * of the true input. Called by evidence, audit and everything that stores a copy outside of the run.
 */
import { isJsonObject, type Json, type JsonObject, own, put } from "../json.ts";
import { JSON_DEPTH_MAX } from "../limits.ts";
import { classifyMember, classifyName, type FieldClass } from "./mask-names.ts";
import { maskText } from "./mask-text.ts";
import { MASKED, maskIdentifier } from "./mask-value.ts";

export { maskText } from "./mask-text.ts";

export function maskJson(value: Json): Json {
	return walk(value, undefined, 0);
}

function walk(value: Json, kind: FieldClass | undefined, depth: number): Json {
	if (typeof value !== "object" || value === null) return leaf(value, kind);
	// Beyond what any schema allows nothing is looked at, so nothing is shown.
	if (depth >= JSON_DEPTH_MAX) return MASKED;
	if (Array.isArray(value)) return value.map((item) => walk(item, kind, depth + 1));
	return walkObject(value, kind, depth);
}

function walkObject(value: JsonObject, kind: FieldClass | undefined, depth: number): JsonObject {
	const copy: JsonObject = {};
	const named = namedValue(value);
	const columns = columnKinds(value);
	for (const [key, child] of Object.entries(value)) {
		const childKind = kind ?? classifyMember(key) ?? (key === "value" || key === "val" ? named : undefined);
		const masked =
			key === "rows" && columns !== undefined
				? maskRows(child, columns, childKind, depth + 1)
				: walk(child, childKind, depth + 1);
		put(copy, freeName(copy, maskText(key)), masked);
	}
	return copy;
}

/** Two masked names may meet; none of their values is lost. */
function freeName(copy: JsonObject, key: string): string {
	let name = key;
	for (let n = 2; Object.hasOwn(copy, name); n++) name = `${key}#${n}`;
	return name;
}

function leaf(value: null | boolean | number | string, kind: FieldClass | undefined): Json {
	if (value === null || typeof value === "boolean" || value === "") return value;
	if (typeof value === "number") {
		if (kind === undefined || kind === "secret_text") {
			const text = String(value);
			const masked = Number.isSafeInteger(value) ? maskText(text) : text;
			if (masked === text) return value;
			return kind === undefined ? masked : MASKED;
		}
		return kind === "identifier" ? maskIdentifier(String(value)) : MASKED;
	}
	if (kind === undefined) return maskText(value);
	return kind === "identifier" ? maskIdentifier(value) : MASKED;
}

/** `{"name": "Authorization", "value": "…"}`: headers, form fields and environments name their value beside it. */
function namedValue(value: JsonObject): FieldClass | undefined {
	for (const member of ["name", "key", "field", "header", "column", "label"]) {
		const name = own(value, member);
		if (typeof name === "string") return classifyName(name);
	}
	return undefined;
}

/** `{"columns": ["phone"], "rows": [["…"]]}`: query results name their values once, at the top. */
function columnKinds(value: JsonObject): (FieldClass | undefined)[] | undefined {
	const columns = own(value, "columns");
	if (!Array.isArray(columns)) return undefined;
	return columns.map((column) => {
		const name = isJsonObject(column) ? own(column, "name") : column;
		return typeof name === "string" ? classifyName(name) : undefined;
	});
}

function maskRows(
	rows: Json,
	columns: readonly (FieldClass | undefined)[],
	kind: FieldClass | undefined,
	depth: number,
): Json {
	if (!Array.isArray(rows)) return walk(rows, kind, depth);
	return rows.map((row) => {
		if (!Array.isArray(row)) return walk(row, kind, depth + 1);
		return row.map((cell, at) => walk(cell, kind ?? columns[at], depth + 2));
	});
}
