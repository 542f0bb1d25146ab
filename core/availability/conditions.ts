/**
 * The conditions that Belay can observe of a run (F3), each with its source: what its request says of the place it works
 * in. Grants nothing: a caller that names a workspace it does not have is offered a tool that will fail. What is not
 * observed here cannot be registered as a precondition (`isObserved`). Called when a turn's exposure is made, and by the
 * facts of a tool.
 */
import { type JsonObject, own } from "../json.ts";
import type { Condition } from "./available.ts";

/** `context` is the run's, `now` ms since the epoch: what a run's request says holds for as long as the run does. */
export function conditionsOf(context: JsonObject, now: number): ReadonlyMap<string, Condition> {
	const workspace = own(context, "workspace_id");
	if (typeof workspace !== "string" || workspace.trim() === "") return NONE;
	return new Map([["workspace", { name: "workspace", holds: true, source: "run_context", at: now }]]);
}
const NONE: ReadonlyMap<string, Condition> = new Map();
