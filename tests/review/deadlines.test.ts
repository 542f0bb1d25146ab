import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Deadlines } from "#objects/agent-run/deadlines.ts";

describe("deadlines over one timer", () => {
	beforeEach(() => {
		vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
	});
	afterEach(() => {
		vi.useRealTimers();
	});
	const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

	it("ring in their order, each once, at their time", async () => {
		const rang: string[] = [];
		const deadlines = new Deadlines();
		deadlines.set(300, () => rang.push("late"));
		deadlines.set(50, () => rang.push("early"));
		await pass(49);
		expect(rang).toEqual([]);
		await pass(1);
		expect(rang).toEqual(["early"]);
		await pass(1_000);
		expect(rang).toEqual(["early", "late"]);
	});

	it("do not ring when called off, and others still do", async () => {
		const rang: string[] = [];
		const deadlines = new Deadlines();
		const callOff = deadlines.set(50, () => rang.push("off"));
		deadlines.set(60, () => rang.push("on"));
		callOff();
		callOff();
		await pass(1_000);
		expect(rang).toEqual(["on"]);
	});

	it("do not ring when another that rings with them calls them off", async () => {
		const rang: string[] = [];
		const deadlines = new Deadlines();
		deadlines.set(10, () => {
			rang.push("first");
			callOff();
		});
		const callOff = deadlines.set(10, () => rang.push("called off"));
		await pass(1_000);
		expect(rang).toEqual(["first"]);
		expect(vi.getTimerCount()).toBe(0);
	});

	it("leave no long timer behind, and a short one serves the next deadline too", async () => {
		const rang: number[] = [];
		const deadlines = new Deadlines();
		deadlines.set(600_000, () => rang.push(0))();
		expect(vi.getTimerCount()).toBe(0);
		for (let n = 0; n < 10; n++) {
			deadlines.set(50, () => rang.push(n))();
			expect(vi.getTimerCount()).toBe(1);
			await pass(3);
		}
		deadlines.set(50, () => rang.push(99));
		await pass(50);
		expect(rang).toEqual([99]);
		expect(vi.getTimerCount()).toBe(0);
	});

	it("ring the others when one of them throws, and the log does not quote it", async () => {
		const rang: string[] = [];
		const logged = vi.spyOn(console, "error").mockImplementation(() => {});
		const deadlines = new Deadlines();
		deadlines.set(10, () => {
			throw new Error("secret-of-the-run");
		});
		deadlines.set(10, () => rang.push("other"));
		await pass(10);
		const lines = logged.mock.calls.flat().join();
		logged.mockRestore();
		expect(rang).toEqual(["other"]);
		expect(lines).toContain("a deadline could not be served");
		expect(lines).not.toContain("secret");
	});
});
