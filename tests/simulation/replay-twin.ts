/**
 * Finished runs as recordings, made as the object of a run makes them, and played by runs of their own: what the AgentRun
 * object stores as a script and what it hands the machine at each decision. Nothing of the recorded run is looked at later.
 */
import type { StoredMessage } from "#core/planner/conversation.ts";
import { toPlannerDecision } from "#core/planner/decision.ts";
import type { PlanFailed, Planned } from "#core/run/event.ts";
import { decisionsOf, type RecordedCall, type RecordedTurn, type Replay, recordedTurn } from "#core/run/recording.ts";
import type { RunLimits, RunRecord } from "#core/run/state.ts";
import { labelOf } from "#core/run/taint-of.ts";
import { FINISHED, type RunStatus } from "#core/run/view.ts";
import { withWordless } from "#core/run/wordless.ts";
import type { RunTwin } from "./run-twin.ts";
import { toolOf } from "./tools.ts";

export type Played = {
	readonly replay: Replay;
	readonly script: readonly RecordedTurn[];
	/** Of the recorded run, as they were when it was recorded. */
	readonly messages: readonly StoredMessage[];
	readonly asked: ReadonlyMap<number, readonly string[]>;
	/** In which version each call of the recording was judged, by what it is called there. */
	readonly definitions: ReadonlyMap<string, string | null>;
	readonly denied: RunRecord["denied"];
	readonly status: RunStatus;
	readonly limits: RunLimits;
};

/** Null for a run that still moves, or that decided nothing. */
export function recordingOf(
	{ run, messages, whole, calls, asked, played }: RunTwin,
	mode: Replay["mode"],
): Played | null {
	if (run === null || !FINISHED.has(run.status)) return null;
	const kit = { tool: toolOf };
	const called = [...new Set([...calls.values()].map(({ turn }) => turn))].sort((a, b) => a - b);
	const script = decisionsOf(withWordless(messages, called)).map(({ message, said }, n): RecordedTurn => {
		const own = [...calls.values()].filter((call) => call.turn === message.turn);
		const turn = recordedTurn(message, own, said, (call) => labelOf({ kit }, call));
		return played === null ? turn : { ...turn, told: toldOf(played.script[n]) };
	});
	if (script.length === 0) return null;
	return {
		replay: { run_id: run.run_id, mode, placeholders: false },
		script: JSON.parse(JSON.stringify(script)) as RecordedTurn[],
		messages: [...whole],
		asked: new Map(asked),
		definitions: new Map([...calls.values()].map((call) => [call.tool_call_id, call.definition_hash])),
		denied: run.denied,
		status: run.status,
		limits: run.limits,
	};
}

const toldOf = (turn: RecordedTurn | undefined): readonly (RecordedCall | null)[] => turn?.told ?? turn?.calls ?? [];

/** What the scripted planner of a replay says, asked for a turn. */
export function nextOf(played: Played, at: number, turn: number): Omit<Planned, "world"> | PlanFailed {
	const entry = played.script[at];
	const fault = {
		code: "planner_error",
		message: "the recording ends here, without an answer",
		retryable: false,
	} as const;
	if (entry === undefined) return { kind: "plan_failed", turn, fault };
	const { decision, calls: recorded, said } = entry;
	return {
		kind: "planned",
		turn,
		decision: toPlannerDecision(decision),
		call_as_text: false,
		results: null,
		recorded,
		said,
	};
}
