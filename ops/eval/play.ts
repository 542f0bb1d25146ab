/**
 * Plays one recording through the pure stages, as a run would: the name to the tool, the text to arguments, the arguments
 * through schema, rules and security checks. Invokes nothing and asks nobody. Called by `npm run eval`.
 */

import { parseUrl } from "#adapters/http/url.ts";
import type { Scope } from "#core/expression.ts";
import { judgeUrl } from "#core/normalize/address-guard.ts";
import { normalize } from "#core/normalize/normalize.ts";
import { readArguments } from "#core/planner/arguments.ts";
import { executes, toPlannerDecision } from "#core/planner/decision.ts";
import { functionNames } from "#core/planner/function-names.ts";
import type { PlannedCall } from "#core/ports.ts";
import type { FieldError, RefusalReason } from "#core/refusal.ts";
import { type CompiledTool, compileTool } from "#core/registry/register.ts";
import { type Recording, sha256 } from "./recording.ts";

/** One refused call; `tool` is the name that the planner used. */
export type Refused = {
	readonly tool: string;
	readonly reason: RefusalReason;
	readonly errors: readonly FieldError[];
};
export type Played = {
	readonly recording: Recording;
	/** Per decision, in order: its refused calls; none when every call may go on. A decision without calls is an answer. */
	readonly tries: readonly { readonly calls: number; readonly refused: readonly Refused[] }[];
	/** Repairs until every call of a decision was valid; null when none was. */
	readonly valid_after: number | null;
};

/** As a deployment without exemptions judges addresses. */
function addressVerdict(raw: string): ReturnType<typeof judgeUrl> {
	const parts = parseUrl(raw);
	return parts === undefined ? { ok: false, reason: "not_a_url" } : judgeUrl(parts, { own_hosts: [], exemptions: [] });
}

const CONTEXT: Scope["context"] = {
	principal: { id: "eval", kind: "agent", roles: [] },
	tenant_id: "eval",
	session_id: "sess_eval",
	run_id: "run_eval",
	now: 0,
	environment: "evaluation",
};

export function play(recording: Recording): Played {
	const { versions } = recording;
	const names = functionNames(
		versions.map((version) => version.descriptor.tool_id),
		sha256,
	);
	const byId = new Map(versions.map((version) => [version.descriptor.tool_id, version]));
	const toolOf = (name: string): CompiledTool | undefined => {
		const version = byId.get(names.toTool.get(name) ?? "");
		return version === undefined ? undefined : compileTool(version);
	};
	const tries = recording.decisions.map((wire) => {
		const turn = toPlannerDecision(wire);
		const whole = executes(turn);
		const refused = turn.tool_calls.flatMap((call): Refused[] => {
			if (!whole.ok) return [{ tool: call.name, reason: whole.reason, errors: whole.errors }];
			const verdict = judge(call, toolOf(call.name));
			return verdict === null ? [] : [{ tool: call.name, ...verdict }];
		});
		return { calls: turn.tool_calls.length, refused };
	});
	const at = tries.findIndex((one) => one.calls > 0 && one.refused.length === 0);
	return { recording, tries, valid_after: at === -1 ? null : at };
}

/** A check that did not run never passes, here as in a run. */
const UNCHECKED = {
	error: "the tool's semantic check is not run here",
	field: "",
	issue: "semantic_violation",
	expected: "a tool without `semantic_check`",
	hint: "evaluate it without the check, and the check in runs",
} as const;

function judge(call: PlannedCall, tool: CompiledTool | undefined): Omit<Refused, "tool"> | null {
	if (tool === undefined) {
		const hint = "choose from the tools offered";
		const error = {
			error: "unknown tool",
			field: "",
			issue: "unknown_name" as const,
			expected: "an offered tool",
			hint,
		};
		return { reason: "unknown_tool", errors: [error] };
	}
	const read = readArguments(call.arguments);
	if (!read.ok) return { reason: read.reason, errors: read.errors };
	const normal = normalize(tool, read.value, {
		scope: { args: read.value, context: CONTEXT },
		judgeUrl: addressVerdict,
	});
	if (!normal.ok) return { reason: normal.refusal.reason, errors: normal.refusal.errors };
	return tool.version.descriptor.semantic_check === undefined ? null : { reason: "unavailable", errors: [UNCHECKED] };
}
