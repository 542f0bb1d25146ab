/** What must hold of calls whose tool has a check of its own: none begins that the check did not let pass, on that very input. */
import type { CallRecord } from "#core/run/state.ts";
import { inputOf, objects } from "./sandbox-twin.ts";
import { fail, type Taken } from "./taken.ts";
import { toolOf } from "./tools.ts";
import type { Town } from "./town.ts";

const FLAG = "semantic_check_failed";

/** After a step: every call that came up in it was judged by the verdict that came with it. */
export function checkVerdicts(town: Town, { before, event, step }: Taken): void {
	if (town.sandbox === null) return;
	for (const row of step.rows) {
		if (row.table !== "call" || before?.calls.has(row.doc.tool_call_id) === true) continue;
		const call = row.doc;
		const flagged = call.security_flags.includes(FLAG);
		const source = sourceOf(call);
		// Refused before its arguments were looked at, or of a tool without a check.
		if (source === null || call.input_hash === null) {
			if (flagged || call.refusal?.reason === "semantic_failed") fail(`${call.tool_id} was refused by no check`);
			continue;
		}
		// An outcome that is stated or a message that is answered brings an older call.
		if (event.kind !== "planned" && event.kind !== "approval_edited") {
			if (call.parent_call_id !== null) fail(`${call.tool_id} has a check and was called by the machine`);
			continue;
		}
		if (call.superseded_by !== null) continue;
		const verdict = event.checks?.get(call.input_hash);
		if (verdict?.kind !== "held" && call.state !== "REFUSED")
			fail(`${call.tool_id} is ${call.state} and its check ${verdict?.kind ?? "was not run"}`);
		if (flagged !== (verdict === undefined || verdict.kind === "failed"))
			fail(`${call.tool_id} ${flagged ? "is" : "is not"} flagged and its check ${verdict?.kind ?? "was not run"}`);
		if (verdict?.kind === "held" && call.refusal?.reason === "semantic_failed")
			fail(`${call.tool_id} was refused by a check that held`);
		// What is checked is what is judged, but for a registry that moved twice.
		if (verdict === undefined && !town.sandbox.overtaken.has(event))
			fail(`${call.tool_id} was judged and nobody had its check run`);
	}
}

/** At a start, whenever that is: the check of the call's own definition was run on what is sent, to its end, and held. */
export function checkHeld(town: Town, call: CallRecord): void {
	const source = sourceOf(call);
	if (source === null || town.sandbox === null) return;
	if (call.parent_call_id !== null && call.approval_id === null)
		fail(`${call.tool_id} has a check and was called by the machine`);
	if (objects(source, call.frozen)) fail(`${call.tool_id} started and its check objects`);
	if (!town.sandbox.held.has(inputOf(source, call.frozen)))
		fail(`${call.tool_id} started and its check was never held`);
}

function sourceOf({ definition_hash }: CallRecord): string | null {
	if (definition_hash === null) return null;
	return toolOf(definition_hash).version.descriptor.semantic_check?.source ?? null;
}
