/**
 * Which calls of an event need a verdict of their tool's own check before the step (V2): the step is tried, and what it
 * would judge without a verdict is named. So what is checked is exactly what will be judged: exposure, permission,
 * placeholders and defaults are those of the step. Nothing of the trial is kept. Pure; called by the shell's gather.
 */
import type { JsonObject } from "../json.ts";
import { approvalEdited } from "./decide.ts";
import { Draft } from "./draft.ts";
import type { ApprovalEdited, Planned } from "./event.ts";
import type { Kit } from "./kit.ts";
import { planned } from "./planned.ts";
import type { RunState } from "./state.ts";

/** `input_hash` is what the verdict is found by; `arguments` are normalized. */
export type UncheckedCall = { readonly input_hash: string; readonly source: string; readonly arguments: JsonObject };

/** Whether any call of the decision may be of a tool with a check: what every other run pays. */
export function mayNeedChecks({ exposure }: RunState, { world, decision }: Planned): boolean {
	if (world.tools !== null) return world.tools.some(({ descriptor }) => descriptor.semantic_check !== undefined);
	return (
		exposure?.tools.some(
			(tool) => tool.checked === true && decision.tool_calls.some(({ name }) => name === tool.function_name),
		) === true
	);
}

/** Each input once; none where the step would not come to judge any. */
export function uncheckedCalls(state: RunState, event: Planned | ApprovalEdited, kit: Kit): readonly UncheckedCall[] {
	// A trial takes nobody's place in a line.
	const draft = new Draft(state, { ...kit, takePlace: () => false });
	if (event.kind === "planned") planned(draft, event);
	else approvalEdited(draft, event);
	return [...new Map(draft.unchecked.map((call) => [call.input_hash, call])).values()];
}
