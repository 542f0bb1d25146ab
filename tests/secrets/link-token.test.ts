/** Link tokens: only what was minted here passes, in exactly one spelling. */
import { describe, expect, it } from "vitest";
import { readMasters } from "#adapters/secrets/derive.ts";
import { checkLinkToken, linkKey, mintLinkToken } from "#adapters/secrets/link-token.ts";

const master = (fill: number) => readMasters(Buffer.alloc(32, fill).toString("base64"))[0];
const key = linkKey(master(1));
const part = "0123456789abcdef".repeat(2);
const random = () => crypto.getRandomValues(new Uint8Array(32));

describe("link token", () => {
	it("carries its run's part and 256 random bits", () => {
		const token = mintLinkToken(part, random(), key);
		expect(token).toMatch(/^[0-9a-f]{128}$/);
		expect(token.slice(0, 32)).toBe(part);
		expect(checkLinkToken(token, key)).toEqual({ run_part: part });
		expect(mintLinkToken(part, random(), key)).not.toBe(token);
	});

	it("has one spelling: any other digit, case, length or wrapping is no token", () => {
		const token = mintLinkToken(part, random(), key);
		for (let at = 0; at < token.length; at++) {
			for (const digit of "0123456789abcdef") {
				if (digit === token[at]) continue;
				expect(checkLinkToken(`${token.slice(0, at)}${digit}${token.slice(at + 1)}`, key)).toBeUndefined();
			}
		}
		const others = [
			token.toUpperCase(),
			`${token}0`,
			token.slice(0, -1),
			` ${token}`,
			`${token}\n`,
			"",
			"0".repeat(128),
		];
		for (const other of others) expect(checkLinkToken(other, key)).toBeUndefined();
	});

	it("is not good under another master, nor for another run", () => {
		const token = mintLinkToken(part, random(), key);
		expect(checkLinkToken(token, linkKey(master(2)))).toBeUndefined();
		expect(checkLinkToken(`${"f".repeat(32)}${token.slice(32)}`, key)).toBeUndefined();
	});

	it("is not minted from too little", () => {
		expect(() => mintLinkToken(part, new Uint8Array(16), key)).toThrow(RangeError);
		expect(() => mintLinkToken("run", random(), key)).toThrow(RangeError);
	});
});
