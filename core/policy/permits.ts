/**
 * Permission (P1, P2): three-part arithmetic, and the two judgements built on it. `judgeTool` looks at no argument, so
 * that a caller without permission gets the same answer for good, bad and empty arguments; it comes before normalize and
 * again in the transaction that starts the call. `judgeCall` is the argument level. Also called by every route that needs
 * a permission.
 */
import type { Scope } from "../expression.ts";
import type { JsonObject } from "../json.ts";
import type { Authority } from "../principal.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";
import { parseThreePart, type ThreePart } from "../registry/three-part.ts";
import { allow, deny, mostRestrictive, type Verdict } from "./verdict.ts";

export { mostRestrictive, type Verdict };

/** `domain:action:object`; missing trailing parts read as `*` (P2). Undefined for any other form: it then grants nothing. */
export function parsePermission(text: string): ThreePart | undefined {
	return parseThreePart(text);
}

/** Grants by exact text for an O(1) hit, and the few with wildcards to walk (P4). */
type Grants = { readonly exact: ReadonlySet<string>; readonly wild: readonly ThreePart[] };
/** By the array itself: an authority is a value, made anew when the policy revision changes. */
const compiled = new WeakMap<readonly string[], Grants>();

function compile(granted: readonly string[]): Grants {
	const known = compiled.get(granted);
	if (known !== undefined) return known;
	const exact = new Set<string>();
	const wild: ThreePart[] = [];
	for (const text of granted) {
		const parts = parsePermission(text);
		if (parts === undefined) continue;
		if (parts.includes("*")) wild.push(parts);
		else exact.add(parts.join(":"));
	}
	const grants = { exact, wild };
	compiled.set(granted, grants);
	return grants;
}

/** As `permits`, for a need that is in parts already (a tool id may hold colons). */
function covers(granted: readonly string[], need: ThreePart): boolean {
	const grants = compile(granted);
	if (grants.exact.has(need.join(":"))) return true;
	return grants.wild.some((grant) => grant.every((part, i) => part === "*" || part === need[i]));
}

/** Whether the granted permissions cover a required one. A required `*` is met only by a granted `*`; a malformed one by nothing. */
export function permits(granted: readonly string[], required: string): boolean {
	const need = parsePermission(required);
	return need !== undefined && covers(granted, need);
}

/**
 * Decision 19: calling a tool needs the implied `tools:<effect>:<tool_id>` and each of its `required_permissions`.
 * `authority.tools` stand for `tools:*:<tool_id>`, nothing more.
 */
export function judgeTool(authority: Authority, descriptor: ToolDescriptor): Verdict {
	const { tool_id, effect } = descriptor;
	const implied: ThreePart = ["tools", effect, tool_id];
	if (!authority.tools.includes(tool_id) && !covers(authority.permissions, implied))
		return deny(`lacks \`${implied.join(":")}\``, ["rbac:implied_permission"]);
	for (const required of descriptor.required_permissions)
		if (!permits(authority.permissions, required)) return deny(`lacks \`${required}\``, ["rbac:required_permission"]);
	return allow("the role permits the tool", ["rbac:tool"]);
}

/** One attribute rule, compiled: what it says about a call, or null when it does not apply. An erring rule must say deny. */
export type CallRule = (call: {
	authority: Authority;
	descriptor: ToolDescriptor;
	args: JsonObject;
	scope: Scope;
}) => Verdict | null;

/**
 * Argument-level judgement of a frozen call (P1, P3), after the freeze and again at dispatch. Attribute rules over subject,
 * action, resource and environment join through `rules`. The tool level is part of it, so that a caller of this one alone
 * never skips the role. Whether the tool itself asks for a human is approval's judgement.
 */
export function judgeCall(
	authority: Authority,
	descriptor: ToolDescriptor,
	args: JsonObject,
	scope: Scope,
	rules: readonly CallRule[] = [],
): Verdict {
	const said = rules.map((rule) => rule({ authority, descriptor, args, scope })).filter((verdict) => verdict !== null);
	return mostRestrictive(judgeTool(authority, descriptor), ...said);
}
