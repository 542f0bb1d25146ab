/**
 * Walks a value together with every sub-schema that could judge a part of it: through references and all branches, also
 * those that will turn out not to apply, so that what is marked or bounded inside `anyOf` or a recursive schema is never
 * missed. Each schema meets each place once, so the walk stays linear where branches meet again. Called by the marks and
 * the validator.
 */
import { isJsonObject, type Json, type JsonObject, own, pointerSegment } from "../json.ts";
import { inPlace, subSchemas } from "./sub-schemas.ts";

export type SchemaVisitor = (node: JsonObject, value: Json, pointer: string) => void;

/**
 * `root` is an imported schema: no reference leads outside and none loops in place. Property names are not visited.
 * `leading` (from `schemasLeadingTo`) keeps the walk to schemas that lead somewhere that matters.
 */
export function followSchema(
	root: JsonObject,
	value: Json,
	leading: ReadonlySet<JsonObject>,
	visit: SchemaVisitor,
): void {
	if (leading.size > 0) new Walk(root, leading, visit).follow(root, value, "");
}

/** The schemas that are wanted and all from which a wanted one can be reached; empty when there is none. */
export function schemasLeadingTo(root: JsonObject, wanted: (node: JsonObject) => boolean): ReadonlySet<JsonObject> {
	const from = new Map<JsonObject, JsonObject[]>();
	const found: JsonObject[] = [];
	const gather = (node: Json | undefined, parent: JsonObject | undefined): void => {
		if (!isJsonObject(node)) return;
		const known = from.get(node);
		if (parent !== undefined) from.set(node, [...(known ?? []), parent]);
		else if (known === undefined) from.set(node, []);
		if (known !== undefined) return;
		if (wanted(node)) found.push(node);
		for (const [inner] of subSchemas(node, "")) gather(inner, node);
		for (const inner of inPlace(root, node)) gather(inner, node);
	};
	gather(root, undefined);
	const leading = new Set<JsonObject>();
	for (let node = found.pop(); node !== undefined; node = found.pop()) {
		if (leading.has(node)) continue;
		leading.add(node);
		found.push(...(from.get(node) ?? []));
	}
	return leading;
}

class Walk {
	readonly root: JsonObject;
	readonly leading: ReadonlySet<JsonObject>;
	readonly visit: SchemaVisitor;
	/** The schemas already met, by place. */
	readonly seen = new Map<string, Set<JsonObject>>();
	constructor(root: JsonObject, leading: ReadonlySet<JsonObject>, visit: SchemaVisitor) {
		this.root = root;
		this.leading = leading;
		this.visit = visit;
	}

	follow(node: Json | undefined, value: Json, pointer: string): void {
		if (!isJsonObject(node) || !this.leading.has(node)) return;
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
