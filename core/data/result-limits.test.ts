/** I10: what is kept inline is unchanged; what is not is whole in its text and honest in its preview. */
import { describe, expect, it } from "vitest";
import type { Json } from "../json.ts";
import { ARTIFACT_MIN_BYTES, ARTIFACT_PREVIEW_MAX_BYTES } from "../limits.ts";
import { limitResult } from "./result-limits.ts";
import { utf8Bytes } from "./well-formed.ts";

const large = (result: Json) => {
	const limited = limitResult(result);
	if ("inline" in limited) throw new Error("kept inline");
	return limited;
};

describe("limitResult", () => {
	it("the limit is in bytes of the JSON, not in characters, and the limit itself is inline", () => {
		const fits = "x".repeat(ARTIFACT_MIN_BYTES - 2);
		expect(limitResult(fits)).toEqual({ inline: fits });
		expect(large(`${fits}x`).bytes).toBe(ARTIFACT_MIN_BYTES + 1);
		// two bytes each in JSON, one in the text
		expect(large("\n".repeat(ARTIFACT_MIN_BYTES / 2)).bytes).toBe(ARTIFACT_MIN_BYTES + 2);
		// a third of the characters
		const wide = "\u4e16".repeat(Math.floor((ARTIFACT_MIN_BYTES - 2) / 3));
		expect(limitResult(wide)).toEqual({ inline: wide });
		expect(large(`${wide}\u4e16`).bytes).toBeGreaterThan(ARTIFACT_MIN_BYTES);
	});

	it.each<Json>([null, 0, "", [], {}, "short", { a: [1, 2, 3] }])("%j stays as it is", (result) => {
		expect(limitResult(result)).toEqual({ inline: result });
	});

	it("the text is the whole result, and well-formed even where the result is not", () => {
		const rows = Array.from({ length: 20_000 }, (_, n) => ({ n, name: `row ${n} \u{1F600}`, lone: "\ud83d" }));
		const { artifact_text, bytes } = large({ rows });
		expect(JSON.parse(artifact_text)).toEqual({ rows });
		expect(artifact_text.isWellFormed()).toBe(true);
		expect(bytes).toBe(utf8Bytes(artifact_text));
	});

	it("the preview keeps the shape, fits, and splits no character", () => {
		const text = "\u{1F468}\u200D\u{1F469}\u200D\u{1F467}".repeat(40_000);
		const { preview } = large({ total: 3, text, rows: Array.from({ length: 30_000 }, (_, n) => n) });
		const shown = preview as { total: number; text: string; rows: number[] };
		expect(utf8Bytes(JSON.stringify(preview))).toBeLessThanOrEqual(ARTIFACT_PREVIEW_MAX_BYTES);
		expect(shown.total).toBe(3);
		expect(shown.text.length).toBeGreaterThan(1_000);
		expect(shown.text.isWellFormed()).toBe(true);
		expect(text.startsWith(shown.text)).toBe(true);
		expect(shown.rows.slice(0, 3)).toEqual([0, 1, 2]);
	});

	it("limits can be narrowed", () => {
		const limited = limitResult("0123456789", { artifact_min_bytes: 8, preview_max_bytes: 6 });
		expect(limited).toEqual({ artifact_text: '"0123456789"', bytes: 12, preview: "0123" });
	});
});
