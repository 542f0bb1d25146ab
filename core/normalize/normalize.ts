/**
 * The normalize stage (N1): from arguments that parsed to arguments that may be frozen. Three layers in order, structural,
 * semantic, security, stopping at the first that fails, with all errors of that layer (V4). It never looks at permission,
 * which has been judged, and never acts. Called by the run for every call, edited arguments included.
 */
import type { Scope } from "../expression.ts";
import type { JsonObject } from "../json.ts";
import type { FieldError, Refusal, RefusalReason } from "../refusal.ts";
import type { CompiledTool } from "../registry/compile.ts";
import type { MarkedText } from "../registry/marks.ts";
import { fill } from "./fill.ts";
import { judgePath } from "./path-guard.ts";
import { unsound } from "./plain.ts";

export type NormalizeWorld = {
	/** Its `args` are replaced by the completed arguments. */
	readonly scope: Scope;
	/** The address rules of this deployment; `reason` is a frozen word, never the URL. */
	readonly judgeUrl: (raw: string) => { readonly ok: true } | { readonly ok: false; readonly reason: string };
};
export type Normalized =
	| { readonly ok: true; readonly arguments: JsonObject; readonly notes: string[] }
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
	const structural = [...unsound(filled.value), ...tool.validate(filled.value)];
	if (structural.length > 0) return refuse("validation_failed", structural);
	const semantic = judgeRules(tool, { ...world.scope, args: filled.value });
	if (semantic.length > 0) return refuse("semantic_failed", semantic);
	const security = tool.marked(filled.value).flatMap((marked) => judgeText(marked, world));
	if (security.length > 0) return refuse("security_blocked", security);
	return { ok: true, arguments: filled.value, notes: [...filled.notes] };
}

function refuse(reason: RefusalReason, errors: FieldError[]): Normalized {
	return { ok: false, refusal: { stage: "normalize", reason, blocked: reason === "security_blocked", errors } };
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

/** V3: blocked and flagged, never something a retry repairs; so no hint how to get through. */
function judgeText({ kind, pointer, text }: MarkedText, world: NormalizeWorld): FieldError[] {
	const reason = danger(kind, text, world);
	if (reason === undefined) return [];
	return [
		{ error: `blocked: ${reason}`, field: pointer, issue: "security_violation", expected: ALLOWED[kind], hint: "" },
	];
}

function danger(kind: MarkedText["kind"], text: string, world: NormalizeWorld): string | undefined {
	switch (kind) {
		case "url": {
			const verdict = world.judgeUrl(text);
			return verdict.ok ? undefined : verdict.reason;
		}
		case "domain": {
			// one host name and nothing beside it: `evil.example/@good.example` would be read as another host
			if (!/^[\p{L}\p{N}.-]{1,253}$/u.test(text)) return "not_a_host_name";
			const verdict = world.judgeUrl(`https://${text}/`);
			return verdict.ok ? undefined : verdict.reason;
		}
		case "path": {
			const verdict = judgePath(text);
			return verdict.ok ? undefined : `the path ${verdict.reason}`;
		}
		case "email":
			// a line break in an address adds headers and recipients
			return hasControl(text) ? "the address holds a control character" : undefined;
		case "sql":
		case "shell":
		case "code":
			// judged where they run, by parser and sandbox; text patterns here would only give false comfort
			return text.includes("\0") ? "the text holds a NUL character" : undefined;
	}
}

const ALLOWED: { readonly [kind in MarkedText["kind"]]: string } = {
	url: "a public address",
	domain: "a public host name",
	path: "a path below its root",
	email: "one e-mail address",
	sql: "text without NUL characters",
	shell: "text without NUL characters",
	code: "text without NUL characters",
};

function hasControl(text: string): boolean {
	for (let i = 0; i < text.length; i += 1) {
		const code = text.charCodeAt(i);
		if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code === 0x2028 || code === 0x2029) return true;
	}
	return false;
}
