/**
 * CEL, the one expression language: approval rules, semantic rules, later ABAC and branches. Compiled and type-checked at
 * registration against the tool's input schema (decision 28), evaluated on frozen arguments. It sees `args`, `context`
 * and `args_taint` and nothing else; it refuses what could run long or err on valid arguments. Called by the registry, normalize, approval.
 */
import { Environment, type ParseResult } from "@marcbachmann/cel-js";
import { argumentNames, guardExpression, MATCHED_TEXT_MAX_CHARS, reads } from "./expression-guards.ts";
import { celType, celValue } from "./expression-schema.ts";
import { type Json, type JsonObject, put } from "./json.ts";

/** What an expression may ask about its surroundings. `now` is the server's clock: ms since the epoch, or ISO 8601. */
export type ExpressionContext = {
	readonly principal: { readonly id: string; readonly kind: string; readonly roles: readonly string[] };
	readonly tenant_id: string;
	readonly session_id: string;
	readonly run_id: string;
	readonly now: number | string;
	readonly environment: string;
};
export type Scope = {
	readonly args: JsonObject;
	readonly context: ExpressionContext;
	/**
	 * Labels of untrusted sources whose text the arguments hold: `"http:fetch" in args_taint`. Where it was not worked out, a rule
	 * that asks for it errs, which asks a person or refuses; an empty list would be a promise nobody made.
	 */
	readonly args_taint?: readonly string[];
};
export type Evaluated =
	| { readonly ok: true; readonly value: unknown }
	| { readonly ok: false; readonly message: string };
/** A compiled expression. `evaluate` never throws; integers come back as BigInt. */
export type Expression = {
	readonly source: string;
	/** It reads `args_taint`, which is worked out only for rules that do. */
	readonly readsTaint: boolean;
	evaluate(scope: Scope): Evaluated;
};
export type CompiledExpression =
	| { readonly ok: true; readonly expression: Expression }
	| { readonly ok: false; readonly message: string };

/** One short rule, not a program. */
export const EXPRESSION_MAX_CHARS = 2_048;
const LIMITS = { maxAstNodes: 512, maxDepth: 32, maxListElements: 128, maxMapEntries: 32, maxCallArguments: 8 };

const CONTEXT_FIELDS = {
	principal: { id: "string", kind: "string", roles: "list<string>" },
	tenant_id: "string",
	session_id: "string",
	run_id: "string",
	now: "google.protobuf.Timestamp",
	environment: "string",
} as const;

/**
 * Parses, type-checks and guards one expression over `args` (typed by `input_schema`) and `context`.
 * `want: "bool"` refuses an expression whose type is known and not bool; a `dyn` result is judged when it runs.
 */
export function compileExpression(source: string, input_schema: JsonObject, want: "bool" | "any"): CompiledExpression {
	if (source.trim() === "") return { ok: false, message: "expression is empty" };
	if (source.length > EXPRESSION_MAX_CHARS)
		return { ok: false, message: `expression is longer than ${EXPRESSION_MAX_CHARS} characters` };
	let parsed: ParseResult;
	try {
		parsed = environment(input_schema).parse(source);
		const checked = parsed.check();
		if (!checked.valid) return { ok: false, message: brief(checked.error) };
		if (want === "bool" && checked.type !== "bool")
			return { ok: false, message: `expression must be true or false, and is of type ${checked.type ?? "unknown"}` };
	} catch (error) {
		return { ok: false, message: brief(error) };
	}
	const problem = guardExpression(parsed.ast, input_schema);
	if (problem !== undefined) return { ok: false, message: problem };
	const names = argumentNames(parsed.ast);
	const readsTaint = reads(parsed.ast, "args_taint");
	const run = (scope: Scope): Evaluated => evaluate(parsed, input_schema, names, scope, want);
	return { ok: true, expression: { source, readsTaint, evaluate: run } };
}

function environment(input_schema: JsonObject): Environment {
	const env = new Environment({ unlistedVariablesAreDyn: false, homogeneousAggregateLiterals: true, limits: LIMITS });
	const args = celType(input_schema, input_schema);
	if (typeof args === "string") env.registerVariable("args", args === "dyn" ? "map<string, dyn>" : args);
	else env.registerVariable("args", { schema: args });
	env.registerVariable("context", { schema: CONTEXT_FIELDS });
	env.registerVariable("args_taint", "list<string>");
	return env;
}

/** Converts the arguments that the expression names: `null` stands for all. */
function argumentsFor(names: readonly string[] | null, input_schema: JsonObject, args: JsonObject): unknown {
	if (names === null) return celValue(input_schema, input_schema, args);
	const named: JsonObject = {};
	for (const name of names) if (Object.hasOwn(args, name)) put(named, name, args[name] as Json);
	return celValue(input_schema, input_schema, named);
}

function evaluate(
	parsed: ParseResult,
	input_schema: JsonObject,
	names: readonly string[] | null,
	scope: Scope,
	want: "bool" | "any",
): Evaluated {
	if (parsed.ast.input.includes("matches") && squares(scope.args) > MATCHED_TEXT_MAX_CHARS ** 2)
		return {
			ok: false,
			message: `there is more text than the ${MATCHED_TEXT_MAX_CHARS} characters that \`matches\` takes`,
		};
	try {
		const { context } = scope;
		const value: unknown = parsed({
			...(scope.args_taint === undefined ? {} : { args_taint: [...scope.args_taint] }),
			args: argumentsFor(names, input_schema, scope.args),
			context: {
				principal: { id: context.principal.id, kind: context.principal.kind, roles: [...context.principal.roles] },
				tenant_id: context.tenant_id,
				session_id: context.session_id,
				run_id: context.run_id,
				now: new Date(context.now),
				environment: context.environment,
			},
		});
		if (want === "bool" && typeof value !== "boolean")
			return { ok: false, message: "expression did not give true or false" };
		return { ok: true, value };
	} catch (error) {
		return { ok: false, message: brief(error) };
	}
}

/** The work of quadratic matching over all texts, in squares of characters. */
function squares(value: Json): number {
	if (typeof value === "string") return value.length ** 2;
	if (typeof value !== "object" || value === null) return 0;
	let sum = 0;
	for (const inner of Object.values(value)) sum += squares(inner as Json);
	return sum;
}

/** The first line of the engine's message: the rest quotes the source with a caret. Never contains argument values beyond type names. */
function brief(error: unknown): string {
	const text = (error as { summary?: unknown } | null)?.summary ?? (error as Error | null)?.message;
	return (
		String(text ?? "expression failed")
			.split("\n")[0]
			?.slice(0, 300) ?? "expression failed"
	);
}
