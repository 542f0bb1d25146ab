/** O09 and I3 on the real object, a new instance for every request: nothing of a breaker lives in memory. */
import { evictDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { CACHE, Gate, live, NEEDS, named, stored } from "./gate.ts";

const GO = { verdict: "go", probe: false, hold_until: expect.any(Number) };
const PROBE = { verdict: "go", probe: true, hold_until: expect.any(Number) };

describe("opening", () => {
	it("after 3 of 5 reported attempts: no call goes, for 30 s", async () => {
		const gate = new Gate();
		expect((await gate.report(2, 2)).breaker).toEqual({ state: "closed", until: null, samples: 4, failures: 2 });
		expect((await gate.report(0, 1)).breaker).toMatchObject({ state: "open", until: gate.now + 30_000 });
		expect(await gate.enter("a")).toEqual({ verdict: "open", until: gate.now + 30_000, snapshot: null });
		gate.now += 29_999;
		expect((await gate.enter("a")).verdict).toBe("open");
		gate.now += 1;
		expect(await gate.enter("a")).toEqual(PROBE);
	});

	it("by calls with a pass too, each once, however often its end is said", async () => {
		const gate = new Gate();
		for (const id of ["a", "b", "c", "d", "e"]) await gate.enter(id);
		for (const id of ["a", "b", "c", "d"])
			for (let i = 0; i < 3; i++) await gate.leave(id, NEEDS, { outcome: "fault" });
		expect((await gate.view()).breaker).toEqual({ state: "closed", until: null, samples: 4, failures: 4 });
		await gate.leave("nobody", NEEDS, { outcome: "fault", pause_ms: 9_000 });
		expect(await gate.view()).toMatchObject({ paused_until: null, breaker: { samples: 4 } });
		expect((await gate.leave("e", NEEDS, { outcome: "fault" })).breaker.state).toBe("open");
	});

	it("not by what says nothing about the tool", async () => {
		const gate = new Gate();
		for (let i = 0; i < 20; i++) {
			await gate.enter(`n${i}`);
			await gate.leave(`n${i}`, NEEDS, { outcome: i % 2 === 0 ? "neutral" : "not_asked" });
		}
		expect((await gate.view()).breaker).toMatchObject({ state: "closed", samples: 0 });
	});
});

describe("half-open", () => {
	it.each([
		["success", "closed"],
		["neutral", "closed"],
		["fault", "open"],
		["not_asked", "half_open"],
	] as const)("a probe that ends as %s leaves it %s", async (outcome, state) => {
		const gate = new Gate();
		gate.now = await gate.open();
		expect(await gate.enter("p")).toEqual(PROBE);
		expect(await gate.enter("q")).toEqual({ verdict: "open", until: gate.now + 60_000, snapshot: null });
		expect((await gate.leave("p", NEEDS, { outcome })).breaker.state).toBe(state);
		const next = await gate.enter("q");
		expect(next).toEqual({ closed: GO, half_open: PROBE, open: expect.objectContaining({ verdict: "open" }) }[state]);
	});

	it("a lost probe frees the slot when its hold ends, and says nothing any more", async () => {
		const gate = new Gate();
		gate.now = await gate.open();
		expect(await gate.enter("p", NEEDS, 5_000)).toEqual(PROBE);
		gate.now += 4_999;
		expect((await gate.enter("q")).verdict).toBe("open");
		gate.now += 1;
		expect(await gate.enter("q")).toEqual(PROBE);
		expect((await gate.leave("p", NEEDS, { outcome: "fault" })).breaker.state).toBe("half_open");
		expect((await gate.leave("q", NEEDS, { outcome: "success" })).breaker.state).toBe("closed");
	});

	it("the probe's own repeat is still the probe", async () => {
		const gate = new Gate();
		gate.now = await gate.open();
		for (let i = 0; i < 3; i++) expect(await gate.enter("p")).toEqual(PROBE);
		expect((await gate.enter("q")).verdict).toBe("open");
	});

	it("failures of calls that were under way do not reopen what a probe has closed", async () => {
		const gate = new Gate();
		const late = ["a", "b", "c", "d", "e", "f"];
		for (const id of late) await gate.enter(id, NEEDS, 300_000);
		const started_at = gate.now;
		gate.now = (await gate.open()) + 1;
		for (const id of late.slice(0, 3)) await gate.leave(id, NEEDS, { outcome: "fault" });
		await gate.enter("p");
		await gate.leave("p");
		gate.now += 1;
		for (const id of late.slice(3)) await gate.leave(id, NEEDS, { outcome: "fault" });
		await gate.report(0, 10, { started_at });
		expect((await gate.view()).breaker).toEqual({ state: "closed", until: null, samples: 0, failures: 0 });
	});

	it("50 calls at once through the deployed object: one probe, 49 fail fast with a time", async () => {
		const gate = new Gate();
		const { api, stub } = live(gate.who);
		gate.now = Date.now() - 30_000;
		await gate.open();
		await evictDurableObject(stub);
		const ask = (tool_call_id: string) => api.enter({ ...gate.who, tool_call_id, needs: NEEDS, hold_ms: 60_000 });
		const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(`c${i}`)));
		expect(answers.filter((answer) => answer.verdict === "go")).toEqual([PROBE]);
		const refused = answers.filter((answer) => answer.verdict === "open");
		expect(refused).toHaveLength(49);
		for (const { until } of refused) expect(until).toBeGreaterThan(Date.now());
		await evictDurableObject(stub);
		expect((await ask("late")).verdict).toBe("open");
		const probe = `c${answers.findIndex((answer) => answer.verdict === "go")}`;
		const end = { outcome: "neutral", settle: "free", stored: null, pause_ms: null } as const;
		const report = await api.leave({ ...gate.who, tool_call_id: probe, needs: NEEDS, ...end });
		expect(report.breaker.state).toBe("closed");
	});
});

