/**
 * A stored version made ready to run: validator, rules and marks, compiled once per definition (V1). Refuses nothing:
 * what `checkDescriptor` passed compiles, and anything else is Belay being wrong. Called by the run object.
 */
import { compileExpression, type Expression } from "../expression.ts";
import { invariant } from "../invariant.ts";
import type { Json, JsonObject } from "../json.ts";
import type { FieldError } from "../refusal.ts";
import type { ToolDescriptor, ToolVersion } from "./descriptor.ts";
import type { Locale } from "./explain-words.ts";
import { importSchema } from "./import-schema.ts";
import { compileMarks, type MarkedText } from "./marks.ts";
import { compileValidator } from "./validator.ts";

export type CompiledRule = { readonly expression: Expression; readonly field: string; readonly message: string };
export type CompiledTool = {
	readonly version: ToolVersion;
	/** The input schema as it runs: known keywords only, local references only. */
	readonly schema: JsonObject;
	/** All structural errors of the arguments; none when they are valid. */
	readonly validate: (args: JsonObject, locale?: Locale) => FieldError[];
	/** All structural errors of a result against `output_schema`; none without one (I10). */
	readonly validateResult: (result: Json) => FieldError[];
	readonly rules: readonly CompiledRule[];
	/** Present exactly when `approval.mode` is `when`. */
	readonly approvalWhen: Expression | null;
	/** Its approval or semantic rules read `args_taint`: every other tool's calls are spared the work. */
	readonly readsTaint: boolean;
	/** Every text in the arguments that the schema marks as dangerous (`x-belay-kind`, format uri). */
	readonly marked: (args: JsonObject) => MarkedText[];
};

type Parts = Omit<CompiledTool, "version">;
/** By the descriptor object: the shell keeps one per digest, so a definition compiles once while it is in memory. */
const known = new WeakMap<ToolDescriptor, Parts>();

export function compileTool(version: ToolVersion): CompiledTool {
	const { descriptor } = version;
	const parts = known.get(descriptor) ?? build(descriptor);
	known.set(descriptor, parts);
	return { version, ...parts };
}

function build(descriptor: ToolDescriptor): Parts {
	const input = importSchema(descriptor.input_schema as JsonObject, "/input_schema");
	invariant(input.errors.length === 0, `stored input schema of \`${descriptor.tool_id}\` does not import`);
	const output = descriptor.output_schema && importSchema(descriptor.output_schema as JsonObject, "/output_schema");
	const { approval } = descriptor;
	const approvalWhen = approval.mode === "when" ? mustCompile(approval.when, input.schema) : null;
	const rules = descriptor.semantic_rules.map((rule) => ({
		expression: mustCompile(rule.expr, input.schema),
		field: rule.field,
		message: rule.message,
	}));
	return {
		schema: input.schema,
		validate: compileValidator(input.schema),
		validateResult: output === undefined ? () => [] : compileValidator(output.schema),
		rules,
		approvalWhen,
		readsTaint: approvalWhen?.readsTaint === true || rules.some(({ expression }) => expression.readsTaint),
		marked: compileMarks(input.schema),
	};
}

function mustCompile(source: string, schema: JsonObject): Expression {
	const compiled = compileExpression(source, schema, "bool");
	invariant(compiled.ok, "a stored expression does not compile");
	return compiled.expression;
}
