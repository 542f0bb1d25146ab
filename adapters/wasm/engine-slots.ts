/**
 * At most so many engine instances at once in one isolate (decision 8): each may grow to 32 MiB and the isolate has 128.
 * Whoever comes later waits in line, at most as long as it says.
 */
export class EngineSlots {
	readonly #max: number;
	#taken = 0;
	#waiting: { enter: () => void }[] = [];

	constructor(max: number) {
		this.#max = max;
	}

	get taken(): number {
		return this.#taken;
	}

	/** Runs `work` in a slot; undefined when none came free within `wait_ms`. The slot is freed however `work` ends. */
	async run<T>(wait_ms: number, work: () => Promise<T> | T): Promise<T | undefined> {
		if (!(await this.#enter(wait_ms))) return undefined;
		try {
			return await work();
		} finally {
			this.#leave();
		}
	}

	#enter(wait_ms: number): Promise<boolean> | true {
		if (this.#taken < this.#max) {
			this.#taken++;
			return true;
		}
		return new Promise((resolve) => {
			const place = {
				enter: () => {
					clearTimeout(timer);
					resolve(true);
				},
			};
			const timer = setTimeout(() => {
				this.#waiting = this.#waiting.filter((other) => other !== place);
				resolve(false);
			}, wait_ms);
			this.#waiting.push(place);
		});
	}

	/** The slot goes straight to the next in line, so nobody can slip in between. */
	#leave(): void {
		const next = this.#waiting.shift();
		if (next === undefined) this.#taken--;
		else next.enter();
	}
}
