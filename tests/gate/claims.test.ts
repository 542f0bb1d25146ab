/** I5 and O07 on the real object: one key, one operation, whatever is lost on the way. */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { CLAIM, Gate, live, NEEDS, named, stored } from "./gate.ts";

const GO = { verdict: "go", probe: false, hold_until: expect.any(Number) };
const WINDOW = 300_000;

describe("one key", () => {
	it("50 equal calls at once through the deployed object: exactly one goes", async () => {
		const who = named();
		const { api, stub } = live(who);
		const ask = (i: number) => api.enter({ ...who, tool_call_id: `c${i}`, needs: CLAIM, hold_ms: 60_000 });
		const all = () => Promise.all(Array.from({ length: 50 }, (_, i) => ask(i)));
		const answers = await all();
		const owner = answers.findIndex(({ verdict }) => verdict === "go");
		expect(answers.filter(({ verdict }) => verdict === "go")).toHaveLength(1);
		expect(answers.filter((answer) => answer.verdict === "wait" && answer.reason === "claim")).toHaveLength(49);

		await evictDurableObject(stub);
		expect((await all()).flatMap(({ verdict }, i) => (verdict === "go" ? [i] : []))).toEqual([owner]);

		const first = stored(`c${owner}`, { paid: true }, Date.now());
		const end = { outcome: "success", settle: "done", stored: first, pause_ms: null } as const;
		await api.leave({ ...who, tool_call_id: `c${owner}`, needs: CLAIM, ...end });
		await evictDurableObject(stub);
		expect(new Set((await all()).map((answer) => JSON.stringify(answer)))).toEqual(
			new Set([JSON.stringify({ verdict: "replay", first })]),
		);
	});

	it("the window runs from the settlement, and then an equal call is a new one", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM);
		gate.now += 50_000;
		await gate.leave("a", CLAIM, { settle: "done", stored: stored("a", 1, gate.now) });
		gate.now += WINDOW - 1;
		expect(await gate.enter("b", CLAIM)).toMatchObject({ verdict: "replay", first: { result: 1, tool_call_id: "a" } });
		gate.now += 1;
		expect(await gate.enter("b", CLAIM)).toEqual(GO);
	});

	it("a first that certainly did not act frees it", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM);
		expect(await gate.enter("b", CLAIM)).toEqual({ verdict: "wait", reason: "claim", retry_at: gate.now + 1_000 });
		await gate.leave("a", CLAIM, { outcome: "neutral", settle: "free" });
		expect(await gate.enter("b", CLAIM)).toEqual(GO);
		expect((await gate.enter("a", CLAIM)).verdict).toBe("wait");
	});

	it("another key is another operation", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM);
		expect(await gate.enter("b", { ...CLAIM, claim: { key: "another principal's" } })).toEqual(GO);
	});
});

describe("an end that is not known", () => {
	it("is told to equal calls, never repeated by them; the call itself may repeat under its own key", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM);
		await gate.leave("a", CLAIM, { outcome: "fault", settle: "unknown" });
		expect(await gate.enter("b", CLAIM)).toEqual({ verdict: "replay_unknown", tool_call_id: "a" });
		expect(await gate.enter("a", CLAIM)).toEqual(GO);
		await gate.leave("a", CLAIM, { settle: "done", stored: stored("a", "ok", gate.now) });
		expect(await gate.enter("b", CLAIM)).toMatchObject({ verdict: "replay", first: { result: "ok" } });
	});

	it("between two attempts the key stays: an equal call would act under a second upstream key", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM);
		const report = await gate.leave("a", CLAIM, { outcome: "fault", settle: "keep" });
		expect(report.breaker.failures).toBe(1);
		expect((await gate.enter("b", CLAIM)).verdict).toBe("wait");
		expect(await gate.enter("a", CLAIM)).toEqual(GO);
		await gate.leave("a", CLAIM, { outcome: "fault", settle: "keep" });
		// It gives up: no pass is out, and the key is settled all the same.
		expect((await gate.leave("a", CLAIM, { outcome: "fault", settle: "unknown" })).breaker.failures).toBe(2);
		expect((await gate.enter("b", CLAIM)).verdict).toBe("replay_unknown");
	});

	it("a call that was lost may have acted; when it comes back with the truth, that holds", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM, 10_000);
		gate.now += 10_000;
		expect(await gate.enter("b", CLAIM)).toEqual({ verdict: "replay_unknown", tool_call_id: "a" });
		gate.now += 100_000;
		await gate.leave("a", CLAIM, { settle: "done", stored: stored("a", 7, gate.now) });
		expect(await gate.enter("b", CLAIM)).toMatchObject({ verdict: "replay", first: { result: 7 } });
	});

	it("a call whose end never comes leaves nothing behind: five minutes after its hold the gate has forgotten it", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM, 10_000);
		gate.now += 10_000 + WINDOW - 1;
		await gate.alarm();
		expect([await gate.rows("pass"), await gate.rows("claim")]).toEqual([1, 1]);
		gate.now += 1;
		await gate.alarm();
		expect([await gate.rows("pass"), await gate.rows("claim")]).toEqual([0, 0]);
	});

	it("a lost call that comes back after its key went to another changes nothing", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM, 10_000);
		gate.now += 10_000 + WINDOW;
		expect(await gate.enter("b", CLAIM)).toEqual(GO);
		await gate.leave("a", CLAIM, { settle: "free" });
		expect((await gate.enter("c", CLAIM)).verdict).toBe("wait");
	});
});

