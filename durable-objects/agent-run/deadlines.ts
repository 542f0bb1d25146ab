/**
 * Deadlines of one object's life over one timer. Nearly all of them are called off within milliseconds, and a timer of the
 * runtime costs more than the rest of such a wait: one that would ring soon is left standing for those that come next.
 */
import { complain } from "./complain.ts";

/** A timer without deadlines is left to ring within this, ms. */
const LEFT_STANDING_MS = 100;

type Deadline = { readonly at: number; readonly ring: () => void };

export class Deadlines {
	readonly #open = new Set<Deadline>();
	#timer: { readonly at: number; readonly id: ReturnType<typeof setTimeout> } | null = null;

	/** Calls `ring` once in `ms`, unless what is returned was called before. */
	set(ms: number, ring: () => void): () => void {
		const deadline = { at: Date.now() + ms, ring };
		this.#open.add(deadline);
		this.#arm(deadline.at);
		return () => {
			if (!this.#open.delete(deadline) || this.#open.size > 0 || this.#timer === null) return;
			if (this.#timer.at > Date.now() + LEFT_STANDING_MS) this.#disarm();
		};
	}

	#arm(at: number): void {
		if (this.#timer !== null && this.#timer.at <= at) return;
		this.#disarm();
		this.#timer = { at, id: setTimeout(() => this.#rang(), Math.max(0, at - Date.now())) };
	}

	#disarm(): void {
		if (this.#timer !== null) clearTimeout(this.#timer.id);
		this.#timer = null;
	}

	#rang(): void {
		this.#timer = null;
		const now = Date.now();
		const due = [...this.#open].filter((one) => one.at <= now).sort((a, b) => a.at - b.at);
		let next = Number.POSITIVE_INFINITY;
		for (const one of this.#open) if (one.at > now && one.at < next) next = one.at;
		if (next < Number.POSITIVE_INFINITY) this.#arm(next);
		// Open until it rings: one that rings before it may call it off.
		for (const one of due)
			queueMicrotask(() => {
				if (!this.#open.delete(one)) return;
				try {
					one.ring();
				} catch (error) {
					complain("a deadline could not be served", error);
				}
			});
	}
}
