/**
 * The one synchronous step (decision 1): transition, hash, sign and persist, with no `await` between reading the state
 * and saving the rows. Memory takes the new state only when storage has it. An architecture test holds this file to it.
 */
import type { RunEvent } from "#core/run/event.ts";
import type { Kit } from "#core/run/kit.ts";
import type { RunState } from "#core/run/state.ts";
import { type Step, transition } from "#core/run/transition.ts";
import type { RunStore } from "./store.ts";

export type Holder = { state: RunState | null; readonly store: RunStore; readonly kit: () => Kit };

/** More to write in the same transaction: a new run's tables, a request's key, a used link. */
export type Alongside = { readonly before?: () => void; readonly after?: (step: Step) => void };

export function apply(holder: Holder, event: RunEvent, alongside: Alongside = {}): Step {
	const kit = holder.kit();
	const step = transition(holder.state, event, kit);
	if (step.rows.length > 0) {
		holder.store.transaction(() => {
			alongside.before?.();
			holder.store.save(step.rows, kit.now);
			alongside.after?.(step);
		});
	}
	holder.state = step.state;
	return step;
}
