/**
 * One attempt's time: the wall limit and the caller's cancellation as a single signal, which remembers which of the two
 * came first. It raises nothing by itself. Called by the http and notify invokers.
 */
import type { CancelSignal } from "#core/ports.ts";

export class Deadline {
	readonly #controller = new AbortController();
	readonly #stopped: Promise<never>;
	readonly #timer: ReturnType<typeof setTimeout>;
	readonly #detach: () => void;
	#reason: "timeout" | "cancelled" | undefined;

	/** `timeout_ms` from now; `outer` is the run's own signal (an AbortSignal in every shell). */
	constructor(timeout_ms: number, outer: CancelSignal) {
		this.#stopped = new Promise((_, reject) => {
			this.#controller.signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
		});
		this.#stopped.catch(() => undefined); // nobody may be waiting when it stops
		this.#timer = setTimeout(() => this.#stop("timeout"), timeout_ms);
		const cancel = () => this.#stop(isTimeout(outer.reason) ? "timeout" : "cancelled");
		if (outer instanceof AbortSignal) outer.addEventListener("abort", cancel, { once: true });
		this.#detach = () => (outer instanceof AbortSignal ? outer.removeEventListener("abort", cancel) : undefined);
		if (outer.aborted) cancel();
	}

	get signal(): AbortSignal {
		return this.#controller.signal;
	}

	/** Why the work was stopped, or undefined while it may go on. */
	get stopped(): "timeout" | "cancelled" | undefined {
		return this.#reason;
	}

	/** The work's own result, or a rejection as soon as time is up, even when the work ignores its signal. */
	race<T>(work: Promise<T>): Promise<T> {
		return Promise.race([work, this.#stopped]);
	}

	dispose(): void {
		clearTimeout(this.#timer);
		this.#detach();
	}

	#stop(reason: "timeout" | "cancelled"): void {
		if (this.#reason !== undefined) return;
		this.#reason = reason;
		this.#controller.abort();
	}
}

function isTimeout(reason: unknown): boolean {
	return typeof reason === "object" && reason !== null && (reason as { name?: unknown }).name === "TimeoutError";
}
