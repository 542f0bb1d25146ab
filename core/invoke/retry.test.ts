import { describe, expect, it } from "vitest";
import { RETRY_AFTER_MAX_MS, TOOL_TIMEOUT_MIN_MS } from "../limits.ts";
import { FAULT_CODES, failed, type InvokeOutcome } from "../outcome.ts";
import { type ToolDescriptor, toolDescriptor } from "../registry/descriptor.ts";
import { nextTry, retryTimeout } from "./retry.ts";

const tool = (more: object): ToolDescriptor =>
	toolDescriptor.parse({
		tool_id: "t",
		name: "t",
		version: "1.0.0",
		description: "d",
		category: "interface",
		input_schema: {},
		implementation: { kind: "builtin", name: "b" },
		...more,
	});
const READ = tool({ effect: "read" });
const NATURAL = tool({ effect: "write", idempotency: { mode: "natural" } });
const KEYED = tool({ effect: "external", idempotency: { mode: "key" } });
const UNKEYED = tool({ effect: "write" });
const LOST = failed("connection_lost", "lost", { effect: "possible", retryable: true });
const answered = (http_status: number, retry_after_ms?: number): InvokeOutcome =>
	failed(http_status === 429 ? "rate_limited" : "http_error", "no", {
		http_status,
		retryable: true,
		...(retry_after_ms === undefined ? {} : { retry_after_ms }),
	});
const next = (outcome: InvokeOutcome, more: Partial<Parameters<typeof nextTry>[0]> = {}) =>
	nextTry({ outcome, descriptor: READ, attempt: 1, turn_left_ms: 120_000, random: () => 0.5, ...more });

describe("retries (I2)", () => {
	it("waits 500, 1500 and 4500 ms, moved by a fifth at most, and then no more", () => {
		const waits = (random: number) =>
			[1, 2, 3].map((attempt) => next(LOST, { attempt, random: () => random })).map((t) => t.again && t.wait_ms);
		expect(waits(0.5)).toEqual([500, 1_500, 4_500]);
		expect(waits(0)).toEqual([400, 1_200, 3_600]);
		expect(waits(1 - 2 ** -53)).toEqual([600, 1_800, 5_400]);
		expect(next(LOST, { attempt: 4 })).toEqual({ again: false, why: "all 3 retries are spent" });
	});

	it.each([
		["500", answered(500), true],
		["502", answered(502), true],
		["599", answered(599), true],
		["429", answered(429), true],
		["400", answered(400), false],
		["401", answered(401), false],
		["404", answered(404), false],
		["408", answered(408), false],
		["a lost connection", LOST, true],
		["a time-out before the headers", { kind: "timeout", phase: "headers", effect: "possible" }, true],
		["a time-out in the body", { kind: "timeout", phase: "body", effect: "possible" }, true],
		["a dataset that may recover", failed("dataset_error", "busy", { retryable: true }), true],
		["a query that is wrong", failed("dataset_error", "no such column"), false],
		["a sandbox that went away", failed("interrupted", "gone", { retryable: true }), true],
		["a call that was cancelled", failed("interrupted", "cancelled"), false],
		["success", { kind: "success", result: 1, facts: [], notes: [] }, false],
	] as [string, InvokeOutcome, boolean][])("%s: %s", (_, outcome, again) => {
		expect(next(outcome).again).toBe(again);
	});

	it("never repeats what the runtime calls `retryable` (decision 32)", () => {
		const known = ["rate_limited", "connection_lost", "timeout", "dataset_error", "delivery_failed", "interrupted"];
		for (const code of FAULT_CODES)
			expect([code, next(failed(code, "x", { retryable: true })).again]).toEqual([code, known.includes(code)]);
	});

	it.each([answered(500), answered(429, 10), LOST, { kind: "timeout", phase: "headers", effect: "none" } as const])(
		"O07: repeats reads, natural and keyed writes, and no other write",
		(outcome) => {
			const again = [READ, NATURAL, KEYED, UNKEYED].map((descriptor) => next(outcome, { descriptor }).again);
			expect(again).toEqual([true, true, true, false]);
		},
	);

	it("comes back when a 429 says, not sooner, and not after a day", () => {
		expect(next(answered(429, 7_000))).toEqual({ again: true, wait_ms: 7_000 });
		expect(next(answered(429, 0))).toEqual({ again: true, wait_ms: 0 });
		expect(next(answered(429))).toEqual({ again: true, wait_ms: 500 });
		expect(next(answered(429, -5))).toEqual({ again: true, wait_ms: 500 });
		expect(next(answered(429, 1e12), { turn_left_ms: 1e12 })).toEqual({ again: true, wait_ms: RETRY_AFTER_MAX_MS });
		expect(next(answered(503, 9_000))).toEqual({ again: true, wait_ms: 9_000 });
		expect(next(answered(503, 1))).toEqual({ again: true, wait_ms: 500 });
	});

	it("does not begin what the turn has no time for (I4)", () => {
		const room = 500 + TOOL_TIMEOUT_MIN_MS;
		expect(next(LOST, { turn_left_ms: room }).again).toBe(true);
		expect(next(LOST, { turn_left_ms: room - 1 })).toEqual({ again: false, why: "the turn leaves no time for it" });
		expect(next(answered(429, 60_000), { turn_left_ms: 60_000 }).again).toBe(false);
		expect(next(LOST, { turn_left_ms: Number.NaN }).again).toBe(false);
	});

	it("gives each retry half as much time again, clipped to the turn", () => {
		expect([1, 2, 3, 4].map((attempt) => retryTimeout(1_000, attempt, 60_000))).toEqual([1_000, 1_500, 2_250, 3_375]);
		expect(retryTimeout(60_000, 2, 70_000)).toBe(70_000);
		expect(retryTimeout(60_000, 1, -5)).toBe(1);
	});
});