describe("what others are told", () => {
	it("TenantControl learns of opening and closing, each once", async () => {
		const gate = new Gate();
		const until = await gate.open();
		await gate.report(0, 5);
		gate.now = until;
		await gate.enter("p");
		expect(gate.told).toEqual([until]);
		await gate.leave("p", NEEDS, { outcome: "fault" });
		gate.now += 30_000;
		await gate.enter("p");
		await gate.leave("p");
		expect(gate.told).toEqual([until, until + 30_000, null]);
	});

	it("while it is away no report is lost, and it is told later", async () => {
		const gate = new Gate();
		gate.away = true;
		const until = await gate.open();
		expect((await gate.view()).breaker).toMatchObject({ state: "open", until });
		expect(gate.told).toEqual([]);
		gate.away = false;
		await gate.view();
		expect(gate.told).toEqual([until]);
	});

	it("a gate answers to its own tenant and tool only", async () => {
		const { api } = live(named());
		await expect(
			(async () => await api.view({ v: 1, tenant_id: "other", tool_id: "tool_0", criticality: "normal" }))(),
		).rejects.toThrow("its own name");
	});
});

it("I6: the last good result stands in while it is open, and says how old it is", async () => {
	const gate = new Gate();
	await gate.enter("a", CACHE);
	const good = stored("a", { price: 1 }, gate.now);
	await gate.leave("a", CACHE, { stored: good });
	gate.now += 3_600_000;
	await gate.open();
	expect(await gate.enter("b", CACHE)).toMatchObject({ verdict: "open", snapshot: good });
	expect(await gate.enter("b", { ...CACHE, snapshot: { key: "somebody else's" } })).toMatchObject({ snapshot: null });
	expect(await gate.enter("b", { ...CACHE, snapshot: null })).toMatchObject({ snapshot: null });
	gate.now += 7 * 86_400_000;
	await gate.open();
	expect(await gate.enter("b", CACHE)).not.toHaveProperty("snapshot.result");
});
