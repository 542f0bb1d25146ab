import { describe, expect, it } from "vitest";
import { pauseUntil, type RateBucket, takeToken } from "./rate-bucket.ts";

/** Requests that go when one asks every `step` ms in [from, to). */
function taken(
	limit: { requests_per_minute: number; burst: number },
	from: number,
	to: number,
	step: number,
): number[] {
	let bucket: RateBucket | null = null;
	const at: number[] = [];
	for (let now = from; now < to; now += step) {
		const take = takeToken(bucket, limit, now);
		if (!take.ok) continue;
		bucket = take.next;
		at.push(now);
	}
	return at;
}

describe("rate limit (R1)", () => {
	it("grants the burst at once and then exactly the rate", () => {
		const at = taken({ requests_per_minute: 30, burst: 3 }, 0, 120_000, 1);
		expect(at.slice(0, 3)).toEqual([0, 1, 2]);
		expect(at.filter((now) => now >= 60_000)).toHaveLength(30);
		expect(at.slice(3, 6)).toEqual([2_000, 4_000, 6_000]);
	});

	it.each([1, 7, 13, 59, 61, 997, 100_000])("does not drift: %i per minute", (requests_per_minute) => {
		const minutes = 20;
		let bucket: RateBucket | null = null;
		let now = 0;
		let count = 0;
		// As a caller does: asks, is told when, asks then.
		while (now < minutes * 60_000) {
			const take = takeToken(bucket, { requests_per_minute, burst: 1 }, now);
			if (take.ok) {
				bucket = take.next;
				count++;
			} else {
				expect(take.retry_at).toBeGreaterThan(now);
				expect(takeToken(bucket, { requests_per_minute, burst: 1 }, take.retry_at - 1).ok).toBe(false);
				now = take.retry_at;
			}
			if (count > 20_000) break;
		}
		expect(count).toBeLessThanOrEqual(minutes * requests_per_minute);
		if (requests_per_minute < 100) expect(count).toBe(minutes * requests_per_minute);
	});

	it("saves no more than the burst up, whatever the clock does", () => {
		const limit = { requests_per_minute: 60, burst: 2 };
		const empty = { parts: 0, at: 1_000 };
		const later = takeToken(empty, limit, 1e12);
		expect(later).toMatchObject({ ok: true, next: { parts: 60_000 } });
		expect(takeToken(empty, limit, 0)).toEqual({ ok: false, retry_at: 2_000 });
		expect(takeToken({ parts: 60_000, at: 1_000 }, limit, 0)).toEqual({ ok: true, next: { parts: 0, at: 1_000 } });
		expect(takeToken({ parts: 9e15, at: 0 }, limit, 0)).toMatchObject({ next: { parts: 60_000 } });
		const huge = { requests_per_minute: Number.MAX_SAFE_INTEGER, burst: Number.MAX_SAFE_INTEGER };
		expect(takeToken(null, huge, 5).ok).toBe(true);
	});
});

it("a pause is never shortened, never longer than a day, and nothing makes none", () => {
	expect(pauseUntil(null, 1_000, 5_000)).toBe(6_000);
	expect(pauseUntil(9_000, 1_000, 5_000)).toBe(9_000);
	expect(pauseUntil(null, 0, Number.POSITIVE_INFINITY)).toBe(86_400_000);
	for (const nothing of [null, 0, -1, Number.NaN]) expect(pauseUntil(null, 1_000, nothing)).toBeNull();
});
