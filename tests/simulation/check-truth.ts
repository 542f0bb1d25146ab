/** What runs say of their calls against what the upstream did: nothing twice, nothing denied that happened. */
import { CLAIM_WINDOW_MS } from "#core/limits.ts";
import type { Leave } from "./gate-twin.ts";
import type { RunTwin } from "./run-twin.ts";
import { fail } from "./taken.ts";
import { toolOf } from "./tools.ts";
import type { Town } from "./town.ts";

export function checkTruth(town: Town, run: RunTwin): void {
	const { upstream } = town;
	for (const call of run.state?.calls.values() ?? []) {
		if (call.definition_hash === null) continue;
		const { effect, idempotency } = toolOf(call.definition_hash).version.descriptor;
		const requests = upstream.requests.get(call.tool_call_id) ?? 0;
		const acted = upstream.happened(call.tool_call_id);
		if (requests > 1 && effect !== "read" && idempotency.mode === "none")
			fail(`${call.tool_id} was sent ${requests} times without a key`);
		switch (call.state) {
			case "REFUSED":
			case "DENIED":
			case "EXPIRED":
			case "AWAITING_APPROVAL":
				if (requests > 0) fail(`${call.tool_id} is ${call.state} and was sent ${requests} times`);
				break;
			case "FAILED":
			case "TIMEOUT":
				if (effect === "read") break;
				if (call.state === "TIMEOUT") fail(`a write timed out without being unknown`);
				if (acted) fail(`${call.tool_id} is FAILED (${call.error?.code}) and took effect`);
				break;
			case "COMPLETED":
				if (effect !== "read" && call.source === "live" && !acted)
					fail(`${call.tool_id} is COMPLETED and took no effect`);
				if (call.source === "idempotent_replay" && !upstream.operations.some((one) => one.tool_id === call.tool_id))
					fail("a replay of something that never happened");
				break;
			default:
				break;
		}
	}
}

/** What the gate is told of a claim: a key that acted is not free, and none is done that did nothing. */
export function checkLeave(town: Town, { needs, settle, tool_id, tool_call_id }: Leave): void {
	if (needs.claim === null) return;
	const happened = town.upstream.happened(tool_call_id);
	if (settle === "free" && happened) fail(`the key of ${tool_id} was freed and it took effect`);
	if (settle === "done" && !happened) fail(`the key of ${tool_id} was settled as done and it took no effect`);
}

/** Keyed writes: one operation per key of the tool within the window, whoever asked in the session. Looks at the newest only. */
export function checkOperations(town: Town, from: number): void {
	const { operations } = town.upstream;
	const session = (key: string): string | undefined =>
		town.runs.find(({ run }) => run !== null && key.includes(run.run_id.slice("run_".length)))?.run?.session_id;
	for (let at = from; at < operations.length; at++) {
		const one = operations[at];
		const twin = operations
			.slice(0, at)
			.find(
				(other) =>
					other.tool_id === one?.tool_id &&
					other.to === one.to &&
					one.at - other.at < CLAIM_WINDOW_MS &&
					session(other.key) === session(one.key),
			);
		if (one !== undefined && twin !== undefined)
			fail(`${one.tool_id} acted under two keys within ${one.at - twin.at} ms: ${twin.key} and ${one.key}`);
	}
}
