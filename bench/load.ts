/**
 * The load generator: lanes of requests over kept-alive connections, each lane waiting for its answer before it asks again
 * (a closed loop), bounded by count and by time. Its own cost is in every figure; it is the same for all of them.
 */
import { Agent, request } from "node:http";

export type Answer = { readonly status: number; readonly body: string };
export type Ask = {
	readonly method: string;
	readonly path: string;
	readonly headers?: Readonly<Record<string, string>>;
	readonly body?: unknown;
};

/** A client of one origin with at most `lanes` connections. */
export class Client {
	readonly #agent: Agent;
	readonly #origin: URL;

	constructor(origin: string, lanes: number) {
		this.#origin = new URL(origin);
		this.#agent = new Agent({ keepAlive: true, maxSockets: lanes, scheduling: "fifo" });
	}

	ask({ method, path, headers = {}, body }: Ask): Promise<Answer> {
		const text = body === undefined ? undefined : JSON.stringify(body);
		const typed =
			text === undefined
				? {}
				: { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) };
		return new Promise((done, fail) => {
			const sent = request(
				{
					host: this.#origin.hostname,
					port: this.#origin.port,
					method,
					path,
					agent: this.#agent,
					headers: { ...headers, ...typed },
				},
				(answer) => {
					let received = "";
					answer.setEncoding("utf8");
					answer.on("data", (chunk: string) => (received += chunk));
					answer.on("end", () => done({ status: answer.statusCode ?? 0, body: received }));
					answer.on("error", fail);
				},
			);
			sent.on("error", fail);
			sent.end(text);
		});
	}

	/** As `ask`, but an unexpected status is an error that carries the answer. */
	async expect<T>(status: number, ask: Ask): Promise<T> {
		const answer = await this.ask(ask);
		if (answer.status !== status)
			throw new Error(`${ask.method} ${ask.path}: ${answer.status} instead of ${status}: ${answer.body.slice(0, 600)}`);
		return JSON.parse(answer.body) as T;
	}

	close(): void {
		this.#agent.destroy();
	}
}

export type Figures = {
	readonly calls: number;
	readonly per_second: number;
	readonly p50_ms: number;
	readonly p95_ms: number;
	readonly p99_ms: number;
	readonly max_ms: number;
};

/** `at` in 0..1 of an ascending list (nearest rank). */
export function percentile(sorted: readonly number[], at: number): number {
	return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(at * sorted.length) - 1))] ?? Number.NaN;
}

/**
 * Runs `task` in `lanes` lanes until `calls` are done or `seconds` are over. A task answers how long the part that counts
 * took, ms, so that its own preparation stays out of the latencies. A failing task ends the measurement with its error.
 */
export async function measure(options: {
	readonly lanes: number;
	readonly calls: number;
	readonly seconds: number;
	readonly task: (lane: number, nth: number) => Promise<number>;
}): Promise<Figures> {
	const times: number[] = [];
	const began = performance.now();
	const until = began + options.seconds * 1000;
	let begun = 0;
	const lane = async (which: number): Promise<void> => {
		while (begun < options.calls && performance.now() < until) {
			begun++;
			times.push(await options.task(which, Math.floor((begun - 1) / options.lanes)));
		}
	};
	await Promise.all(Array.from({ length: options.lanes }, (_, which) => lane(which)));
	const elapsed = (performance.now() - began) / 1000;
	times.sort((a, b) => a - b);
	return {
		calls: times.length,
		per_second: times.length / elapsed,
		p50_ms: percentile(times, 0.5),
		p95_ms: percentile(times, 0.95),
		p99_ms: percentile(times, 0.99),
		max_ms: times.at(-1) ?? Number.NaN,
	};
}

/** Milliseconds that `work` takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
	const began = performance.now();
	await work();
	return performance.now() - began;
}

const ROUNDS = 20_000;
const WARM_UP_ROUNDS = 4_000;

/** How long one synchronous piece of work takes, in microseconds, ascending: 20,000 times, warm. */
export function timesOf(once: () => unknown): number[] {
	for (let n = 0; n < WARM_UP_ROUNDS; n++) once();
	const times = new Float64Array(ROUNDS);
	for (let n = 0; n < ROUNDS; n++) {
		const began = performance.now();
		once();
		times[n] = (performance.now() - began) * 1_000;
	}
	return [...times.sort()];
}
