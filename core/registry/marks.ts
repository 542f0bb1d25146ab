/**
 * Finds the texts in a call's arguments that carry danger: parameters marked `x-belay-kind`, and `format: uri`, which
 * implies `url`. A mark holds wherever its schema could apply. What is done about a text is normalize's. Called by
 * `compile.ts`.
 */
import { isJsonObject, type Json, type JsonObject, own, pointerSegment } from "../json.ts";
import { followSchema, schemasLeadingTo } from "./follow-schema.ts";
import type { DangerKind } from "./schema-keywords.ts";

export type MarkedText = { readonly pointer: string; readonly kind: DangerKind; readonly text: string };

/** `schema` is an imported root. */
export function compileMarks(schema: JsonObject): (args: JsonObject) => MarkedText[] {
	const leading = schemasLeadingTo(schema, (node) => markOf(node) !== undefined);
	return (args) => {
		const found = new Map<string, MarkedText>();
		followSchema(schema, args, leading, (node, value, pointer) => {
			const kind = markOf(node);
			if (kind !== undefined) texts(value, pointer, kind, found);
		});
		return [...found.values()];
	};
}

function markOf(node: JsonObject): DangerKind | undefined {
	const mark = own(node, "x-belay-kind");
	if (typeof mark === "string") return mark as DangerKind;
	return own(node, "format") === "uri" ? "url" : undefined;
}

/** A mark on an array or object covers every text inside it. */
function texts(value: Json, pointer: string, kind: DangerKind, found: Map<string, MarkedText>): void {
	if (typeof value === "string") found.set(`${kind} ${pointer}`, { pointer, kind, text: value });
	else if (Array.isArray(value)) for (const [i, item] of value.entries()) texts(item, `${pointer}/${i}`, kind, found);
	else if (isJsonObject(value))
		for (const name of Object.keys(value))
			texts(value[name] as Json, `${pointer}/${pointerSegment(name)}`, kind, found);
}
