/**
 * The places of the concurrency classes in this isolate (I8), shared fairly between tenants by `core/invoke/fair-queue`.
 * In memory: a place dies with the isolate. One that was taken by an object that died alone is given back after its hold.
 */
import { type ConcurrencyClass, FairQueue } from "#core/invoke/fair-queue.ts";
import { TOOL_TIMEOUT_MAX_MS } from "#core/limits.ts";

type Holder = { readonly wake: () => Promise<void>; readonly since: number };

class Places {
	readonly #queue = new FairQueue();
	readonly #holders = new Map<string, Holder>();

	/** True: the call has a place. False: it waits in line and `wake` is called when it has one. Repeatable. */
	take(concurrency: ConcurrencyClass, tenant_id: string, tool_call_id: string, wake: () => Promise<void>): boolean {
		this.#sweep();
		this.#holders.set(tool_call_id, { wake, since: Date.now() });
		return this.#queue.tryTake(concurrency, tenant_id, tool_call_id);
	}

	release(tool_call_id: string): void {
		this.#holders.delete(tool_call_id);
		for (const next of this.#queue.release(tool_call_id)) {
			// Another object's step: it must not run inside this one's, and its fault is its own.
			void this.#wake(next);
		}
	}

	async #wake(tool_call_id: string): Promise<void> {
		try {
			const holder = this.#holders.get(tool_call_id);
			if (holder === undefined) this.release(tool_call_id);
			else await holder.wake();
		} catch {
			this.release(tool_call_id);
		}
	}

	/** No attempt lasts longer than the longest tool limit: a place held longer belongs to nobody any more. */
	#sweep(): void {
		const before = Date.now() - TOOL_TIMEOUT_MAX_MS - 60_000;
		for (const [id, { since }] of this.#holders) {
			if (since > before) break;
			this.release(id);
		}
	}
}

export const places = new Places();
