/** A run in two rows: what was asked for, which may be large and hardly ever changes, and what moves with every step. */
import type { RunRecord } from "#core/run/state.ts";

/** The members of a run that its request said; everything else moves with every step. */
export const REQUEST_FIELDS = [
	"run_id",
	"tenant_id",
	"trace_id",
	"session_id",
	"request_hash",
	"goal",
	"principal",
	"authority",
	"planner",
	"pinned",
	"caller_functions",
	"limits",
	"metadata",
	"context",
	"created_at",
] as const satisfies readonly (keyof RunRecord)[];
const REQUEST_FIELD_SET: ReadonlySet<string> = new Set(REQUEST_FIELDS);

/** The run as its request row and its moving row. */
export function splitRun(run: RunRecord): [asked: object, moving: object] {
	const entries = Object.entries(run);
	return [
		Object.fromEntries(entries.filter(([name]) => REQUEST_FIELD_SET.has(name))),
		Object.fromEntries(entries.filter(([name]) => !REQUEST_FIELD_SET.has(name))),
	];
}
