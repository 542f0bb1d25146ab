/**
 * A call that has been tried and is not tried again after all. It was given to the world, so it is never REFUSED: a write
 * may have acted, and whoever reads that it was refused would do it once more.
 */
import { conclude } from "./conclude.ts";
import type { Draft } from "./draft.ts";
import type { CallRecord } from "./state.ts";

export function giveUp(draft: Draft, call: CallRecord, why: string): void {
	const { descriptor } = draft.kit.tool(call.definition_hash ?? "").version;
	draft.dueDone("start", call.tool_call_id);
	conclude(draft, call, {
		kind: "failed",
		code: "interrupted",
		message: `not tried again: ${why}`,
		effect: descriptor.effect === "read" ? "none" : "possible",
		retryable: false,
	});
}
