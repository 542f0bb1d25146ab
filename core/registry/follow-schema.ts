/**
 * Walks a value together with every sub-schema that could judge a part of it: through references and all branches, also
 * those that will turn out not to apply, so that what is marked or bounded inside `anyOf` or a recursive schema is never
 * missed. Each schema meets each place once, so the walk stays linear where branches meet again. Called by the marks and
 * the validator.
 */
import { refTarget } from "../expression-schema.ts";
import { isJsonObject, type Json, type JsonObject, own, pointerSegment } from "../json.ts";

export type SchemaVisitor = (node: JsonObject, value: Json, pointer: string) => void;

/** `root` is an imported schema: no reference leads outside and none loops in place. Property names are not visited. */
export function followSchema(root: JsonObject, value: Json, visit: SchemaVisitor): void {
	new Walk(root, visit).follow(root, value, "");
}

class Walk {
	readonly root: JsonObject;
	readonly visit: SchemaVisitor;
	/** The schemas already met, by place. */
	readonly seen = new Map<string, Set<JsonObject>>();
	constructor(root: JsonObject, visit: SchemaVisitor) {
		this.root = root;
		this.visit = visit;
	}

	follow(node: Json | undefined, value: Json, pointer: string): void {
		if (!isJsonObject(node)) return;
		const here = this.seen.get(pointer) ?? new Set<JsonObject>();
		if (here.has(node)) return;
		here.add(node);
		this.seen.set(pointer, here);
		this.visit(node, value, pointer);
		for (const inner of inPlace(this.root, node)) this.follow(inner, value, pointer);
		if (Array.isArray(value)) this.items(node, value, pointer);
		else if (isJsonObject(value)) this.properties(node, value, pointer);
	}

	items(node: JsonObject, value: readonly Json[], pointer: string): void {
		const prefix = own(node, "prefixItems");
		for (const [i, item] of value.entries()) {
			const declared = Array.isArray(prefix) && i < prefix.length ? prefix[i] : own(node, "items");
			for (const schema of [declared, own(node, "contains"), own(node, "unevaluatedItems")])
				this.follow(schema, item, `${pointer}/${i}`);
		}
	}

	properties(node: JsonObject, value: JsonObject, pointer: string): void {
		const patterns = own(node, "patternProperties");
		for (const name of Object.keys(value)) {
			const declared = own(own(node, "properties"), name);
			const schemas =
				declared === undefined ? [own(node, "additionalProperties"), own(node, "unevaluatedProperties")] : [declared];
			if (isJsonObject(patterns)) schemas.push(...Object.values(patterns));
			for (const schema of schemas) this.follow(schema, value[name] as Json, `${pointer}/${pointerSegment(name)}`);
		}
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
