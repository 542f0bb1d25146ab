/** A run in two rows: what was asked for, which may be large and hardly ever changes, and what moves with every step. */
import type { RunRecord } from "#core/run/state.ts";

/** The members of a run that its request said, and what is large and changes as rarely; everything else moves with every step. */
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
	"prices",
	"replay",
	"pinned",
	"caller_functions",
	"limits",
	"locale",
	"metadata",
	"context",
	"compaction",
	"created_at",
] as const satisfies readonly (keyof RunRecord)[];

/** The members of its request. */
export function askedOf(run: RunRecord): object {
	return Object.fromEntries(REQUEST_FIELDS.map((name) => [name, run[name]]));
}

/** The others; JSON leaves out what is undefined. */
export function movingOf(run: RunRecord): object {
	const moving: Partial<Record<keyof RunRecord, unknown>> = { ...run };
	for (const name of REQUEST_FIELDS) moving[name] = undefined;
	return moving;
}
