/**
 * A schema in a few words, for a planner that has to repair a call: what is wanted, and an example in the schema's own
 * words. Nothing the caller sent goes in. Called by `explain.ts`.
 */
import { certainParts } from "../expression-schema.ts";
import { type Json, type JsonObject, own } from "../json.ts";
import { type Locale, phrase } from "./explain-words.ts";

/** What a schema wants, in a few words. */
export function describe(schema: Json | undefined, root: JsonObject, locale: Locale = "en", depth = 0): string {
	const parts = certainParts(root, schema);
	for (const part of parts) {
		const allowed = own(part, "enum");
		if (Array.isArray(allowed))
			return `${phrase("one_of", locale)} ${allowed
				.slice(0, 20)
				.map((item) => JSON.stringify(item))
				.join(", ")}`.slice(0, 400);
		if (Object.hasOwn(part, "const")) return JSON.stringify(own(part, "const")).slice(0, 200);
	}
	for (const part of parts) {
		const type = own(part, "type");
		if (type !== undefined) {
			const format = own(part, "format");
			const named = Array.isArray(type) ? type.join(` ${phrase("or", locale)} `) : String(type);
			return typeof format === "string" ? `${named} (${format})` : named;
		}
	}
	for (const part of parts)
		for (const keyword of ["anyOf", "oneOf"]) {
			const forms = own(part, keyword);
			if (Array.isArray(forms) && depth < 2)
				return [...new Set(forms.slice(0, 8).map((form) => describe(form, root, locale, depth + 1)))].join(
					` ${phrase("or", locale)} `,
				);
		}
	return phrase("any_value", locale);
}

/** A hint made of the schema's own words: its examples, default or description. Nothing the caller sent. */
export function exampleHint(
	schema: Json | undefined,
	root: JsonObject,
	name: string | undefined,
	locale: Locale = "en",
): string {
	const parts = certainParts(root, schema);
	for (const part of parts) {
		const examples = own(part, "examples");
		const example = Array.isArray(examples) ? examples[0] : own(part, "default");
		if (example === undefined) continue;
		const text = JSON.stringify(example);
		if (text.length <= 200)
			return `${phrase("for_example", locale)} ${name === undefined ? "" : `${JSON.stringify(name)}: `}${text}`;
	}
	for (const part of parts) {
		const description = own(part, "description");
		if (typeof description === "string" && description !== "") return description.slice(0, 200);
	}
	return "";
}
