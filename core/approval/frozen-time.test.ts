/** Q6: what a kill switch froze, counted once and no further than it went. */
import { describe, expect, it } from "vitest";
import { HALT_MEMORY_MS, HALTED_MAX_INTERVALS } from "../limits.ts";
import { type HaltInterval, haltedMs } from "./frozen-time.ts";
import { mergeHalts } from "./merge-halts.ts";

const at = (scope: string, since: number, until: number | null): HaltInterval => ({ scope, since, until });

describe("haltedMs", () => {
	it.each<[string, HaltInterval[], number]>([
		["no halt", [], 0],
		["one inside", [at("tenant", 20, 50)], 30],
		["one that began before", [at("tenant", -50, 10)], 10],
		["one that goes on", [at("tenant", 90, null)], 10],
		["one that is longer than the span on both sides", [at("tenant", -5, null)], 100],
		["one that was over, and one that has not begun", [at("tenant", -9, 0), at("tenant", 100, null)], 0],
		["tenant and tool at once: once", [at("tenant", 10, 60), at("tool:pay", 40, 80)], 70],
		["one within another", [at("tenant", 10, 60), at("tool:pay", 20, 30)], 50],
		["out of order", [at("tool:pay", 70, 80), at("tenant", 10, 20)], 20],
		["touching", [at("tenant", 10, 20), at("tenant", 20, 30)], 20],
		["another tool's", [at("tool:note", 10, 60), at("tool:pay2", 10, 60), at("tool:", 1, 9)], 0],
		["turned round by a clock that went back", [at("tenant", 60, 10)], 0],
	])("%s", (_what, intervals, frozen) => {
		expect(haltedMs(intervals, "pay", 0, 100)).toBe(frozen);
	});

	it("an empty or backward span was not frozen", () => {
		expect(haltedMs([at("tenant", 0, null)], "pay", 50, 50)).toBe(0);
		expect(haltedMs([at("tenant", 0, null)], "pay", 60, 50)).toBe(0);
	});

	it("never gives back more than has passed, and agrees with counting by the millisecond", () => {
		let seed = 7;
		const random = (n: number): number => {
			seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
			return seed % n;
		};
		for (let round = 0; round < 200; round++) {
			const intervals = Array.from({ length: random(6) }, () => {
				const since = random(120) - 10;
				return at(
					["tenant", "tool:pay", "tool:x"][random(3)] ?? "",
					since,
					random(4) === 0 ? null : since + random(60),
				);
			});
			let slow = 0;
			for (let ms = 0; ms < 100; ms++)
				if (
					intervals.some((one) => one.scope !== "tool:x" && one.since <= ms && (one.until === null || ms < one.until))
				)
					slow += 1;
			expect(haltedMs(intervals, "pay", 0, 100)).toBe(slow);
			// what a lease carries adds up to the same
			expect(haltedMs(mergeHalts(intervals, 100), "pay", 0, 100)).toBe(slow);
		}
	});
});

describe("mergeHalts", () => {
	it("merges overlapping and touching intervals of one scope only; `all` is the tenant", () => {
		const halts = [
			at("tenant", 10, 20),
			at("all", 20, 30),
			at("tool:a", 12, 40),
			at("tenant", 25, 28),
			at("all", 50, null),
		];
		expect(mergeHalts(halts, 60)).toEqual([at("tenant", 50, null), at("tool:a", 12, 40), at("tenant", 10, 30)]);
	});

	it("forgets what ended longer ago than any approval waits, never what is open", () => {
		const now = HALT_MEMORY_MS + 100;
		expect(mergeHalts([at("tenant", 1, 100), at("tool:a", 1, 101), at("tool:b", 1, null)], now)).toEqual([
			at("tool:b", 1, null),
			at("tool:a", 1, 101),
		]);
	});

	it("a flood of short halts neither grows the lease nor hides one that is open", () => {
		const flood = Array.from({ length: 1_000 }, (_, n) => at("tenant", n * 10, n * 10 + 5));
		const merged = mergeHalts([at("tool:old", 0, null), ...flood], 20_000);
		expect(merged).toHaveLength(HALTED_MAX_INTERVALS);
		expect(merged[0]).toEqual(at("tool:old", 0, null));
		expect(merged[1]).toEqual(at("tenant", 9_990, 9_995));
	});
});
