/**
 * What the caller brought along: functions that it runs itself (L2, decision 39), and its instructions. A governed function always has its name: one of
 * the caller's that wants it is refused, and one whose name is taken later is offered no more, so that nobody outside can
 * stand in for a tool. Refuses nothing else: what a caller's function does is the caller's.
 */
import { canonicalJson } from "../json.ts";
import { PLANNER_FUNCTIONS } from "../planner/function-names.ts";
import type { FieldError } from "../refusal.ts";
import type { Draft } from "./draft.ts";
import type { StepProblem } from "./effect.ts";
import type { CallerFunction, Exposure, RunRecord } from "./state.ts";

type Offered = readonly CallerFunction[] | undefined;
const NONE: readonly CallerFunction[] = [];
const RESERVED: ReadonlySet<string> = new Set(PLANNER_FUNCTIONS);

const isTaken = (name: string, exposure: Exposure | null): boolean =>
	RESERVED.has(name) || exposure?.tools.some((tool) => tool.function_name === name) === true;

/** What of it a planner is offered beside the governed functions. */
export function definitionsOf(run: RunRecord, exposure: Exposure | null): readonly CallerFunction[] {
	const { caller_functions } = run;
	if (caller_functions === undefined || caller_functions.length === 0) return NONE;
	return caller_functions.filter(({ name }) => !isTaken(name, exposure));
}

/** 422 that names each function whose name a governed one has; null when there is none. */
export function collisions(draft: Draft, functions: Offered): StepProblem | null {
	if (functions === undefined) return null;
	const errors = functions.flatMap(({ name }, index): FieldError[] =>
		isTaken(name, draft.exposure)
			? [
					{
						error: `\`${name}\` is the name of a governed function`,
						field: `/tools/${index}/function/name`,
						issue: "not_unique",
						expected: "a name that no governed function has",
						hint: "rename your function; the governed one is offered to the planner anyway",
					},
				]
			: [],
	);
	if (errors.length === 0) return null;
	const detail = `${errors[0]?.error}; rename yours`;
	return { status: 422, code: "caller_tool_collision", detail, errors };
}

/** Instructions of the caller's that are new. They stand behind the turn's results, wherever in it they come. */
export function instruct(draft: Draft, system: readonly string[] | undefined): void {
	for (const content of system ?? []) draft.message({ turn: draft.run.turn, role: "system", content });
}

/** What the caller offers from here on. The same once more changes nothing, and writes nothing. */
export function offer(draft: Draft, functions: Offered): void {
	if (functions === undefined || (functions.length === 0 && draft.run.caller_functions === undefined)) return;
	if (canonicalJson(functions) === canonicalJson(draft.run.caller_functions ?? NONE)) return;
	draft.set({ caller_functions: functions });
}
