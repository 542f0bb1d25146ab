/** The newest calls of a run as its views show them, in memory: an answer costs no query while they are there. */
import { RUN_VIEW_CALLS } from "#core/limits.ts";
import type { CallRecord } from "#core/run/state.ts";
import type { RunStore } from "./store.ts";

export class RecentCalls {
	readonly #store: RunStore;
	/** Null: to be read from storage. */
	#calls: Map<string, CallRecord> | null = null;

	constructor(store: RunStore) {
		this.#store = store;
	}

	/** The last RUN_VIEW_CALLS that came to be, as storage would choose them, in the planner's order. */
	list(): CallRecord[] {
		this.#calls ??= new Map(this.#store.lastCalls(RUN_VIEW_CALLS).map((call) => [call.tool_call_id, call]));
		const newest = [...this.#calls.values()].sort((a, b) => a.turn - b.turn || a.n - b.n).slice(-RUN_VIEW_CALLS);
		return newest.sort((a, b) => a.turn - b.turn || a.ordinal - b.ordinal);
	}

	/** A turn's calls in the planner's order; from memory when all of them are among the newest. */
	ofTurn(turn: number): CallRecord[] {
		const recent = this.list();
		const whole = recent.length < RUN_VIEW_CALLS || (recent[0]?.turn ?? 0) < turn;
		return whole ? recent.filter((call) => call.turn === turn) : this.#store.callsOf(turn);
	}

	remember(call: CallRecord): void {
		if (this.#calls === null) return;
		this.#calls.set(call.tool_call_id, call);
		if (this.#calls.size > 2 * RUN_VIEW_CALLS) this.#calls = null;
	}
}
