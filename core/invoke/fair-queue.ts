/**
 * Who may use one of the few places of a concurrency class next (I8): 10 calls to APIs, 5 to databases at once, shared
 * fairly between tenants by start-time fair queueing. In memory only; it starts nothing. A tenant's service is counted
 * when it begins, so calls that were cancelled while they waited cost their tenant nothing.
 */
import { CONCURRENCY_API_MAX, CONCURRENCY_DATABASE_MAX } from "../limits.ts";

export type ConcurrencyClass = "api" | "database";

/** `start` is the virtual start of the call at the head, fixed when it gets there: a waiting call never moves back. */
type Flow = { start: number; finish: number; readonly waiting: { readonly id: string; readonly seq: number }[] };
type Lane = {
	readonly limit: number;
	readonly running: Set<string>;
	readonly flows: Map<string, Flow>;
	virtual: number;
};

export class FairQueue {
	readonly #lanes: Record<ConcurrencyClass, Lane>;
	readonly #where = new Map<string, { lane: Lane; tenant: string }>();
	readonly #weight: (tenant: string) => number;
	#seq = 0;

	/** `weight`: a tenant's share against others, above 0; 1 for everybody by default. */
	constructor(
		weight: (tenant: string) => number = () => 1,
		limits: Record<ConcurrencyClass, number> = { api: CONCURRENCY_API_MAX, database: CONCURRENCY_DATABASE_MAX },
	) {
		const lane = (limit: number): Lane => ({ limit, running: new Set(), flows: new Map(), virtual: 0 });
		this.#weight = weight;
		this.#lanes = { api: lane(limits.api), database: lane(limits.database) };
	}

	/** True: `id` has a place, give it back with `release`. False: it waits, and some `release` or `cancel` names it. Repeatable. */
	tryTake(cls: ConcurrencyClass, tenant: string, id: string): boolean {
		const known = this.#where.get(id);
		if (known !== undefined) return known.lane.running.has(id);
		const lane = this.#lanes[cls];
		this.#where.set(id, { lane, tenant });
		const own = flow(lane, tenant);
		// A tenant that was away starts now: time it did not use is not saved up to shut others out later.
		if (own.waiting.length === 0) own.start = Math.max(lane.virtual, own.finish);
		own.waiting.push({ id, seq: this.#seq++ });
		// With a free place nobody else waits, so the newcomer is the one that is served.
		return this.#serve(lane).includes(id);
	}

	/** Gives a place back; the ids that have one from now on. Nothing happens for an id that has none. */
	release(id: string): string[] {
		const known = this.#where.get(id);
		if (known === undefined || !known.lane.running.delete(id)) return [];
		this.#where.delete(id);
		return this.#serve(known.lane);
	}

	/** Takes `id` out, waiting or not; the ids that have a place from now on. */
	cancel(id: string): string[] {
		const known = this.#where.get(id);
		if (known === undefined) return [];
		if (known.lane.running.has(id)) return this.release(id);
		const waiting = known.lane.flows.get(known.tenant)?.waiting ?? [];
		const at = waiting.findIndex((entry) => entry.id === id);
		if (at >= 0) waiting.splice(at, 1);
		this.#where.delete(id);
		return [];
	}

	/** 0 has a place; n is woken by the n-th place that comes free, if nobody else comes; null is not known. */
	position(id: string): number | null {
		const known = this.#where.get(id);
		if (known === undefined) return null;
		if (known.lane.running.has(id)) return 0;
		const { lane } = known;
		const flows = [...lane.flows].map(([tenant, f]): [string, Flow] => [tenant, { ...f, waiting: [...f.waiting] }]);
		const trial: Lane = { ...lane, flows: new Map(flows) };
		for (let n = 1; ; n++) if (this.#next(trial) === id) return n;
	}

	#serve(lane: Lane): string[] {
		const woken: string[] = [];
		while (lane.running.size < lane.limit) {
			const id = this.#next(lane);
			if (id === undefined) break;
			lane.running.add(id);
			woken.push(id);
		}
		return woken;
	}

	/** Takes out the waiting call with the earliest virtual finish; the longest waiting one among equals. */
	#next(lane: Lane): string | undefined {
		let best: { flow: Flow; finish: number; seq: number } | undefined;
		for (const [tenant, candidate] of lane.flows) {
			const head = candidate.waiting[0];
			if (head === undefined) {
				// Nothing waits and its past service is paid off: forgotten, so that tenants who left cost no memory.
				if (candidate.finish <= lane.virtual) lane.flows.delete(tenant);
				continue;
			}
			const finish = candidate.start + 1 / this.#weight(tenant);
			const earlier = best === undefined || finish < best.finish || (finish === best.finish && head.seq < best.seq);
			if (earlier) best = { flow: candidate, finish, seq: head.seq };
		}
		if (best === undefined) return undefined;
		lane.virtual = Math.max(lane.virtual, best.flow.start);
		best.flow.finish = best.finish;
		best.flow.start = best.finish;
		return best.flow.waiting.shift()?.id;
	}
}

function flow(lane: Lane, tenant: string): Flow {
	const known = lane.flows.get(tenant);
	if (known !== undefined) return known;
	const made: Flow = { start: 0, finish: 0, waiting: [] };
	lane.flows.set(tenant, made);
	return made;
}
