/** A check's answer is a guest's word: read strictly, bounded, and never taken for a pass by accident. */
import { expect, it } from "vitest";
import { canonicalJson, type Json } from "../json.ts";
import { readVerdict } from "./semantic-check.ts";

it("holds for an empty list, and for nothing else", () => {
	expect(readVerdict([])).toEqual({ kind: "held" });
	const others: Json[] = [
		null,
		true,
		false,
		0,
		"",
		"ok",
		{},
		{ length: 0 },
		{ errors: [] },
		[null],
		["no"],
		[[]],
		[{}],
	];
	for (const other of others) expect(readVerdict(other)).toEqual({ kind: "failed", code: "invalid_response" });
	expect(readVerdict([{ field: "/a" }]).kind).toBe("failed");
	expect(readVerdict([{ field: 1, message: "x" }]).kind).toBe("failed");
	const late = [...Array.from({ length: 30 }, () => ({ field: "", message: "x" })), null];
	expect(readVerdict(late).kind).toBe("failed");
});

it("names the field and the message, as a rule that does not hold does", () => {
	const verdict = readVerdict([
		{ field: "/items/0", message: "is sold out", more: 1 },
		{ field: "to", message: "x" },
	]);
	expect(verdict).toEqual({
		kind: "violated",
		errors: [
			{
				error: "is sold out",
				field: "/items/0",
				issue: "semantic_violation",
				expected: "arguments that the tool's own check accepts",
				hint: "is sold out",
			},
			expect.objectContaining({ field: "/to" }),
		],
	});
});

it("bounds what it passes on and takes out what is no text to read", () => {
	const many = Array.from({ length: 100 }, () => ({ field: `/${"f".repeat(9_000)}`, message: "m".repeat(900_000) }));
	const verdict = readVerdict(many);
	if (verdict.kind !== "violated") return expect.fail(verdict.kind);
	expect(verdict.errors).toHaveLength(20);
	expect(JSON.stringify(verdict.errors).length).toBeLessThan(20 * 1_500);
	const odd = readVerdict([{ field: "/a\nb", message: "\u001b[31m\u0000red\r\n\u202egnp\u2028x" }]);
	expect(odd).toMatchObject({ errors: [{ field: "/a b", error: "[31m red gnp x" }] });
	expect(readVerdict([{ field: "", message: "\u0000" }])).toMatchObject({
		errors: [{ error: "the tool's own check does not hold" }],
	});
});

it("never hands on half a character, wherever it is cut", () => {
	for (const at of [498, 499, 500, 997, 998, 999, 1_000]) {
		const message = `${"\u0007".repeat(3)}${"x".repeat(at)}😀😀`.replace("xx", "x\u0007".repeat(40));
		expect(() => canonicalJson(readVerdict([{ field: "", message }]))).not.toThrow();
	}
	expect(() => canonicalJson(readVerdict([{ field: "\ud800", message: "\udfff" }]))).not.toThrow();
});
