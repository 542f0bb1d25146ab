import { describe, expect, it } from "vitest";
import { type ConcurrencyClass, FairQueue } from "./fair-queue.ts";

/** A small seeded generator (xorshift32). */
function seeded(seed: number): (n: number) => number {
	let x = seed | 0 || 1;
	return (n) => {
		x ^= x << 13;
		x ^= x >>> 17;
		x ^= x << 5;
		return (x >>> 0) % n;
	};
}
const fill = (queue: FairQueue, cls: ConcurrencyClass, tenant: string, count: number): string[] => {
	const ids = Array.from({ length: count }, (_, i) => `${tenant}${i}`);
	for (const id of ids) queue.tryTake(cls, tenant, id);
	return ids;
};

describe("places (I8)", () => {
	it("are ten for APIs and five for databases", () => {
		const queue = new FairQueue();
		expect(Array.from({ length: 11 }, (_, i) => queue.tryTake("api", "t", `a${i}`)).filter(Boolean)).toHaveLength(10);
		expect(Array.from({ length: 6 }, (_, i) => queue.tryTake("database", "t", `d${i}`)).filter(Boolean)).toHaveLength(
			5,
		);
	});

	it("are asked for and given back once, however often it is said", () => {
		const queue = new FairQueue(undefined, { api: 1, database: 1 });
		expect([queue.tryTake("api", "t", "a"), queue.tryTake("api", "t", "a")]).toEqual([true, true]);
		expect([queue.tryTake("api", "t", "b"), queue.tryTake("api", "t", "b")]).toEqual([false, false]);
		expect(["a", "b", "c"].map((id) => queue.position(id))).toEqual([0, 1, null]);
		expect(queue.release("b")).toEqual([]);
		expect(queue.release("a")).toEqual(["b"]);
		expect(queue.release("a")).toEqual([]);
		expect([queue.position("b"), queue.release("b"), queue.position("b")]).toEqual([0, [], null]);
	});

	it("pass over who has left, waiting or not", () => {
		const queue = new FairQueue(undefined, { api: 1, database: 1 });
		fill(queue, "api", "t", 4);
		expect([queue.cancel("t1"), queue.cancel("t0"), queue.cancel("x")]).toEqual([[], ["t2"], []]);
		expect(queue.release("t2")).toEqual(["t3"]);
	});
});

describe("fairness", () => {
	it("a tenant with 100 waiting calls delays another's first by one call", () => {
		const queue = new FairQueue();
		const [running] = fill(queue, "api", "big", 110);
		expect(queue.tryTake("api", "small", "s")).toBe(false);
		expect(queue.position("s")).toBeLessThanOrEqual(2);
		const first = queue.release(running as string);
		const second = queue.release(first[0] as string);
		expect([...first, ...second]).toContain("s");
	});

	it("cancelled calls cost their tenant nothing", () => {
		const queue = new FairQueue(undefined, { api: 1, database: 1 });
		queue.tryTake("api", "x", "running");
		for (const id of fill(queue, "api", "t", 50)) queue.cancel(id);
		fill(queue, "api", "other", 3);
		queue.tryTake("api", "t", "mine");
		expect(queue.position("mine")).toBeLessThanOrEqual(2);
	});

	it("shares by weight", () => {
		const queue = new FairQueue((tenant) => (tenant === "heavy" ? 3 : 1), { api: 1, database: 1 });
		queue.tryTake("api", "x", "last");
		fill(queue, "api", "heavy", 60);
		fill(queue, "api", "light", 60);
		const served: string[] = [];
		for (let at = "last"; served.length < 40; at = served.at(-1) as string) served.push(...queue.release(at));
		expect(served.filter((id) => id.startsWith("heavy")).length).toBe(30);
	});

	it("a light tenant is served although a heavy one never stops", () => {
		const queue = new FairQueue((tenant) => (tenant === "light" ? 0.1 : 1), { api: 1, database: 1 });
		queue.tryTake("api", "x", "last");
		queue.tryTake("api", "light", "light");
		let at = "last";
		let n = 0;
		for (; at !== "light" && n < 100; n++) {
			queue.tryTake("api", "heavy", `h${n}`);
			at = queue.release(at)[0] as string;
		}
		expect(n).toBeLessThanOrEqual(12);
	});
});

it.each([1, 2, 3, 5, 8, 13])("holds under random use, seed %i", (seed) => {
	const random = seeded(seed * 7_919);
	const queue = new FairQueue();
	const limits = { api: 10, database: 5 };
	const running = new Map<string, ConcurrencyClass>();
	/** Served places of the class since a tenant's only waiting call came. */
	const waiting = new Map<
		string,
		{ cls: ConcurrencyClass; tenant: string; passed: Map<string, number>; behind: number }
	>();
	const woken = (ids: string[]): void => {
		for (const id of ids) {
			const { cls, tenant, passed, behind } = waiting.get(id) as NonNullable<ReturnType<typeof waiting.get>>;
			waiting.delete(id);
			running.set(id, cls);
			// Nobody of equal weight is served more often between one's calls than once for each of them, and once more.
			for (const [other, times] of passed) expect([other, times <= behind + 2]).toEqual([other, true]);
			for (const entry of waiting.values())
				if (entry.cls === cls && entry.tenant !== tenant) entry.passed.set(tenant, (entry.passed.get(tenant) ?? 0) + 1);
		}
	};
	for (let step = 0; step < 4_000; step++) {
		const choice = random(10);
		if (choice < 5) {
			const cls = random(3) === 0 ? "database" : "api";
			const tenant = `t${Math.min(random(6), random(6))}`;
			const id = `${step}`;
			const behind = [...waiting.values()].filter((entry) => entry.cls === cls && entry.tenant === tenant).length;
			if (queue.tryTake(cls, tenant, id)) running.set(id, cls);
			else waiting.set(id, { cls, tenant, passed: new Map(), behind });
		} else if (choice < 9 && running.size > 0) {
			const id = [...running.keys()][random(running.size)] as string;
			running.delete(id);
			woken(queue.release(id));
		} else if (waiting.size > 0) {
			const id = [...waiting.keys()][random(waiting.size)] as string;
			waiting.delete(id);
			woken(queue.cancel(id));
		}
		for (const cls of ["api", "database"] as const) {
			const count = [...running.values()].filter((is) => is === cls).length;
			expect(count).toBeLessThanOrEqual(limits[cls]);
			// No place stays empty while somebody waits.
			if ([...waiting.values()].some((entry) => entry.cls === cls)) expect(count).toBe(limits[cls]);
		}
	}
	for (let left = running.size + waiting.size; left > 0; left--) {
		const id = [...running.keys()][0] as string;
		running.delete(id);
		woken(queue.release(id));
	}
	expect([running.size, waiting.size]).toEqual([0, 0]);
});
