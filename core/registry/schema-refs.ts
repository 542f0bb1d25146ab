/**
 * References inside one imported schema: where sub-schemas are, whether every `$ref` leads to one, and whether a schema
 * applies itself to the same value for ever (recursion through properties and items ends with the value; this does not).
 * Called by schema import, the validator and the marks.
 */
import { refTarget } from "../expression-schema.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../json.ts";
import { inPlace, subSchemas } from "./sub-schemas.ts";

/** `at` is the pointer that the schema itself has; the first endless cycle is named, and every dangling reference. */
export function brokenRefs(root: JsonObject, at: string): { readonly pointer: string; readonly error: string }[] {
	const schemas = new Map<JsonObject, string>();
	const gather = (node: Json, pointer: string): void => {
		if (!isJsonObject(node)) return;
		schemas.set(node, pointer);
		for (const [inner, where] of subSchemas(node, pointer)) gather(inner, where);
	};
	gather(root, at);
	const broken: { pointer: string; error: string }[] = [];
	for (const [node, pointer] of schemas) {
		const ref = own(node, "$ref");
		if (typeof ref !== "string") continue;
		const target = refTarget(root, ref);
		if (typeof target === "boolean" || (isJsonObject(target) && schemas.has(target))) continue;
		broken.push({ pointer: `${pointer}/$ref`, error: `\`$ref\` leads to no schema: \`${ref.slice(0, 200)}\`` });
	}
	if (broken.length > 0) return broken;
	const loop = firstLoop(root, [...schemas.keys()]);
	if (loop === undefined) return [];
	return [{ pointer: schemas.get(loop) ?? at, error: "schema applies itself to the same value without end" }];
}

function firstLoop(root: JsonObject, nodes: readonly JsonObject[]): JsonObject | undefined {
	const state = new Map<JsonObject, "open" | "done">();
	const walk = (node: Json | undefined): JsonObject | undefined => {
		if (!isJsonObject(node) || state.get(node) === "done") return undefined;
		if (state.get(node) === "open") return node;
		state.set(node, "open");
		for (const next of inPlace(root, node)) {
			const loop = walk(next);
			if (loop !== undefined) return loop;
		}
		state.set(node, "done");
		return undefined;
	};
	for (const node of nodes) {
		const loop = walk(node);
		if (loop !== undefined) return loop;
	}
	return undefined;
}
