/** One thread of a simulation: plays the seeds it is given and says which of them broke a promise. Started by run-seeds.ts. */
import { parentPort } from "node:worker_threads";
import { simulate } from "./simulate.ts";

export type Share = { readonly first: number; readonly count: number };
export type Played = { readonly count: number; readonly failed: readonly Failure[] };
export type Failure = { readonly seed: number; readonly message: string };

parentPort?.on("message", ({ first, count }: Share) => {
	const failed: Failure[] = [];
	for (let seed = first; seed < first + count; seed++) {
		try {
			simulate(seed);
		} catch (error) {
			failed.push({ seed, message: error instanceof Error ? error.message : String(error) });
		}
	}
	parentPort?.postMessage({ count, failed } satisfies Played);
});
