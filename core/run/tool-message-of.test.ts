/** A call without an end says what it waits for: only a call before a person waits for an approval. */
import { describe, expect, it } from "vitest";
import { SampleRun } from "./sample-run.ts";
import type { CallRecord } from "./state.ts";
import { toolMessageInput } from "./tool-message-of.ts";

const UNTIL = "2026-11-30T00:00:05.000Z";
const start = (): SampleRun => {
	const run = new SampleRun();
	run.create();
	run.decide([["note", "c", { to: "A" }]]);
	return run;
};
const callOf = (run: SampleRun): CallRecord => [...run.calls.values()][0] ?? expect.fail("no call");
const told = (more: Partial<CallRecord>) => toolMessageInput({ ...callOf(start()), ...more });

describe("the tool message of a call without an end", () => {
	it("of a call before a person is `awaiting_approval` in status and code", () => {
		expect(told({ state: "AWAITING_APPROVAL" })).toMatchObject({
			status: "awaiting_approval",
			error: { code: "awaiting_approval", message: "awaiting approval, not executed" },
		});
	});

	it("of a call that runs says since when, and that nobody has to approve it", () => {
		const { status, error } = toolMessageInput(callOf(start()));
		expect(status).toBe("awaiting_approval");
		expect(error).toEqual({
			code: "in_progress",
			message: "running since 2026-11-30T00:00:00.000Z, no result yet; it needs no approval",
		});
	});

	it.each([
		["halt", /halt/],
		["concurrency", /place/],
		["retry", /tried again/],
		["rate_limit", /rate limit/],
		["paused", /paused/],
		["claim", /same key/],
		["control", /control/],
		["gate", /gate/],
		["fallback", /fallback/],
	] as const)("of a call that waits (%s) names why and when it is looked at again", (reason, words) => {
		const { error } = told({ state: "PENDING", waiting: { reason, until: UNTIL } });
		expect(error).toMatchObject({ code: "in_progress", message: expect.stringMatching(words) });
		expect(JSON.stringify(error)).toContain("no approval");
	});

	it("of a call that has not been started says so", () => {
		expect(told({ state: "PENDING", waiting: null }).error).toMatchObject({ code: "in_progress" });
	});

	it("of a call that was handed to the caller says who has it", () => {
		expect(told({ state: "AWAITING_CALLER", waiting: { reason: "caller", until: UNTIL } }).error).toEqual({
			code: "awaiting_caller",
			message: `handed to the caller, who has until ${UNTIL} to answer; it needs no approval`,
		});
	});
});
