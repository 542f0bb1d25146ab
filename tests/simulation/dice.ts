/** The chance of one schedule: everything that varies in a simulation is thrown here, so a seed repeats it exactly. */
import { seeded } from "#core/run/sample-run.ts";

export class Dice {
	/** In [0, 1). */
	readonly next: () => number;

	constructor(seed: number) {
		// Neighbouring seeds would begin alike; the multiplier sets them apart.
		this.next = seeded(Math.imul(seed, 0x9e3779b1));
	}

	/** True with probability `p`. */
	maybe(p: number): boolean {
		return this.next() < p;
	}

	/** A whole number in [0, below). */
	below(below: number): number {
		return Math.floor(this.next() * below);
	}

	/** One of a list that is not empty. */
	pick<T>(list: readonly T[]): T {
		return list[this.below(list.length)] as T;
	}
}
