/**
 * Halts as a lease carries them (decision 17): per scope, without overlaps and gaps of nothing, those of the last
 * HALT_MEMORY_MS, at most HALTED_MAX_INTERVALS. Opening and ending a halt a thousand times must not make the answer that
 * every run fetches grow a thousandfold. Called by TenantControl.
 */
import { HALT_MEMORY_MS, HALTED_MAX_INTERVALS } from "../limits.ts";
import type { HaltInterval } from "./frozen-time.ts";

/**
 * Newest first by their end; open ones stand before all others, so that a bound never hides one. Scope `all` (the
 * platform's) halts the tenant like its own and comes out as `tenant`.
 */
export function mergeHalts(
	halts: readonly HaltInterval[],
	now: number,
	max: number = HALTED_MAX_INTERVALS,
): HaltInterval[] {
	const byScope = new Map<string, HaltInterval[]>();
	for (const halt of [...halts].sort((a, b) => a.since - b.since)) {
		if (endOf(halt) <= now - HALT_MEMORY_MS) continue;
		const { since, until } = halt;
		const scope = halt.scope === "all" ? "tenant" : halt.scope;
		const merged = byScope.get(scope) ?? [];
		byScope.set(scope, merged);
		const last = merged.at(-1);
		if (last === undefined || since > endOf(last)) merged.push({ scope, since, until });
		else if (endOf(halt) > endOf(last)) merged[merged.length - 1] = { ...last, until };
	}
	return [...byScope.values()]
		.flat()
		.sort((a, b) => compare(endOf(b), endOf(a)) || b.since - a.since)
		.slice(0, max);
}

const endOf = ({ until }: HaltInterval): number => until ?? Number.POSITIVE_INFINITY;
/** Not a difference: infinity less infinity is no number. */
const compare = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1);
