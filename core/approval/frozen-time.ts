/**
 * How much of a span was frozen by halts (decision 17, Q6): a kill switch must not eat the time of approvals that wait
 * under it, nor may two halts at once give back more than has passed. Adds up only; whoever holds an expiry adds it there.
 * Called by the run machine, with the intervals of its lease.
 */

/** `scope` is `tenant` or `tool:<tool_id>`; ms since the epoch; `until` null: still open. */
export type HaltInterval = { readonly scope: string; readonly since: number; readonly until: number | null };

/** Ms of `[from, to)` during which the tenant or this tool was halted, each counted once; 0 for an empty span. */
export function haltedMs(intervals: readonly HaltInterval[], tool_id: string, from: number, to: number): number {
	const own = `tool:${tool_id}`;
	const parts = intervals
		.filter(({ scope }) => scope === "tenant" || scope === own)
		.map(({ since, until }) => ({ since: Math.max(since, from), until: Math.min(until ?? to, to) }))
		.sort((a, b) => a.since - b.since);
	let frozen = 0;
	// what lies before this has been counted
	let counted = from;
	for (const { since, until } of parts) {
		frozen += Math.max(0, until - Math.max(since, counted));
		counted = Math.max(counted, until);
	}
	return frozen;
}
