/** The flush's twin in storage: whatever D1 has not heard is looked after by a timer that outlives the object. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LedgerBatch } from "#core/ports.ts";
import type { LogRow } from "#core/run/effect.ts";
import type { RunRecord } from "#core/run/state.ts";
import { Flusher } from "#objects/agent-run/flush.ts";
import type { RunStore } from "#objects/agent-run/store.ts";
import type { Timer } from "#objects/agent-run/timers.ts";

const entry = (seq: number, audit: object | null) =>
	({ seq, at: "", event: "call.state", data: {}, audit }) as unknown as LogRow;
/** As long as arguments may be. */
const LONG = { input_params: { text: "x".repeat(262_000) } };

function flushing() {
	let flushed = 0;
	let twin: number | null = null;
	const run = { seq: 0, goal: "", principal: {}, planner: {} } as unknown as RunRecord & { seq: number };
	const sent: number[] = [];
	/** What D1 was sent of the audit, by number; what storage holds; where it was read from. */
	const told: number[] = [];
	const stored: LogRow[] = [];
	const reads: number[] = [];
	const store = {
		flushed: () => flushed,
		markFlushed: (seq: number) => {
			flushed = Math.max(flushed, seq);
		},
		log: {
			audited: (from: number, limit: number) => {
				reads.push(from);
				const rows = stored.filter(({ seq, audit }) => seq > from && audit !== null).slice(0, limit);
				return { rows, to: rows.length < limit ? null : (rows.at(-1)?.seq ?? null) };
			},
		},
		approvalsSince: () => [],
		timers: {
			write: ([timer]: readonly Timer[]) => {
				twin = timer?.at ?? null;
			},
		},
	} as unknown as RunStore;
	const ctx = { waitUntil: () => undefined } as unknown as DurableObjectState;
	const ledger = {
		append: async ({ audit }: LedgerBatch) => {
			await new Promise((done) => setTimeout(done, 50));
			if (ledger.away) throw new Error("D1 is away");
			sent.push(Date.now());
			told.push(...audit.map(({ seq }) => seq));
		},
		away: false,
	};
	const flusher = new Flusher(ctx, store, ledger, () => run);
	return {
		flusher,
		sent,
		told,
		reads,
		ledger,
		/** Two entries, of which D1 wants the second. */
		step: (now = false, seen = true, audit: object = {}) => {
			const rows = [entry(run.seq + 1, null), entry(run.seq + 2, audit)];
			(run as { seq: number }).seq += 2;
			stored.push(...rows);
			if (seen) flusher.saw(rows, now);
			else flusher.soon(now);
		},
		wanted: () => stored.flatMap(({ seq, audit }) => (audit === null ? [] : [seq])),
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

	it("are sent from memory, each once, without a read of storage", async () => {
		const { step, told, reads, wanted } = flushing();
		for (let n = 0; n < 90; n++) {
			step();
			await pass(130);
		}
		await pass(10_000);
		expect(told).toEqual(wanted());
		expect(reads).toEqual([]);
	});

	it("are sent again from memory when D1 was away, and from storage when they became too many", async () => {
		const { step, told, reads, wanted, ledger } = flushing();
		ledger.away = true;
		for (let n = 0; n < 150; n++) step();
		await pass(3_000);
		ledger.away = false;
		step();
		await pass(10_000);
		expect(told).toEqual(wanted());
		expect(reads).toEqual([]);
		ledger.away = true;
		for (let n = 0; n < 700; n++) step();
		await pass(3_000);
		ledger.away = false;
		step();
		await pass(12_000);
		expect(told).toEqual(wanted());
		expect(reads.length).toBeGreaterThan(0);
	});

	it("are read from storage when a step in between was not seen here", async () => {
		const { step, told, wanted } = flushing();
		step();
		step(false, false);
		step();
		await pass(8_000);
		expect(told).toEqual(wanted());
	});

	it("are read from storage when the last step was not seen here", async () => {
		const { step, told, wanted } = flushing();
		step();
		step(false, false);
		await pass(8_000);
		expect(told).toEqual(wanted());
	});

	it("are not kept in memory when they are long", async () => {
		const { step, told, reads, wanted, ledger } = flushing();
		ledger.away = true;
		for (let n = 0; n < 20; n++) step(false, true, LONG);
		await pass(3_000);
		ledger.away = false;
		await pass(12_000);
		step();
		await pass(12_000);
		expect(told).toEqual(wanted());
		expect(reads.length).toBeGreaterThan(0);
	});
});
