/** Plays many seeds on several threads. Ends early once some have failed: one is enough to look at. */
import { Worker } from "node:worker_threads";
import type { Failure, Played, Share } from "./worker.ts";

const SHARE = 500;
/** More failures than anybody looks at. */
const FAILURES_MAX = 20;

export type Outcome = { readonly played: number; readonly failed: readonly Failure[]; readonly seconds: number };

export async function runSeeds(options: {
	readonly first: number;
	readonly count: number;
	readonly threads: number;
	/** Called now and then. */
	readonly progress?: (played: number, seconds: number) => void;
}): Promise<Outcome> {
	const began = performance.now();
	const seconds = (): number => (performance.now() - began) / 1000;
	const end = options.first + options.count;
	const failed: Failure[] = [];
	let next = options.first;
	let played = 0;
	const thread = (): Promise<void> =>
		new Promise((done, fail) => {
			const worker = new Worker(new URL("./worker.ts", import.meta.url));
			const give = (): void => {
				if (next >= end || failed.length >= FAILURES_MAX) {
					void worker.terminate();
					done();
					return;
				}
				const share: Share = { first: next, count: Math.min(SHARE, end - next) };
				next += share.count;
				worker.postMessage(share);
			};
			worker.on("error", fail);
			worker.on("message", (result: Played) => {
				played += result.count;
				failed.push(...result.failed);
				options.progress?.(played, seconds());
				give();
			});
			give();
		});
	await Promise.all(Array.from({ length: Math.max(1, options.threads) }, thread));
	failed.sort((a, b) => a.seed - b.seed);
	return { played, failed, seconds: seconds() };
}
