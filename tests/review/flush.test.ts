/** The flush's twin in storage: whatever D1 has not heard is looked after by a timer that outlives the object. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RunRecord } from "#core/run/state.ts";
import { Flusher } from "#objects/agent-run/flush.ts";
import type { RunStore } from "#objects/agent-run/store.ts";
import type { Timer } from "#objects/agent-run/timers.ts";

function flushing() {
	let flushed = 0;
	let twin: number | null = null;
	const run = { seq: 0, goal: "", principal: {}, planner: {} } as unknown as RunRecord & { seq: number };
	const sent: number[] = [];
	const store = {
		flushed: () => flushed,
		markFlushed: (seq: number) => {
			flushed = Math.max(flushed, seq);
		},
		audited: () => [],
		approvalsSince: () => [],
		timers: {
			write: ([timer]: readonly Timer[]) => {
				twin = timer?.at ?? null;
			},
		},
	} as unknown as RunStore;
	const ctx = { waitUntil: () => undefined } as unknown as DurableObjectState;
	const ledger = {
		append: async () => {
			await new Promise((done) => setTimeout(done, 50));
			sent.push(Date.now());
		},
	};
	const flusher = new Flusher(ctx, store, ledger, () => run);
	return {
		flusher,
		sent,
		step: (now = false) => {
			(run as { seq: number }).seq += 1;
			flusher.soon(now);
		},
		/** Rows that D1 has not heard of and that nothing would bring after a death now. */
		unattended: () => run.seq > flushed && twin === null,
		twin: () => twin,
	};
}

describe("rows on their way to D1", () => {
	beforeEach(() => {
		vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
	});
	afterEach(() => {
		vi.useRealTimers();
	});
	const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

	it("are looked after at every moment, also behind a flush that an approval asked for", async () => {
		const { flusher, step, unattended } = flushing();
		step();
		const announced = flusher.flush();
		await pass(100);
		await announced;
		for (let n = 0; n < 40; n++) {
			step();
			expect(unattended()).toBe(false);
			await pass(130);
		}
	});

	it("are looked after when they came while others were being sent", async () => {
		const { step, unattended } = flushing();
		step();
		await pass(1_010);
		step();
		await pass(200);
		step();
		expect(unattended()).toBe(false);
	});

	it("leave no timer behind once D1 has them", async () => {
		const { flusher, step, twin } = flushing();
		step();
		const announced = flusher.flush();
		await pass(100);
		await announced;
		await pass(10_000);
		expect(twin()).toBeNull();
		expect(vi.getTimerCount()).toBe(0);
	});

	it("go together every five seconds, and within one at the end", async () => {
		const { sent, step } = flushing();
		const began = Date.now();
		for (let n = 0; n < 62; n++) {
			step();
			await pass(100);
		}
		expect(sent.map((at) => Math.round((at - began) / 1_000))).toEqual([1, 6]);
		step(true);
		await pass(1_100);
		expect(sent).toHaveLength(3);
	});
});
