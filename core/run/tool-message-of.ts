/** What the planner is told of a call: one status, its data or its error, and where the evidence lies. */

import { unreachable } from "../invariant.ts";
import type { Json } from "../json.ts";
import type { ToolMessage } from "../planner/tool-message.ts";
import type { CallRecord } from "./state.ts";

export function toolMessageInput(call: CallRecord): ToolMessage {
	const base = { evidence_id: call.evidence_id, notes: call.notes };
	switch (call.state) {
		case "COMPLETED":
			return { status: "success", data: (call.result ?? null) as Json, ...base };
		case "FAILED":
			return { status: "error", error: fault(call), ...base };
		case "TIMEOUT":
			return { status: "timeout", error: fault(call), ...base };
		case "OUTCOME_UNKNOWN":
			return { status: "outcome_unknown", error: fault(call), ...base };
		case "REFUSED":
			return { status: "refused", error: (call.refusal ?? null) as unknown as Json, ...base };
		case "DENIED":
		case "EXPIRED":
			return { status: "denied", error: fault(call), ...base };
		case "AWAITING_APPROVAL":
			return { status: "awaiting_approval", error: { message: "awaiting approval, not executed" }, ...base };
		case "AWAITING_CALLER":
			return { status: "awaiting_approval", error: { message: "with the caller, no answer yet" }, ...base };
		case "PENDING":
		case "DISPATCHED":
		case "RUNNING":
			return { status: "awaiting_approval", error: { message: "on its way, no result yet" }, ...base };
		default:
			return unreachable(call.state);
	}
}

const fault = (call: CallRecord): Json => (call.error ?? { code: "internal", message: "no result" }) as unknown as Json;
