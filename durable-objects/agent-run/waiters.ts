/** Requests that wait for the run to come to a point (`Prefer: wait`). In memory: a client whose object died asks again. */
type Waiter = { readonly done: () => boolean; readonly resolve: () => void };

export class Waiters {
	readonly #waiting = new Set<Waiter>();

	/** Resolves when `done` holds after a step, or after `ms`. */
	async until(done: () => boolean, ms: number): Promise<void> {
		if (ms <= 0 || done()) return;
		let timer: ReturnType<typeof setTimeout> | undefined;
		await new Promise<void>((resolve) => {
			const waiter: Waiter = { done, resolve };
			this.#waiting.add(waiter);
			timer = setTimeout(() => {
				this.#waiting.delete(waiter);
				resolve();
			}, ms);
		});
		clearTimeout(timer);
	}

	look(): void {
		for (const waiter of this.#waiting) {
			if (!waiter.done()) continue;
			this.#waiting.delete(waiter);
			waiter.resolve();
		}
	}
}
