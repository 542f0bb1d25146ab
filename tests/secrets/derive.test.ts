import { hkdfSync } from "node:crypto";
import { expect, test } from "vitest";
import { deriveKey, hmacSha256, readMasters } from "#adapters/secrets/derive.ts";

const ONE = Buffer.alloc(32, 1).toString("base64");
const TWO = Buffer.alloc(32, 2).toString("base64");
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

test("keys differ by tenant, by purpose and by master, and are the same each time", () => {
	const [one, two] = readMasters(`${ONE}, ${TWO}`);
	const keys = [
		deriveKey(one.bytes, "ten_a", "secrets"),
		deriveKey(one.bytes, "ten_b", "secrets"),
		deriveKey(one.bytes, "ten_a", "links"),
		deriveKey((two ?? one).bytes, "ten_a", "secrets"),
		one.bytes,
	].map(hex);
	expect(new Set(keys).size).toBe(5);
	expect(hex(deriveKey(one.bytes, "ten_a", "secrets"))).toBe(keys[0]);
	expect(keys[0]).toHaveLength(64);
});

test("a tenant id cannot run over into the purpose", () => {
	const [one] = readMasters(ONE);
	const glued = deriveKey(one.bytes, 'ten_a","links', "secrets");
	expect(hex(glued)).not.toBe(hex(deriveKey(one.bytes, "ten_a", "links")));
	expect(hex(glued)).not.toBe(hex(deriveKey(one.bytes, "ten_a", "secrets")));
});

test("HKDF and HMAC are the standard ones (RFC 5869 case 1, RFC 4231 case 2)", () => {
	const okm = hkdfSync(
		"sha256",
		Buffer.alloc(22, 0x0b),
		Buffer.from("000102030405060708090a0b0c", "hex"),
		Buffer.from("f0f1f2f3f4f5f6f7f8f9", "hex"),
		42,
	);
	expect(Buffer.from(okm).toString("hex")).toBe(
		"3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
	);
	expect(hex(hmacSha256(new TextEncoder().encode("Jefe"), "what do ya want for nothing?"))).toBe(
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
	);
});

test("a master that is not 32 bytes of base64 stops the start, and is not repeated in the message", () => {
	for (const bad of ["", "short", Buffer.alloc(31, 7).toString("base64"), `${ONE},`, `${ONE}!`, "x".repeat(44)]) {
		let message = "did not throw";
		try {
			readMasters(bad);
		} catch (error) {
			message = (error as Error).message;
		}
		expect(message).toBe("the master secret must be 32 random bytes in base64");
	}
});

test("each master has a name of its own", () => {
	const [one, two] = readMasters(`${ONE},${TWO}`);
	expect(one.kid).toMatch(/^[0-9a-f]{8}$/);
	expect(two?.kid).not.toBe(one.kid);
});
