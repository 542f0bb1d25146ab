/** What the planner is told of a call, and of a turn: one status, its data or its error, and where the evidence lies. */

import { unreachable } from "../invariant.ts";
import type { Json } from "../json.ts";
import { type ToolMessage, toolMessage } from "../planner/tool-message.ts";
import type { CallRecord } from "./state.ts";
import { LIVE, type TurnMessage } from "./view.ts";

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
			return {
				status: "awaiting_approval",
				error: { code: "awaiting_approval", message: "awaiting approval, not executed" },
				...base,
			};
		// The contract's list has no word for these; their code and message say what they wait for.
		case "AWAITING_CALLER":
			return { status: "awaiting_approval", error: unfinished("awaiting_caller", withCaller(call)), ...base };
		case "PENDING":
			return { status: "awaiting_approval", error: unfinished("in_progress", pendingFor(call)), ...base };
		case "DISPATCHED":
		case "RUNNING": {
			const since = call.attempts.at(-1)?.started_at;
			const message = `running${since === undefined ? "" : ` since ${since}`}, no result yet`;
			return { status: "awaiting_approval", error: unfinished("in_progress", message), ...base };
		}
		default:
			return unreachable(call.state);
	}
}

/** One entry per tool call that the planner made in a turn, by the planner's own ids; `calls` are the turn's, in its order. */
export function turnMessages(calls: readonly CallRecord[]): TurnMessage[] {
	return calls
		.filter((call) => call.parent_call_id === null && call.superseded_by === null)
		.map((call) => ({
			role: "tool",
			tool_call_id: call.provider_call_id,
			content: toolMessage(toolMessageInput(call)),
			final: !LIVE.has(call.state),
		}));
}

const fault = (call: CallRecord): Json => (call.error ?? { code: "internal", message: "no result" }) as unknown as Json;

const unfinished = (code: string, what: string): Json => ({ code, message: `${what}; it needs no approval` });

const withCaller = ({ waiting }: CallRecord): string =>
	`handed to the caller, who has ${waiting === null ? "not answered yet" : `until ${waiting.until} to answer`}`;

const WAITS_FOR: Readonly<Record<NonNullable<CallRecord["waiting"]>["reason"], string>> = {
	retry: "failed for now, and is tried again",
	rate_limit: "waits for the tool's rate limit",
	paused: "waits: the tool has asked to be left alone, and is paused",
	claim: "waits for another call under the same key to end",
	concurrency: "waits for its place: as many calls as may run at once are running",
	control: "waits: the tenant's control cannot be reached",
	halt: "held by a halt, and goes on when that has ended",
	gate: "waits for the tool's gate to let it through",
	fallback: "has not succeeded itself; its fallback or the tool that knows its outcome is being asked",
	caller: "handed to the caller",
};

function pendingFor({ waiting, gate }: CallRecord): string {
	if (waiting === null) return gate === "asked" ? WAITS_FOR.gate : "not started yet";
	const looked = waiting.reason === "fallback" ? "" : `; looked at again by ${waiting.until}`;
	return `${WAITS_FOR[waiting.reason]}${looked}`;
}
