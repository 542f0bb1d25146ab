/** Sets and reads the fuel of one metered instance; see `admit-module.ts` for how it gets there. */
import { FUEL_EXPORT } from "#core/sandbox/admit-module.ts";

/** Enough for an engine to start itself; a program never gets it. */
export const SETUP_FUEL = 1_000_000_000;

export class FuelGauge {
	readonly #global: WebAssembly.Global;
	#given = 0;

	/** Throws on a module that is not metered: it must never run. */
	constructor(exports: WebAssembly.Exports) {
		const found = exports[FUEL_EXPORT];
		if (!(found instanceof WebAssembly.Global)) throw new Error("the module is not metered");
		this.#global = found;
	}

	fill(fuel: number): void {
		this.#given = fuel;
		this.#global.value = BigInt(fuel);
	}

	/** Fuel ran out: the last trap was a missing charge. */
	get dry(): boolean {
		return this.#left < 0;
	}

	/** Since `fill`; never more than was given. */
	get used(): number {
		return this.#given - Math.max(0, this.#left);
	}

	get #left(): number {
		return Number(this.#global.value as bigint);
	}
}
