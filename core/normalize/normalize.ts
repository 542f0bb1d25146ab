/**
 * The normalize stage (N1): from arguments that parsed to arguments that may be frozen. Three layers in order, structural,
 * semantic, security, stopping at the first that fails, with all errors of that layer (V4). It never looks at permission,
 * which has been judged, and never acts. Called by the run for every call, edited arguments included.
 */
import type { Scope } from "../expression.ts";
import type { JsonObject } from "../json.ts";
import type { FieldError, Refusal, RefusalReason } from "../refusal.ts";
import type { CompiledTool } from "../registry/compile.ts";
import type { Locale } from "../registry/explain-words.ts";
import { type DangerWorld, flagsOf, judgeText } from "./danger.ts";
import { fill } from "./fill.ts";
import { unsound } from "./plain.ts";

export type NormalizeWorld = DangerWorld & {
	/** Its `args` are replaced by the completed arguments. */
	readonly scope: Scope;
	/** What rules read as `args_taint` of the completed arguments; asked only for a tool with rules that read it. */
	readonly taint?: (args: JsonObject) => readonly string[];
	/** The language of repair hints (V4); English when nobody said. */
	readonly locale?: Locale;
};
export type Normalized =
	| {
			readonly ok: true;
			readonly arguments: JsonObject;
			readonly notes: string[];
			/** For `security_flags` of the evidence: `<flag>:<JSON Pointer>`; what blocks is a refusal instead. */
			readonly flags: readonly string[];
	  }
	| { readonly ok: false; readonly refusal: Refusal };

/** `value` is left as it is; the arguments that come back are a new value, defaults and coercions included. */
export function normalize(tool: CompiledTool, value: JsonObject, world: NormalizeWorld): Normalized {
	const broken = unsound(value);
	if (broken.length > 0)
		return refuse(
			broken.some((error) => error.issue === "integer_out_of_range") ? "integer_out_of_range" : "validation_failed",
			broken,
		);
	const filled = fill(tool.schema, value);
	const structural = [...unsound(filled.value), ...tool.validate(filled.value, world.locale)];
	if (structural.length > 0) return refuse("validation_failed", structural);
	const semantic = judgeRules(tool, scopeOf(tool, world, filled.value));
	if (semantic.length > 0) return refuse("semantic_failed", semantic);
	const marked = tool.marked(filled.value);
	const security = marked.flatMap((text) => judgeText(text, world));
	if (security.length > 0) return refuse("security_blocked", security);
	const flags = flagsOf(tool.version.descriptor.implementation.kind, filled.value, marked);
	return { ok: true, arguments: filled.value, notes: [...filled.notes], flags };
}

function refuse(reason: RefusalReason, errors: FieldError[]): Normalized {
	return { ok: false, refusal: { stage: "normalize", reason, blocked: reason === "security_blocked", errors } };
}

function scopeOf(tool: CompiledTool, { scope, taint }: NormalizeWorld, args: JsonObject): Scope {
	const tainted = tool.readsTaint && tool.rules.length > 0 ? taint?.(args) : undefined;
	return tainted === undefined ? { ...scope, args } : { ...scope, args, args_taint: tainted };
}

function judgeRules(tool: CompiledTool, scope: Scope): FieldError[] {
	return tool.rules.flatMap((rule): FieldError[] => {
		const result = rule.expression.evaluate(scope);
		if (result.ok && result.value === true) return [];
		const field = rule.field.startsWith("/") || rule.field === "" ? rule.field : `/${rule.field}`;
		// a rule that cannot be evaluated has not been kept
		const error = result.ok ? rule.message : `${rule.message} (the rule could not be evaluated)`;
		return [{ error, field, issue: "semantic_violation", expected: rule.expression.source, hint: rule.message }];
	});
}
