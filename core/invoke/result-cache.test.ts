import { describe, expect, it } from "vitest";
import type { ToolDescriptor } from "../registry/descriptor.ts";
import { cacheTtl, type Kept, makeRoom } from "./result-cache.ts";

const entry = (key: string, used: number, more: Partial<Kept> = {}): Kept => ({
	key,
	kind: "cache",
	bytes: 10,
	used,
	expires_at: 1_000,
	...more,
});
const LIMITS = { entries: 3, bytes: 100 };
const drop = (kept: Kept[], incoming: Partial<Kept> = {}, now = 0) =>
	makeRoom(kept, { key: "new", kind: "cache", bytes: 10, ...incoming }, now, LIMITS);

it.each([
	[{ tier: "realtime" }, "read", 600_000],
	[{ tier: "near_realtime" }, "read", 3_600_000],
	[{ tier: "static" }, "read", 86_400_000],
	[{ tier: "static", ttl_seconds: 5 }, "read", 5_000],
	[{ tier: "realtime", ttl_seconds: 1e9 }, "read", 86_400_000],
	[{ tier: "static" }, "write", null],
	[{ tier: "static" }, "external", null],
	[undefined, "read", null],
])("%j of a %s lives %s ms (I7)", (cache, effect, ms) => {
	expect(cacheTtl({ cache, effect } as unknown as ToolDescriptor)).toBe(ms);
});

describe("room", () => {
	it("drops the least recently used one, by count and by size", () => {
		expect(drop([entry("a", 3), entry("b", 1)])).toEqual({ fits: true, drop: [] });
		expect(drop([entry("a", 3), entry("b", 1), entry("c", 2)])).toEqual({ fits: true, drop: ["b"] });
		expect(drop([entry("a", 3), entry("b", 1)], { bytes: 85 })).toEqual({ fits: true, drop: ["b"] });
		expect(drop([entry("a", 3), entry("b", 1)], { bytes: 95 })).toEqual({ fits: true, drop: ["b", "a"] });
	});

	it("drops what has expired and what it replaces first", () => {
		expect(drop([entry("a", 9, { expires_at: 5 }), entry("b", 1), entry("c", 2)], {}, 5).drop).toEqual(["a"]);
		expect(drop([entry("new", 9), entry("b", 1), entry("c", 2)]).drop).toEqual(["new"]);
	});

	it("never gives up a claim's result for a cached one, however many reads come", () => {
		const proof = [1, 2, 3].map((n) => entry(`c${n}`, n, { kind: "claim" }));
		expect(drop(proof)).toEqual({ fits: false, drop: [] });
		expect(drop([...proof.slice(1), entry("a", 9)]).drop).toEqual(["a"]);
		expect(drop(proof, { kind: "claim" })).toEqual({ fits: true, drop: ["c1"] });
	});

	it("does not empty the house for what fits nowhere", () => {
		expect(drop([entry("a", 1), entry("b", 2)], { bytes: 101 })).toEqual({ fits: false, drop: [] });
	});
});
