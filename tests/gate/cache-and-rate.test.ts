/** I7, O13 and R1 on the real object: what is read again, what is asked again, and how often. */
import { evictDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import type { GateNeeds } from "#core/invoke/gate-keys.ts";
import { CACHE, CLAIM, Gate, live, NEEDS, named, stored } from "./gate.ts";

const GO = { verdict: "go", probe: false, hold_until: expect.any(Number) };

/** A read that goes and comes back with `result`. */
async function read(gate: Gate, id: string, result: string, needs: GateNeeds = CACHE): Promise<void> {
	expect(await gate.enter(id, needs)).toEqual(GO);
	await gate.leave(id, needs, { stored: stored(id, result, gate.now) });
}

describe("cache", () => {
	it("misses, hits until it is too old, and counts both", async () => {
		const gate = new Gate();
		await read(gate, "a", "sunny");
		const first = stored("a", "sunny", gate.now);
		gate.now += 599_999;
		expect(await gate.enter("b", CACHE)).toEqual({ verdict: "cached", stored: first });
		expect(await gate.enter("c", CACHE)).toEqual({ verdict: "cached", stored: first });
		expect(await gate.view()).toMatchObject({ cached: 1, hits: 2, misses: 1 });
		gate.now += 1;
		expect(await gate.enter("d", CACHE)).toEqual(GO);
		expect(await gate.view()).toMatchObject({ cached: 0, hits: 2, misses: 2 });
	});

	it("age counts from when the tool said it", async () => {
		const gate = new Gate();
		await gate.enter("a", CACHE);
		await gate.leave("a", CACHE, { stored: stored("a", 1, gate.now - 599_999) });
		expect((await gate.enter("b", CACHE)).verdict).toBe("cached");
		gate.now += 1;
		expect((await gate.enter("b", CACHE)).verdict).toBe("go");
	});

	it("another principal's key finds nothing", async () => {
		const gate = new Gate();
		await read(gate, "a", "mine");
		expect(await gate.enter("b", { ...CACHE, cache: { key: "other", ttl_ms: 600_000 } })).toEqual(GO);
	});

	it("keeps no failure, and nothing of a call that acts", async () => {
		const gate = new Gate();
		for (const outcome of ["fault", "neutral", "not_asked"] as const) {
			await gate.enter(outcome, CACHE);
			await gate.leave(outcome, CACHE, { outcome, stored: stored(outcome, "error", gate.now) });
		}
		const both = { ...CACHE, claim: CLAIM.claim };
		await gate.enter("w", both);
		await gate.leave("w", both, { settle: "done", stored: stored("w", "written", gate.now) });
		await gate.leave("never entered", CACHE, { stored: stored("x", "forged", gate.now) });
		expect(await gate.enter("b", CACHE)).toEqual(GO);
		expect((await gate.view()).cached).toBe(0);
	});

	it("a declared write empties it, and a read that was under way brings nothing old back", async () => {
		const gate = new Gate();
		await read(gate, "a", "old");
		await gate.enter("slow", { ...CACHE, cache: { key: "slow", ttl_ms: 600_000 } });
		await gate.invalidate();
		await gate.leave(
			"slow",
			{ ...CACHE, cache: { key: "slow", ttl_ms: 600_000 } },
			{ stored: stored("slow", "old", gate.now) },
		);
		expect((await gate.view()).cached).toBe(0);
		expect((await gate.enter("b", { ...CACHE, cache: { key: "slow", ttl_ms: 600_000 } })).verdict).toBe("go");
		await read(gate, "c", "new");
		expect(await gate.enter("d", CACHE)).toMatchObject({ verdict: "cached", stored: { result: "new" } });
	});

	it("needs neither a token nor a closed breaker for what it has", async () => {
		const gate = new Gate();
		const limited = { ...CACHE, rate_limit: { requests_per_minute: 1, burst: 1 } };
		await read(gate, "a", "kept", limited);
		await gate.open();
		expect((await gate.enter("b", limited)).verdict).toBe("cached");
	});

	it("gives up the least recently used when it is full, in the deployed object too", async () => {
		const gate = new Gate();
		const keyed = (i: number): GateNeeds => ({ ...NEEDS, cache: { key: `k${i}`, ttl_ms: 600_000 } });
		for (let i = 0; i < 66; i++) {
			await gate.enter(`${i}`, keyed(i));
			await gate.leave(`${i}`, keyed(i), { stored: stored(`${i}`, "x".repeat(1_048_000), gate.now) });
			// Used after every other: it stays.
			if (i > 0) expect((await gate.enter(`again${i}`, keyed(0))).verdict).toBe("cached");
		}
		expect((await gate.view()).cached).toBe(64);
		expect((await gate.enter("x", keyed(1))).verdict).toBe("go");
		expect((await gate.enter("y", keyed(65))).verdict).toBe("cached");
		await evictDurableObject(live(gate.who).stub);
		expect((await gate.enter("z", keyed(65))).verdict).toBe("cached");
	});
});

describe("rate", () => {
	const LIMITED: GateNeeds = { ...NEEDS, rate_limit: { requests_per_minute: 12, burst: 2 } };

	it("grants the burst and then exactly the rate, to callers who come when they are told", async () => {
		const gate = new Gate();
		const start = gate.now;
		let gone = 0;
		while (gate.now < start + 60_000) {
			const answer = await gate.enter(`c${gone}`, LIMITED);
			if (answer.verdict === "go") gone++;
			else if (answer.verdict === "wait") gate.now = answer.retry_at;
			expect(["go", "wait"]).toContain(answer.verdict);
		}
		// 2 at once, then one every 5 s at 5, 10 ... 55 s.
		expect(gone).toBe(2 + 11);
	});

	it("a call pays once for one start, also when its answer was lost", async () => {
		const gate = new Gate();
		for (let i = 0; i < 5; i++) expect(await gate.enter("a", LIMITED)).toEqual(GO);
		expect(await gate.enter("b", LIMITED)).toEqual(GO);
		expect(await gate.enter("c", LIMITED)).toEqual({
			verdict: "wait",
			reason: "rate_limit",
			retry_at: gate.now + 5_000,
		});
	});

	it("a retry is a request of its own", async () => {
		const gate = new Gate();
		for (let i = 0; i < 2; i++) {
			await gate.enter("a", LIMITED);
			await gate.leave("a", LIMITED, { outcome: "fault" });
		}
		expect((await gate.enter("a", LIMITED)).verdict).toBe("wait");
	});

	it("50 calls at once through the deployed object: no more than the burst", async () => {
		const who = named();
		const { api, stub } = live(who);
		const ask = (i: number) =>
			api.enter({
				...who,
				tool_call_id: `c${i}`,
				needs: { ...NEEDS, rate_limit: { requests_per_minute: 1, burst: 7 } },
				hold_ms: 60_000,
			});
		const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(i)));
		expect(answers.filter(({ verdict }) => verdict === "go")).toHaveLength(7);
		await evictDurableObject(stub);
		expect((await ask(99)).verdict).toBe("wait");
	});
});

describe("429", () => {
	it("pauses the tool for everybody, no probe excepted, and never for more than a day", async () => {
		const gate = new Gate();
		await gate.enter("a");
		await gate.leave("a", NEEDS, { outcome: "fault", pause_ms: 45_000 });
		const retry_at = gate.now + 45_000;
		expect(await gate.enter("b")).toEqual({ verdict: "wait", reason: "paused", retry_at });
		await gate.report(0, 0, { pause_ms: 1_000 });
		expect((await gate.view()).paused_until).toBe(retry_at);
		gate.now = await gate.open();
		expect(await gate.enter("b")).toEqual({ verdict: "wait", reason: "paused", retry_at });
		gate.now = retry_at;
		expect(await gate.enter("b")).toMatchObject({ verdict: "go", probe: true });
		await gate.leave("b", NEEDS, { outcome: "not_asked", pause_ms: Number.MAX_SAFE_INTEGER });
		expect(await gate.enter("c")).toEqual({ verdict: "wait", reason: "paused", retry_at: gate.now + 86_400_000 });
	});
});
