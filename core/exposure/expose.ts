/**
 * F4: the concrete tools a planner sees. Eligible = online, public, available, permitted. Few are shown whole; many are
 * ranked, which is a context budget and never a permission (P5): exposure grants nothing. The trace names only tools the
 * caller may call (Q7). Policy comes later in the pipeline, so permission is a function given by the caller. Called by
 * the run when a turn opens.
 */
import { available, type Condition } from "../availability/available.ts";
import type { ToolDescriptor, ToolVersion } from "../registry/descriptor.ts";
import { onSurface } from "../surface/surface.ts";

export type ExposureTraceEntry = {
	readonly tool_id: string;
	readonly exposed: boolean;
	readonly reason: string;
	readonly recall_score: number | null;
	readonly rerank_score: number | null;
};
export type Ranked = {
	readonly tool_id: string;
	readonly recall_score: number | null;
	readonly rerank_score: number | null;
};
export type Exposed = {
	readonly mode: "all" | "ranked";
	/** Ordered by tool_id, whatever the rank: provider caches want a stable order (L3). */
	readonly exposed: readonly ToolVersion[];
	readonly trace: readonly ExposureTraceEntry[];
};

export function expose(input: {
	/** The newest online version of each tool. */
	readonly tools: readonly ToolVersion[];
	/** Tool-level permission for the principal that asks. */
	readonly permitted: (descriptor: ToolDescriptor) => boolean;
	readonly conditions: ReadonlyMap<string, Condition>;
	/** An explicit set of tool ids, or null for the exposure rule. */
	readonly pinned: readonly string[] | null;
	/** ms since the epoch. */
	readonly now: number;
	/** Above this many eligible tools, ranking chooses; without `rank` all are shown. */
	readonly limit: number;
	/** Best first, only from the tools it is given; unknown ids and repeats are ignored. */
	readonly rank?: ((eligible: readonly ToolVersion[]) => readonly Ranked[]) | undefined;
}): Exposed {
	const visible = input.tools
		.filter((version) => onSurface(version.descriptor).holds && input.permitted(version.descriptor))
		.sort((one, other) => (one.descriptor.tool_id < other.descriptor.tool_id ? -1 : 1));
	const trace = new Map<string, ExposureTraceEntry>();
	const note = (tool_id: string, exposed: boolean, reason: string, scores?: Ranked): void => {
		const { recall_score = null, rerank_score = null } = scores ?? {};
		trace.set(tool_id, { tool_id, exposed, reason, recall_score, rerank_score });
	};
	const eligible: ToolVersion[] = [];
	for (const version of visible) {
		const { tool_id } = version.descriptor;
		const judged = available(version, input.conditions, input.now);
		const mends = judged.missing.map(({ mend }) => mend).join("; ");
		if (judged.holds) eligible.push(version);
		else note(tool_id, false, `not available: ${judged.reason}; to mend it: ${mends}`);
	}
	const pins = input.pinned === null ? null : new Set(input.pinned);
	const chosen = pins === null ? eligible : eligible.filter((version) => pins.has(version.descriptor.tool_id));
	for (const version of eligible) {
		const { tool_id } = version.descriptor;
		if (pins === null) note(tool_id, true, "eligible, and every eligible tool is shown");
		else if (pins.has(tool_id)) note(tool_id, true, "pinned by the run");
		else note(tool_id, false, "eligible, and not in the run's pinned set");
	}
	if (pins !== null || input.rank === undefined || chosen.length <= input.limit) return answer("all", chosen, trace);

	const byId = new Map(chosen.map((version) => [version.descriptor.tool_id, version]));
	const top = new Map<string, ToolVersion>();
	for (const [place, scores] of input.rank(chosen).entries()) {
		const version = byId.get(scores.tool_id);
		if (version === undefined || top.has(scores.tool_id)) continue;
		const fits = top.size < input.limit;
		if (fits) top.set(scores.tool_id, version);
		byId.delete(scores.tool_id);
		note(
			scores.tool_id,
			fits,
			fits ? `ranked ${place + 1}` : `ranked ${place + 1}, beyond the limit of ${input.limit}`,
			scores,
		);
	}
	for (const tool_id of byId.keys()) note(tool_id, false, "not recalled for this task");
	return answer(
		"ranked",
		chosen.filter((version) => top.has(version.descriptor.tool_id)),
		trace,
	);
}

function answer(
	mode: "all" | "ranked",
	exposed: readonly ToolVersion[],
	trace: Map<string, ExposureTraceEntry>,
): Exposed {
	const entries = [...trace.values()].sort((one, other) => (one.tool_id < other.tool_id ? -1 : 1));
	return { mode, exposed, trace: entries };
}
