/**
 * Seeded simulation of the run machine: schedules of decisions, answers, approvals, clocks, lost and doubled letters,
 * deaths before and after a save; after every step the promises are checked against the truth (check-*.ts). A failure
 * names its seed: `npm run sim -- --first <seed> --seeds 1` shows what happened. SIM_SEEDS asks for more or fewer.
 */
import { availableParallelism } from "node:os";
import { describe, expect, it } from "vitest";
import { featuresOf } from "./features.ts";
import regressions from "./regressions.json" with { type: "json" };
import { runSeeds } from "./run-seeds.ts";
import { simulate } from "./simulate.ts";

const SEEDS = Number(process.env.SIM_SEEDS ?? "100000");

describe("simulation", () => {
	it.each(regressions)("seed $seed stays mended: $was", ({ seed }) => {
		expect(() => simulate(seed)).not.toThrow();
	});
	it.each(regressions)("seed $seed has the features that it was found with, and none that came later", (one) => {
		const has = Object.entries(featuresOf(one.seed)).flatMap(([name, dice]) => (dice === null ? [] : [name]));
		expect(has).toEqual("has" in one ? one.has : []);
	});
	it("the same seed is the same schedule", () => {
		const traces = [0, 1].map(() => {
			const trace: string[] = [];
			simulate(7, trace);
			return trace;
		});
		expect(traces[0]?.length).toBeGreaterThan(30);
		expect(traces[1]).toEqual(traces[0]);
	});
	it(`keeps its promises over ${SEEDS} schedules`, { timeout: 900_000 }, async () => {
		const { played, failed, seconds } = await runSeeds({
			first: Number(process.env.SIM_FIRST ?? "1"),
			count: SEEDS,
			threads: Math.min(4, availableParallelism()),
		});
		console.log(`simulation: ${played} schedules, ${Math.round(played / seconds)} per second`);
		expect(failed).toEqual([]);
		expect(played).toBe(SEEDS);
	});
});
