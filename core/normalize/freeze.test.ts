import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../json.ts";
import { type FreezeInput, freeze } from "./freeze.ts";

const digest = (text: string): string => createHash("sha256").update(text).digest("hex");
const BASE: FreezeInput = {
	tenant_salt: "salt",
	descriptor: { tool_id: "pay", version: "1.0.0" },
	definition_hash: "d1",
	arguments: {},
	context: { cwd: null, env: null, timeout_ms: 60_000, target: null, egress: null, credential_version: null },
};
const hash = (args: JsonObject, more: Partial<FreezeInput> = {}): string =>
	freeze({ ...BASE, arguments: args, ...more }, digest).input_hash;
const parse = (text: string): JsonObject => JSON.parse(text) as JsonObject;

describe("freeze (A22, N2)", () => {
	it.each([
		["key order", '{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}'],
		["number spelling", '{"a":1}', '{"a":1.0}'],
		["exponents", '{"a":1}', '{"a":1e0}'],
		["minus zero", '{"a":0}', '{"a":-0}'],
		["escapes", '{"a":"é"}', '{"a":"\\u00e9"}'],
	])("%s does not matter", (_, one, other) => {
		expect(hash(parse(one))).toBe(hash(parse(other)));
	});
	it.each([
		["array order", '{"a":[1,2]}', '{"a":[2,1]}'],
		["one deep leaf", '{"a":{"b":[{"c":1}]}}', '{"a":{"b":[{"c":2}]}}'],
		["an unknown key", '{"a":1}', '{"a":1,"z":null}'],
		["NFC and NFD", '{"a":"\\u00e9"}', '{"a":"e\\u0301"}'],
		["empty and absent", '{"a":{}}', "{}"],
		["text and number", '{"a":"1"}', '{"a":1}'],
		["case", '{"a":"X"}', '{"a":"x"}'],
		["a trailing space", '{"a":"x"}', '{"a":"x "}'],
		["a prototype name", '{"__proto__":{"a":1}}', "{}"],
		["another value under it", '{"__proto__":{"a":1}}', '{"__proto__":{"a":2}}'],
		["constructor", '{"constructor":1}', "{}"],
	])("%s matters", (_, one, other) => {
		expect(hash(parse(one))).not.toBe(hash(parse(other)));
	});
	it("covers tool, version, definition, tenant and every part of the context", () => {
		const { context } = BASE;
		const all = [
			hash({}),
			hash({}, { tenant_salt: "other" }),
			hash({}, { descriptor: { tool_id: "pay2", version: "1.0.0" } }),
			hash({}, { descriptor: { tool_id: "pay", version: "1.0.1" } }),
			hash({}, { definition_hash: "d2" }),
			hash({}, { context: { ...context, cwd: "/w" } }),
			hash({}, { context: { ...context, env: { A: "1" } } }),
			hash({}, { context: { ...context, timeout_ms: 1 } }),
			hash({}, { context: { ...context, target: "bob" } }),
			hash({}, { context: { ...context, egress: ["example.com"] } }),
			hash({}, { context: { ...context, credential_version: 1 } }),
		];
		expect(new Set(all).size).toBe(all.length);
	});
	it("does not let arguments speak for the rest of the preimage", () => {
		expect(hash({ definition_hash: "d2", context: { cwd: "/w" } })).not.toBe(hash({}, { definition_hash: "d2" }));
	});
	it("is pinned: this hash changes only with the preimage version", () => {
		expect(hash({ to: "bob", amount: 5 })).toMatchInlineSnapshot(
			`"eff9d14cca2f59eaa9cb55e5b224ee353868c4224f08ccdac39da4c9caabdf49"`,
		);
	});
});
