/**
 * Which functions a provider may be asked to hold its model to (strict mode). Only a schema that is strict as it stands is sent
 * so: making an optional field required, or dropping a bound, would have the model fill in what nobody asked for. What comes
 * back is judged like any other output; strict mode saves repairs and is trusted with nothing. Called by the OpenAI planner.
 */
import { isJsonObject, type Json, type JsonObject, own } from "../json.ts";
import type { FunctionDefinition } from "../ports.ts";

/** `each`: function by function (OpenAI). `all`: every function or none (DeepSeek's beta address). */
export type StrictMode = "off" | "each" | "all";

/** The deployment's word for it; undefined when it is none. */
export function strictMode(text: string): StrictMode | undefined {
	if (text === "") return "off";
	return text === "each" || text === "all" ? text : undefined;
}

/** For each function whether it is sent as strict. */
export function strictOf(functions: readonly FunctionDefinition[], mode: StrictMode): boolean[] {
	if (mode === "off") return functions.map(() => false);
	const fits = functions.map(({ parameters }) => isObjectType(parameters) && fitsStrict(parameters, 0));
	return mode === "all" && !fits.every((one) => one) ? functions.map(() => false) : fits;
}

/** What OpenAI and DeepSeek both take; any other keyword is refused by one of them, and with it the whole request. */
const KEYWORDS: ReadonlySet<string> = new Set(
	"type properties required additionalProperties items enum description title minimum maximum".split(" "),
);
const TYPES: ReadonlySet<Json | undefined> = new Set(["string", "number", "integer", "boolean", "array", "object"]);
/** OpenAI's limit of nesting. */
const DEPTH_MAX = 5;

const isObjectType = (schema: JsonObject): boolean => own(schema, "type") === "object";

function fitsStrict(schema: Json | undefined, depth: number): boolean {
	if (!isJsonObject(schema) || depth > DEPTH_MAX || Object.keys(schema).some((key) => !KEYWORDS.has(key))) return false;
	const type = own(schema, "type");
	if (!TYPES.has(type)) return false;
	if (type === "array") return fitsStrict(own(schema, "items"), depth + 1);
	if (type !== "object") return own(schema, "items") === undefined && own(schema, "properties") === undefined;
	const properties = own(schema, "properties");
	const required = own(schema, "required");
	if (!isJsonObject(properties) || !Array.isArray(required) || own(schema, "additionalProperties") !== false)
		return false;
	const names = Object.keys(properties);
	return (
		names.length > 0 &&
		names.length === new Set(required).size &&
		names.every((name) => required.includes(name) && fitsStrict(own(properties, name), depth + 1))
	);
}
