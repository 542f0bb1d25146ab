/**
 * Does this frozen call need a human (A2)? The tool's own rule and the floor of its class, whichever is stricter; no
 * descriptor, role, toolpack or standing rule lowers the floor. It asks, it never hides or denies (P5). Called after the
 * freeze and again at dispatch.
 */
import type { Scope } from "../expression.ts";
import type { JsonObject } from "../json.ts";
import { allow, ask, mostRestrictive, type Verdict } from "../policy/verdict.ts";
import type { CompiledTool } from "../registry/compile.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";

/** `args` are the frozen arguments, those that would be sent. */
export function judgeApproval(tool: CompiledTool, args: JsonObject, scope: Scope): Verdict {
	return mostRestrictive(declared(tool, { ...scope, args }), floor(tool.version.descriptor));
}

function declared(tool: CompiledTool, scope: Scope): Verdict {
	const { approval } = tool.version.descriptor;
	if (approval.mode === "never") return allow("the tool runs without approval", ["approval:never"]);
	if (approval.mode === "always") return ask("the tool always asks", ["approval:always"]);
	const result = tool.approvalWhen?.evaluate(scope);
	// decision 19: a rule that cannot be evaluated has not said that nobody needs to look
	if (result === undefined || !result.ok)
		return ask("the approval rule could not be evaluated", ["approval:when_failed"]);
	return result.value === false
		? allow("the approval rule does not apply", ["approval:when"])
		: ask("the approval rule applies to these arguments", ["approval:when"]);
}

/** Classes that always ask, by the identity that no descriptor chooses for itself (A2). */
const FLOORS: readonly {
	readonly id: string;
	readonly applies: (descriptor: ToolDescriptor) => boolean;
	readonly why: string;
}[] = [
	{
		id: "approval:floor_mcp",
		applies: (descriptor) => descriptor.tool_id.startsWith("mcp:"),
		why: "tools of external MCP servers always ask",
	},
];

function floor(descriptor: ToolDescriptor): Verdict {
	const found = FLOORS.filter((rule) => rule.applies(descriptor));
	if (found.length === 0) return allow("no floor for this class", []);
	return ask(
		found.map((rule) => rule.why).join("; "),
		found.map((rule) => rule.id),
	);
}
