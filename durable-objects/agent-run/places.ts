/**
 * The places of the concurrency classes in this isolate (I8), shared fairly between tenants by `core/invoke/fair-queue`.
 * In memory: a place dies with the isolate. One that was taken by an object that died alone is given back after its hold.
 */
import { type ConcurrencyClass, FairQueue } from "#core/invoke/fair-queue.ts";
import { TOOL_TIMEOUT_MAX_MS } from "#core/limits.ts";

/**
 * Tells a call's run that it has a place now. It is the releasing object that asks, over its own stub: the runtime lets no
 * object do another's I/O, so a closure of the waiting one would fail here and its place be lost to it.
 */
export type Wake = (tool_call_id: string) => Promise<void>;

class Places {
	readonly #queue = new FairQueue();
	/** When each call asked last, oldest first. */
	readonly #since = new Map<string, number>();

	/** True: the call has a place. False: it waits in line and is woken when it has one. Repeatable. */
	take(concurrency: ConcurrencyClass, tenant_id: string, tool_call_id: string, wake: Wake): boolean {
		this.#sweep(wake);
		this.#since.delete(tool_call_id);
		this.#since.set(tool_call_id, Date.now());
		return this.#queue.tryTake(concurrency, tenant_id, tool_call_id);
	}

	/** Gives the call's place back, or its place in the line: a call that ended there would be given one that it never leaves. */
	release(tool_call_id: string, wake: Wake): void {
		this.#since.delete(tool_call_id);
		for (const next of this.#queue.cancel(tool_call_id)) void this.#hand(next, wake);
	}

	async #hand(tool_call_id: string, wake: Wake): Promise<void> {
		try {
			await wake(tool_call_id);
		} catch {
			// It looks again by its own timer; until then the place is the next one's.
			this.release(tool_call_id, wake);
		}
	}

	/** No attempt lasts longer than the longest tool limit: a place held longer belongs to nobody any more. */
	#sweep(wake: Wake): void {
		const before = Date.now() - TOOL_TIMEOUT_MAX_MS - 60_000;
		for (const [id, since] of this.#since) {
			if (since > before) break;
			this.release(id, wake);
		}
	}
}

export const places = new Places();