describe("repeats of the same request", () => {
	it("a second `leave` changes nothing, whatever it says", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM);
		await gate.leave("a", CLAIM, { settle: "done", stored: stored("a", 1, gate.now) });
		for (const settle of ["free", "unknown", "keep", "done"] as const)
			await gate.leave("a", CLAIM, { settle, outcome: "fault", stored: stored("a", 2, gate.now), pause_ms: 5_000 });
		expect(await gate.enter("b", CLAIM)).toMatchObject({ verdict: "replay", first: { result: 1 } });
		expect(await gate.view()).toMatchObject({ breaker: { samples: 1, failures: 0 }, paused_until: null });
	});

	it("a call whose end was saved and whose run forgot it gets its own result", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM);
		await gate.leave("a", CLAIM, { settle: "done", stored: stored("a", 1, gate.now) });
		expect(await gate.enter("a", CLAIM)).toMatchObject({ verdict: "replay", first: { tool_call_id: "a" } });
	});

	it("nobody settles another's key", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM);
		await gate.leave("b", CLAIM, { settle: "done", stored: stored("b", "forged", gate.now) });
		await gate.leave("b", CLAIM, { settle: "free" });
		expect((await gate.enter("c", CLAIM)).verdict).toBe("wait");
	});
});

describe("results", () => {
	it("of megabytes, in any script, come back as they were", async () => {
		const gate = new Gate();
		const result = { text: 'é😀\ud800\u0000"\\'.repeat(200_000), list: [1, null, { a: [] }] };
		await gate.enter("a", CLAIM);
		await gate.leave("a", CLAIM, { settle: "done", stored: stored("a", result, gate.now) });
		const answer = await gate.enter("b", CLAIM);
		expect(answer.verdict === "replay" && JSON.stringify(answer.first.result) === JSON.stringify(result)).toBe(true);
		expect(await gate.rows("body")).toBeGreaterThan(5);
	});

	it("that cannot be kept leave the key done all the same", async () => {
		const gate = new Gate();
		await gate.enter("a", CLAIM);
		await gate.leave("a", CLAIM, { settle: "done", stored: stored("a", "x".repeat(8_388_608), gate.now) });
		expect(await gate.enter("b", CLAIM)).toEqual({ verdict: "replay_unknown", tool_call_id: "a" });
	});
});

it("an open breaker or an empty bucket takes no key", async () => {
	const gate = new Gate();
	const limited = { ...CLAIM, rate_limit: { requests_per_minute: 1, burst: 1 } };
	await gate.enter("x", { ...limited, claim: null });
	expect(await gate.enter("a", limited)).toMatchObject({ verdict: "wait", reason: "rate_limit" });
	await gate.open();
	expect((await gate.enter("a", CLAIM)).verdict).toBe("open");
	expect((await gate.view()).claims).toBe(0);
});

it("an idle gate empties itself", async () => {
	const gate = new Gate();
	await gate.enter("a", CLAIM);
	await gate.leave("a", CLAIM, { settle: "done", stored: stored("a", "personal", gate.now) });
	await gate.enter("b", NEEDS);
	// The alarm is set for the first of them that ends, by storage itself: nobody has to come by.
	const alarm = await runInDurableObject(live(gate.who).stub, (_object, state) => state.storage.getAlarm());
	expect(alarm).toBe(gate.now + WINDOW);
	gate.now += 10_000;
	await gate.alarm();
	expect([await gate.rows("kept"), await gate.rows("claim"), await gate.rows("pass")]).toEqual([1, 1, 1]);
	gate.now += 60_000 + WINDOW;
	await gate.alarm();
	expect(await Promise.all(["kept", "body", "claim", "pass"].map((table) => gate.rows(table)))).toEqual([0, 0, 0, 0]);
});
