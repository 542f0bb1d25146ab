/** When an approval ends: its own time, and the time that halts took from it (decision 17, Q6). */
import { haltedMs } from "../approval/frozen-time.ts";
import type { Draft } from "./draft.ts";
import type { ApprovalRecord, World } from "./state.ts";

/** Without word from control nobody knows what was halted: what may be late then is looked at again after this, ms. */
export const EXPIRY_RECHECK_MS = 30_000;

export type Standing = {
	readonly late: boolean /** When to look again, ms since the epoch. */;
	readonly again_at: number;
};

export function standingOf(draft: Draft, approval: ApprovalRecord, world: World): Standing {
	const { now } = draft.kit;
	if (approval.expires_at_ms > now) return { late: false, again_at: approval.expires_at_ms };
	if (world.lease === null) return { late: false, again_at: now + EXPIRY_RECHECK_MS };
	const ends =
		approval.expires_at_ms + haltedMs(world.lease.halted, approval.tool_id, Date.parse(approval.created_at), now);
	return { late: ends <= now, again_at: Math.max(ends, now + 1) };
}
