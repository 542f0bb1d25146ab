import { describe, expect, it } from "vitest";
import { type Claim, settleClaim, takeClaim } from "./claim-window.ts";

const WINDOW = 300_000;
const held = (owner = "a", until = 10_000): Claim => ({ owner, state: "held", until });
const settled = (state: "done" | "unknown", until = WINDOW): Claim => ({ owner: "a", state, until });

describe("asking (I5)", () => {
	it("the first owns it, an equal call waits, the owner gets it again", () => {
		expect(takeClaim(null, 0, "a", 10_000)).toEqual({ kind: "owner", next: held() });
		expect(takeClaim(held(), 5_000, "b", 15_000)).toEqual({ kind: "in_progress", retry_at: 6_000 });
		expect(takeClaim(held(), 9_500, "b", 15_000)).toEqual({ kind: "in_progress", retry_at: 10_000 });
		expect(takeClaim(held(), 5_000, "a", 15_000)).toEqual({ kind: "owner", next: held("a", 15_000) });
	});

	it("a lost owner may have acted: nobody else gets the key, and it may come back itself", () => {
		expect(takeClaim(held(), 10_000, "b", 99_000)).toEqual({ kind: "unknown", owner: "a" });
		expect(takeClaim(held(), 10_000 + WINDOW - 1, "b", 1e9)).toEqual({ kind: "unknown", owner: "a" });
		expect(takeClaim(held(), 20_000, "a", 99_000).kind).toBe("owner");
		expect(takeClaim(held(), 10_000 + WINDOW, "b", 1e9)).toEqual({ kind: "owner", next: held("b", 1e9) });
	});

	it("after `done` everybody gets the first result, the owner too; after `unknown` only the owner may repeat", () => {
		for (const id of ["a", "b"]) expect(takeClaim(settled("done"), 1, id, 9)).toEqual({ kind: "done", owner: "a" });
		expect(takeClaim(settled("unknown"), 1, "b", 9)).toEqual({ kind: "unknown", owner: "a" });
		expect(takeClaim(settled("unknown"), 1, "a", 9).kind).toBe("owner");
		for (const state of ["done", "unknown"] as const)
			expect(takeClaim(settled(state), WINDOW, "b", 1e9).kind).toBe("owner");
	});
});

describe("settling", () => {
	it("runs the window from the settlement", () => {
		expect(settleClaim(held(), 8_000, "a", "done")).toEqual(settled("done", 8_000 + WINDOW));
		expect(settleClaim(held(), 8_000, "a", "unknown")).toEqual(settled("unknown", 8_000 + WINDOW));
		expect(settleClaim(held(), 8_000, "a", "free")).toBeNull();
		expect(settleClaim(held(), 8_000, "a", "keep")).toBe("unchanged");
	});

	it("hears nobody but the owner, and the owner once", () => {
		for (const settle of ["done", "unknown", "free"] as const) {
			expect(settleClaim(held(), 1, "b", settle)).toBe("unchanged");
			expect(settleClaim(null, 1, "a", settle)).toBe("unchanged");
			expect(settleClaim(settled("done"), 1, "a", settle)).toBe("unchanged");
			expect(settleClaim(settled("unknown"), 1, "a", settle)).toBe("unchanged");
		}
	});

	it("hears a lost owner that comes late with the truth", () => {
		expect(settleClaim(held(), 50_000, "a", "done")).toEqual(settled("done", 50_000 + WINDOW));
	});
});
