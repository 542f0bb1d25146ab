/**
 * What the tool's own check says of a frozen call (V2). The verdict was gathered before the step and is found by the call's
 * input hash alone, so none for other arguments or another definition counts. No verdict, or a check that failed, refuses:
 * it never passes. A tool without a check costs one look. Called where arguments are judged.
 */
import type { CompiledTool } from "../registry/compile.ts";
import type { Draft } from "./draft.ts";
import { refuse } from "./refuse.ts";
import type { CallRecord } from "./state.ts";

/** In the evidence's envelope and the audit: the check is broken, or was never run. It says nothing of the planner. */
export const CHECK_FAILED_FLAG = "semantic_check_failed";

/** The refused call, or null where it may go on. */
export function judgeCheck(draft: Draft, call: CallRecord, tool: CompiledTool): CallRecord | null {
	const check = tool.version.descriptor.semantic_check;
	if (check === undefined) return null;
	const input_hash = call.input_hash ?? "";
	const verdict = draft.checks?.get(input_hash);
	if (verdict?.kind === "held") return null;
	if (verdict?.kind === "violated") return refuse(draft, call, "normalize", "semantic_failed", verdict.errors);
	if (verdict === undefined) draft.unchecked.push({ input_hash, source: check.source, arguments: call.frozen ?? {} });
	const flagged: CallRecord = { ...call, security_flags: [...call.security_flags, CHECK_FAILED_FLAG] };
	const error = {
		error: "the tool's own check of the arguments could not be run; nothing was executed",
		field: "",
		issue: "semantic_violation",
		expected: "a check that runs",
		hint: "other arguments do not repair this; do not repeat the call, tell the user that the tool is unavailable",
	} as const;
	const rich = `the tool's semantic check ${verdict === undefined ? "was not run on this input" : `failed: ${verdict.code}`}`;
	return refuse(draft, flagged, "normalize", "unavailable", [error], rich);
}
