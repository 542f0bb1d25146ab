/**
 * A tool as a planner reads it: function definitions in the three dialects, and what they cost in tokens (X4). Belay's own
 * marks and defaults of the harness stay inside; nothing here decides what is exposed. Called by the run when a turn
 * opens and by the exposure route.
 */
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import type { FunctionDefinition } from "../ports.ts";
import type { ToolVersion } from "../registry/descriptor.ts";

/** `function_name` is the planner-facing name that the run has given the tool (X3). */
export function functionDefinition(version: ToolVersion, function_name: string): FunctionDefinition {
	const { description, input_schema } = version.descriptor;
	return { name: function_name, description, parameters: withoutMarks(input_schema as JsonObject) as JsonObject };
}

/** `x-…` members are Belay's, and some providers refuse a schema that has them; `$schema` only costs tokens. */
function withoutMarks(schema: Json, inProperties = false): Json {
	if (Array.isArray(schema)) return schema.map((part) => withoutMarks(part));
	if (!isJsonObject(schema)) return schema;
	const entries = Object.keys(schema)
		.filter((key) => inProperties || !(key.startsWith("x-") || key === "$schema"))
		.map((key): [string, Json] => {
			const value = schema[key] as Json;
			if (!inProperties && VALUES.has(key)) return [key, value];
			return [key, withoutMarks(value, !inProperties && NAMED.has(key))];
		});
	return Object.fromEntries(entries);
}

/** Under these, keys are names and not keywords. */
const NAMED = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);
/** Under these stand values, which are nobody's to change. */
const VALUES = new Set(["default", "examples", "enum", "const", "required", "dependentRequired"]);

/**
 * Tokens of definitions, estimated: about four bytes a token for JSON and English, one and a half characters for
 * Chinese, Japanese and Korean. Within some 15 % of what providers count; used for reports and budgets, never for billing.
 */
export function estimateTokens(definitions: readonly FunctionDefinition[]): number {
	return definitions.reduce((sum, definition) => sum + tokensOf(JSON.stringify(definition)) + TOKENS_PER_FUNCTION, 0);
}

/** What providers wrap around each function. */
const TOKENS_PER_FUNCTION = 8;

function tokensOf(text: string): number {
	const wide = text.match(/[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]/g)?.length ?? 0;
	return Math.ceil((text.length - wide) / 4 + wide / 1.5);
}

export type ToolFormat = "openai" | "anthropic" | "mcp";

/** The definitions as each protocol lists tools. */
export function formatTools(definitions: readonly FunctionDefinition[], format: ToolFormat): Json {
	switch (format) {
		case "openai":
			return definitions.map(({ name, description, parameters }) => ({
				type: "function",
				function: { name, description, parameters },
			}));
		case "anthropic":
			return definitions.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters }));
		case "mcp":
			return definitions.map(({ name, description, parameters }) => ({ name, description, inputSchema: parameters }));
	}
}
