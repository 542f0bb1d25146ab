/**
 * `npm run sim -- --seeds 1000000 --first 1 --threads 2`: the simulation of tests/simulation over as many seeds as wanted,
 * the known regressions first. Prints progress, and for the first seed that fails everything that happened in it.
 */
import { readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runSeeds } from "../tests/simulation/run-seeds.ts";
import { simulate } from "../tests/simulation/simulate.ts";

const PROGRESS_MS = 10_000;
const { values } = parseArgs({
	options: {
		seeds: { type: "string", default: "100000" },
		first: { type: "string", default: "1" },
		threads: { type: "string", default: String(availableParallelism()) },
	},
});
const [count, first, threads] = [values.seeds, values.first, values.threads].map((text) => {
	const number = Number(text);
	if (!Number.isSafeInteger(number) || number < 1) throw new Error(`not a positive whole number: \`${text}\``);
	return number;
}) as [number, number, number];

/** True when the seed breaks a promise, which is then shown with all that led to it. */
function shows(seed: number): boolean {
	const trace: string[] = [];
	try {
		simulate(seed, trace);
		return false;
	} catch (error) {
		console.log(`seed ${seed}:\n${trace.join("\n")}\n${error instanceof Error ? error.message : String(error)}`);
		return true;
	}
}

const file = join(import.meta.dirname, "../tests/simulation/regressions.json");
const regressions = JSON.parse(readFileSync(file, "utf8")) as { seed: number }[];
const back = regressions.filter(({ seed }) => shows(seed));
console.log(`regressions: ${regressions.length - back.length} of ${regressions.length} stay mended`);

let told = performance.now();
const { played, failed, seconds } = await runSeeds({
	first,
	count,
	threads,
	progress: (done, s) => {
		if (performance.now() - told < PROGRESS_MS) return;
		told = performance.now();
		console.log(`${done} of ${count}, ${Math.round(done / s)} per second, load ${loadavg()[0]?.toFixed(1)}`);
	},
});
const [worst] = failed;
if (worst !== undefined) shows(worst.seed);
for (const { seed, message } of failed) console.log(`seed ${seed}: ${message}`);
console.log(
	`${played} schedules in ${Math.round(seconds)} s, ${Math.round(played / seconds)} per second on ${threads} threads, ${failed.length} failed`,
);
process.exitCode = failed.length + back.length === 0 ? 0 : 1;
