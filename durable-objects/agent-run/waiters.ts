/** Requests that wait for the run to come to a point (`Prefer: wait`). In memory: a client whose object died asks again. */
import type { Deadlines } from "./deadlines.ts";

type Waiter = { readonly done: () => boolean; readonly resolve: () => void };

export class Waiters {
	readonly #waiting = new Set<Waiter>();
	readonly #deadlines: Deadlines;

	constructor(deadlines: Deadlines) {
		this.#deadlines = deadlines;
	}

	/** Resolves when `done` holds after a step, or after `ms`. */
	async until(done: () => boolean, ms: number): Promise<void> {
		if (ms <= 0 || done()) return;
		const { promise, resolve } = Promise.withResolvers<void>();
		const waiter: Waiter = { done, resolve };
		this.#waiting.add(waiter);
		const callOff = this.#deadlines.set(ms, () => {
			this.#waiting.delete(waiter);
			resolve();
		});
		await promise;
		callOff();
	}

	look(): void {
		for (const waiter of this.#waiting) {
			if (!waiter.done()) continue;
			this.#waiting.delete(waiter);
			waiter.resolve();
		}
	}
}
