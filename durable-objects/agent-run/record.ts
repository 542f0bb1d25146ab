/** A finished run as a recording: read from its rows turn by turn, so that a long one is told too large before it is in memory whole. */
import { RECORDING_MAX_CHARS } from "#core/limits.ts";
import { decisionsOf, type RecordedCall, type RecordedTurn, recordedTurn } from "#core/run/recording.ts";
import type { RunRecord } from "#core/run/state.ts";
import { labelOf } from "#core/run/taint-of.ts";
import { FINISHED } from "#core/run/view.ts";
import { withWordless } from "#core/run/wordless.ts";
import type { Recording, Reply, ScriptEntry } from "./api.ts";
import { definition } from "./definitions.ts";
import { no } from "./replies.ts";
import type { RunStore } from "./store.ts";

/** What the planner whose decision this is was told of its calls: that of the first run, in a replay of a replay. */
export const toldOf = (entry: ScriptEntry | undefined): readonly (RecordedCall | null)[] =>
	entry !== undefined && "decision" in entry ? (entry.told ?? entry.calls) : [];

/** Refuses a run that still moves (its calls have no end yet), one that decided nothing, and one that fits no other run. */
export function recordingOf(run: RunRecord, store: RunStore): Reply<Recording> {
	if (!FINISHED.has(run.status))
		return no(409, "not_replayable", `only a finished run can be replayed; it is ${run.status}`);
	const messages = store.messages();
	const script: RecordedTurn[] = [];
	let chars = 0;
	const kit = { tool: (hash: string) => definition(store, hash) };
	const decisions = decisionsOf(withWordless(messages, store.turnsCalled()));
	for (const [n, { message, said }] of decisions.entries()) {
		const played = recordedTurn(message, store.callsOf(message.turn), said, (call) => labelOf({ kit }, call));
		const turn = run.replay === undefined ? played : { ...played, told: toldOf(store.script(n)) };
		chars += JSON.stringify(turn).length;
		if (chars > RECORDING_MAX_CHARS)
			return no(409, "not_replayable", `the recording is larger than ${RECORDING_MAX_CHARS} characters`);
		script.push(turn);
	}
	if (script.length === 0) return no(409, "not_replayable", "the run recorded no decision");
	const given = messages.filter((message) => message.turn === 0 && message.role !== "tool");
	const { goal, pinned, limits, locale, metadata, planner, replay } = run;
	return {
		ok: true,
		value: {
			goal,
			// The goal is the last of what the run was created with.
			messages: given.slice(0, -1).map(({ role, content }) => ({ role: role as "user", content: content ?? "" })),
			tools: pinned,
			limits,
			locale: locale ?? "en",
			metadata,
			script,
			placeholders: replay?.placeholders ?? planner.kind === "scripted",
		},
	};
}
