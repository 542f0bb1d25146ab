/** SHA-256 in workerd, against WebCrypto: short texts, ones around the scratch buffer's size, characters of every width, half ones. */
import { describe, expect, it } from "vitest";
import { sha256 } from "#adapters/digest.ts";

async function expected(text: string): Promise<string> {
	const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
	return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

describe("sha256", () => {
	it("is the text's in UTF-8, however long it is and wherever the scratch buffer ends", async () => {
		const texts = ["", "a", "é", "漢字", "😀", "\ud800", "a\udc00b", "x\ud83d"];
		for (const one of ["a", "é", "漢", "😀", "\ud800"])
			for (const length of [16_380, 16_383, 16_384, 16_385, 40_000])
				texts.push("b".repeat(length % 7) + one.repeat(length));
		for (const tail of ["é", "漢", "😀", "\ud83d"])
			for (const length of [16_381, 16_382, 16_383, 16_384]) texts.push("a".repeat(length) + tail);
		for (const text of texts) expect(sha256(text), JSON.stringify(text.slice(-12))).toBe(await expected(text));
	});

	it("keeps nothing of a longer text that was hashed before", async () => {
		sha256("secret".repeat(500));
		expect(sha256("s")).toBe(await expected("s"));
	});
});
