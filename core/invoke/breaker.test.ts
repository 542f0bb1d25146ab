import { describe, expect, it } from "vitest";
import { admit, type Breaker, CLOSED_BREAKER, endProbe, record, viewBreaker } from "./breaker.ts";
import type { Criticality, GateOutcome } from "./gate-keys.ts";

const OPEN_MS = 30_000;
/** `F` a failure, `.` a success, reported one by one. */
const fed = (
	marks: string,
	criticality: Criticality = "normal",
	from: Breaker = CLOSED_BREAKER,
	now = 1_000,
): Breaker =>
	[...marks].reduce<Breaker>(
		(breaker, mark) =>
			record(breaker, now, criticality, {
				successes: mark === "." ? 1 : 0,
				failures: mark === "F" ? 1 : 0,
				started_at: null,
			}),
		from,
	);
const isOpen = (breaker: Breaker): boolean => breaker.until !== null;
const OPEN = fed("FFFFF");

describe("opening (I3)", () => {
	it.each([
		["normal", "FFFF", false],
		["normal", "FFF..", true],
		["normal", "..FFF", true],
		["normal", "...FF", false],
		["normal", "..........FFFFF", false],
		["normal", "..........FFFFFF", true],
		["normal", "....FFFFF", false],
		["normal", "....FFFFFF", true],
		["core", "FF", false],
		["core", "F.F", true],
		["core", "..........FF", true],
		["core", "F..F..F..", false],
		["non_core", "FFFFFFFFF", false],
		["non_core", "FFFFFF....", true],
		["non_core", "FFFFF.....", false],
	] as const)("%s after %s: %s", (criticality, marks, open) => {
		expect(isOpen(fed(marks, criticality))).toBe(open);
	});

	it("takes successes of one report before its failures, and cannot be flooded", () => {
		const both = record(CLOSED_BREAKER, 0, "normal", { successes: 1e9, failures: 5, started_at: null });
		expect(viewBreaker(both, 0, "normal")).toEqual({ state: "closed", until: null, samples: 10, failures: 5 });
		expect(isOpen(record(both, 0, "normal", { successes: 0, failures: 1e9, started_at: null }))).toBe(true);
	});

	it("stays open for 30 s", () => {
		expect(OPEN.until).toBe(1_000 + OPEN_MS);
		expect(admit(OPEN, 30_999, "a", 99_000)).toMatchObject({ go: false, until: 31_000 });
		expect(admit(OPEN, 31_000, "a", 99_000)).toMatchObject({ go: true, probe: true });
		expect(["open", "half_open"]).toEqual([30_999, 31_000].map((now) => viewBreaker(OPEN, now, "normal").state));
	});
});

describe("half-open (O09)", () => {
	const probing = admit(OPEN, 31_000, "p", 40_000).next;

	it("lets one call try and tells the others when to come back", () => {
		expect(admit(probing, 31_000, "q", 50_000)).toMatchObject({ go: false, until: 40_000 });
		expect(admit(probing, 39_999, "q", 50_000).go).toBe(false);
		expect(admit(probing, 35_000, "p", 44_000)).toMatchObject({ go: true, probe: true });
	});

	it.each([
		["success", "closed"],
		["neutral", "closed"],
		["fault", "open"],
		["not_asked", "half_open"],
	] as const)("a probe that ends as %s leaves it %s, with the slot free", (outcome, state) => {
		const ended = endProbe(probing, 35_000, "p", outcome as GateOutcome);
		expect(ended?.probe).toBeNull();
		expect(viewBreaker(ended as Breaker, 35_000, "normal")).toMatchObject({ state, samples: 0 });
		if (state === "open") expect(ended?.until).toBe(35_000 + OPEN_MS);
		if (state === "half_open")
			expect(admit(ended as Breaker, 35_000, "q", 50_000)).toMatchObject({ go: true, probe: true });
	});

	it("takes a probe that does not come back for lost: the next one tries, and the late one decides nothing", () => {
		const second = admit(probing, 40_000, "q", 50_000);
		expect(second).toMatchObject({ go: true, probe: true });
		for (const outcome of ["success", "fault", "neutral"] as const)
			expect(endProbe(second.next, 41_000, "p", outcome)).toBeNull();
		expect(isOpen(endProbe(second.next, 41_000, "q", "success") as Breaker)).toBe(false);
	});

	it("hears a late probe while nobody has taken its place", () => {
		expect(isOpen(endProbe(probing, 99_000, "p", "success") as Breaker)).toBe(false);
	});
});

describe("late reports", () => {
	it("do not prolong an opening, close it or disturb the probe", () => {
		const probing = admit(OPEN, 31_000, "p", 40_000).next;
		for (const breaker of [OPEN, probing]) {
			expect(fed("FFFFFFFFFF", "normal", breaker, 32_000)).toBe(breaker);
			expect(fed("..........", "normal", breaker, 32_000)).toBe(breaker);
		}
	});

	it("of calls that began before it closed do not count against the time after", () => {
		const closed = endProbe(admit(OPEN, 31_000, "p", 40_000).next, 32_000, "p", "success") as Breaker;
		const late = { successes: 0, failures: 9, started_at: 900 };
		expect(record(closed, 33_000, "normal", late)).toBe(closed);
		expect(isOpen(record(closed, 33_000, "normal", { ...late, started_at: 32_000 }))).toBe(true);
	});
});
