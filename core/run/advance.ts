/**
 * What follows from a step that changed calls: stand-ins for those that ended badly, parents that take their stand-in's
 * word, pending calls that may start now, and at last the turn. Every event that moves a call ends here.
 */
import type { Draft } from "./draft.ts";
import { followUps, resolveChildren } from "./follow-up.ts";
import { startPending } from "./start.ts";
import type { World } from "./state.ts";
import { settleTurn } from "./turn.ts";

export function advance(draft: Draft, world: World): void {
	// A start that was not to be ends its call too, and what stands in for that one wants to be started.
	do {
		followUps(draft, world);
		startPending(draft, world);
	} while (draft.ended.length > 0);
	resolveChildren(draft);
	settleTurn(draft, world);
}
