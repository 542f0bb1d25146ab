/** A run in two parts: what was asked for, which may be large and hardly ever changes, and what moves with every step. */
import { EMPTY_LOOP_GUARD } from "#core/planner/loop-guard.ts";
import { EMPTY_REPAIR_GUARD } from "#core/planner/repair-guard.ts";
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

/** Members that most runs leave as they began, and while they are so they are not written. */
const AS_BEGUN = {
	v: 1,
	script: { length: 0, at: 0 },
	answer: null,
	error: null,
	turn_open: false,
	plan_attempts: 0,
	denied: [],
	loop_guard: EMPTY_LOOP_GUARD,
	repair_guard: EMPTY_REPAIR_GUARD,
	repair_stop: null,
	queued: [],
} as const satisfies Partial<RunRecord>;

/** The members of its request. */
export function askedOf(run: RunRecord): object {
	return Object.fromEntries(REQUEST_FIELDS.map((name) => [name, run[name]]));
}

/** The others; JSON leaves out what is undefined. */
export function movingOf(run: RunRecord): object {
	const moving: Partial<Record<keyof RunRecord, unknown>> = { ...run };
	for (const name of REQUEST_FIELDS) moving[name] = undefined;
	for (const [name, begun] of Object.entries(AS_BEGUN) as [keyof typeof AS_BEGUN, unknown][]) {
		if (isStill(run[name], begun)) moving[name] = undefined;
	}
	return moving;
}

/** Looked at no deeper than its members: one that only looks different is written. */
function isStill(value: unknown, begun: unknown): boolean {
	if (value === begun) return true;
	if (Array.isArray(value)) return value.length === 0;
	if (typeof value !== "object" || value === null || typeof begun !== "object" || begun === null) return false;
	return Object.entries(begun).every(([name, one]) => (value as Record<string, unknown>)[name] === one);
}

/** The whole of it again. */
export const wholeRun = (asked: Partial<RunRecord>, moving: Partial<RunRecord>): RunRecord =>
	({ ...AS_BEGUN, ...asked, ...moving }) as RunRecord;
