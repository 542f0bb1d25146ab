import { describe, expect, it } from "vitest";
import type { Scope } from "../expression.ts";
import type { JsonObject } from "../json.ts";
import { compileTool } from "../registry/compile.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import { type Normalized, normalize } from "./normalize.ts";

const SCOPE: Scope = {
	args: {},
	context: {
		principal: { id: "p", kind: "agent", roles: [] },
		tenant_id: "t",
		session_id: "s",
		run_id: "r",
		now: 0,
		environment: "test",
	},
};
const judgeUrl = (raw: string): { ok: true } | { ok: false; reason: string } =>
	raw.includes("127.0.0.1") ? { ok: false, reason: "loopback" } : { ok: true };
const run = (input_schema: JsonObject, value: JsonObject, more: JsonObject = {}): Normalized =>
	normalize(compileTool(sampleTool({ input_schema: { type: "object", ...input_schema }, ...more })), value, {
		scope: SCOPE,
		judgeUrl,
	});
const args = (input_schema: JsonObject, value: JsonObject): unknown => {
	const result = run(input_schema, value);
	return result.ok ? result.arguments : result.refusal.errors.map((error) => `${error.field} ${error.issue}`);
};
const parse = (text: string): JsonObject => JSON.parse(text) as JsonObject;

describe("normalize", () => {
	it("takes empty arguments of a tool without parameters, and names what another lacks (T01)", () => {
		expect(args({}, {})).toEqual({});
		expect(args({ properties: { q: { type: "string" } }, required: ["q"] }, {})).toEqual(["/q required_field_missing"]);
	});

	it("reads text losslessly where the schema wants exactly another type, and nowhere else (T07)", () => {
		const schema = {
			properties: {
				tags: { type: "array", items: { type: "string" } },
				n: { type: "integer" },
				o: { type: "object" },
				s: { type: "string" },
				b: { type: "boolean" },
				x: { type: "number" },
			},
		};
		const result = run(schema, { tags: '["a"]', n: "5", o: '{"k":1}', s: "[1]", b: "true", x: "2.50" });
		expect(result).toMatchObject({
			ok: true,
			arguments: { tags: ["a"], n: 5, o: { k: 1 }, s: "[1]", b: true, x: 2.5 },
		});
		expect(result.ok && result.notes).toHaveLength(5);
	});

	it.each([
		["integer", "5.0"],
		["integer", "05"],
		["integer", " 5"],
		["integer", "5e1"],
		["integer", "0x5"],
		["integer", ""],
		["integer", "-0"],
		["integer", "2512292042121000001"],
		["integer", "five"],
		["number", "0.12345678901234567890"],
		["number", "1e999"],
		["number", "1e-999"],
		["number", "NaN"],
		["number", "Infinity"],
		["number", "1,5"],
		["boolean", "True"],
		["boolean", "1"],
		["boolean", ""],
		["array", '{"a":1}'],
		["array", "[1"],
		["array", "[2512292042121000001]"],
		["object", "[1]"],
		["object", "null"],
		["null", "null"],
	])("leaves %s %j for the schema to refuse", (type, text) => {
		expect(args({ properties: { v: { type } } }, { v: text })).toEqual(["/v type_mismatch"]);
	});

	it("does not read text where several types fit, or only a branch wants another", () => {
		expect(args({ properties: { v: { type: ["integer", "string"] } } }, { v: "5" })).toEqual({ v: "5" });
		expect(args({ properties: { v: { anyOf: [{ type: "integer" }, { type: "string" }] } } }, { v: "5" })).toEqual({
			v: "5",
		});
		expect(args({ properties: { v: {} } }, { v: "5" })).toEqual({ v: "5" });
	});

	it("keeps depth bounded through text that is read as JSON", () => {
		expect(args({ properties: { v: { type: "array" } } }, { v: "[".repeat(70) + "]".repeat(70) })).toEqual([
			"/v type_mismatch",
		]);
		expect(args({ properties: { v: { type: "array" } } }, { v: "[".repeat(120_000) + "]".repeat(120_000) })).toEqual([
			"/v type_mismatch",
		]);
	});

	it("fills defaults through properties, items, prefixItems, references and allOf, never through branches (decision 26)", () => {
		const schema = {
			$defs: { money: { type: "object", properties: { currency: { type: "string", default: "USD" } } } },
			properties: {
				a: { default: 1 },
				o: { type: "object", default: {}, properties: { k: { default: 2 } } },
				list: { type: "array", items: { $ref: "#/$defs/money" } },
				pair: { type: "array", prefixItems: [{ properties: { p: { default: 3 } } }] },
				both: { allOf: [{ properties: { x: { default: 4 } } }, { properties: { y: { default: 5 } } }] },
				either: {
					anyOf: [{ properties: { z: { default: 6 } } }],
					oneOf: [{ properties: { z: { default: 6 } } }],
					if: {},
					// biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
					then: { properties: { z: { default: 6 } } },
				},
			},
		};
		expect(args(schema, { list: [{}, { currency: "EUR" }], pair: [{}, {}], both: {}, either: {} })).toEqual({
			a: 1,
			o: { k: 2 },
			list: [{ currency: "USD" }, { currency: "EUR" }],
			pair: [{ p: 3 }, {}],
			both: { x: 4, y: 5 },
			either: {},
		});
	});

	it("ends on a default inside its own kind, and shares nothing between calls", () => {
		const schema = {
			$defs: { n: { type: "object", properties: { next: { default: {}, $ref: "#/$defs/n" } } } },
			properties: { head: { $ref: "#/$defs/n" }, list: { type: "array", default: [] } },
		};
		const [one, other] = [args(schema, { head: {} }), args(schema, { head: {} })] as [JsonObject, JsonObject];
		expect(one).toEqual({ head: { next: {} }, list: [] });
		(one.list as string[]).push("x");
		expect(other.list).toEqual([]);
		expect(args(schema, { head: {} })).toEqual({ head: { next: {} }, list: [] });
	});

	it("leaves what the planner sent as it was", () => {
		const sent = { n: "5", o: {} };
		args({ properties: { n: { type: "integer" }, o: { properties: { k: { default: 1 } } } } }, sent);
		expect(sent).toEqual({ n: "5", o: {} });
	});

	it("refuses integers beyond 2^53 on every way in, and asks for text (T09)", () => {
		const result = run({}, parse('{"id":2512292042121000001,"deep":[{"n":-9007199254740992}]}'));
		expect(result).toMatchObject({ ok: false, refusal: { reason: "integer_out_of_range" } });
		expect(!result.ok && result.refusal.errors.map((error) => [error.field, error.hint])).toEqual([
			["/id", "send as string"],
			["/deep/0/n", "send as string"],
		]);
		expect(args({}, { id: "2512292042121000001", n: 2 ** 53 - 1, x: 1e-7 })).toEqual({
			id: "2512292042121000001",
			n: 2 ** 53 - 1,
			x: 1e-7,
		});
	});

	it("refuses half characters and too much depth", () => {
		expect(args({}, { a: "x\uD800" })).toEqual(["/a format_invalid"]);
		expect(args({}, { "\uDC00": 1 })).toEqual([" format_invalid"]);
		let deep: JsonObject = {};
		for (let i = 0; i < 5_000; i += 1) deep = { a: deep };
		expect(args({}, deep)).toEqual([" too_deep"]);
	});

	it("stops at the first layer that fails, with all errors of that layer (N1, V4)", () => {
		const schema = {
			properties: {
				from: { type: "string" },
				to: { type: "string" },
				url: { type: "string", "x-belay-kind": "url" },
				hook: { type: "string", format: "uri" },
			},
			required: ["from", "to"],
		};
		const rules = {
			semantic_rules: [
				{ expr: "args.from <= args.to", field: "from", message: "from comes first" },
				{ expr: "args.to != 'never'", field: "/to", message: "not never" },
			],
		};
		const stage = (value: JsonObject): unknown => {
			const result = run(schema, value, rules);
			return result.ok
				? "ok"
				: [result.refusal.reason, result.refusal.blocked, result.refusal.errors.map((error) => error.field)];
		};
		const bad = "http://127.0.0.1/";
		expect(stage({ from: 1, to: 2, url: bad })).toEqual(["validation_failed", false, ["/from", "/to"]]);
		expect(stage({ from: "z", to: "never", url: bad })).toEqual(["semantic_failed", false, ["/from", "/to"]]);
		expect(stage({ from: "a", to: "b", url: bad, hook: bad })).toEqual(["security_blocked", true, ["/url", "/hook"]]);
		expect(stage({ from: "a", to: "b", url: "https://example.com/" })).toBe("ok");
	});

	it("takes a rule that cannot be evaluated for one that was not kept", () => {
		const result = run(
			{ properties: { n: { type: "string" } }, required: ["n"] },
			{ n: "x" },
			{ semantic_rules: [{ expr: "int(args.n) > 0", field: "n", message: "n is a number" }] },
		);
		expect(result).toMatchObject({ ok: false, refusal: { reason: "semantic_failed" } });
	});

	it("finds marked texts in lists, branches, references and recursion", () => {
		const schema = {
			$defs: {
				n: {
					type: "object",
					properties: {
						url: { anyOf: [{ type: "string", "x-belay-kind": "url" }, { type: "null" }] },
						next: { $ref: "#/$defs/n" },
					},
				},
			},
			properties: {
				list: { type: "array", "x-belay-kind": "url" },
				head: { $ref: "#/$defs/n" },
				map: { type: "object", additionalProperties: { type: "string", format: "uri" } },
			},
		};
		const bad = "http://127.0.0.1/";
		expect(
			args(schema, { list: ["https://example.com/", bad], head: { next: { next: { url: bad } } }, map: { a: bad } }),
		).toEqual(["/list/1 security_violation", "/head/next/next/url security_violation", "/map/a security_violation"]);
	});

	it.each([
		["path", "../etc/passwd", false],
		["path", "a/b.txt", true],
		["email", "a@b.example\nBcc: c@d.example", false],
		["email", "a@b.example", true],
		["domain", "evil.example/@good.example", false],
		["domain", "127.0.0.1", false],
		["domain", "example.com", true],
		["sql", "select 1; drop by later", false],
		["sql", "select 1", true],
		["shell", "ls -la 'a;b'", true],
		["shell", "ls; id", false],
		["code", "a\0b", false],
	])("judges %s %j: %s", (kind, text, ok) => {
		expect(run({ properties: { v: { type: "string", "x-belay-kind": kind } } }, { v: text }).ok).toBe(ok);
	});

	it("echoes no value in any refusal", () => {
		const schema = { properties: { key: { type: "integer" }, url: { type: "string", format: "uri" } } };
		expect(
			JSON.stringify([run(schema, { key: "s3cr3t" }), run(schema, { url: "http://s3cr3t@127.0.0.1/" })]),
		).not.toContain("s3cr3t");
	});

	it("takes prototype names as plain data and pollutes nothing (S05)", () => {
		const schema = parse(
			'{"properties":{"__proto__":{"type":"object","default":{"polluted":1}},"constructor":{"type":"integer","default":7}}}',
		);
		const filled = run(schema, {});
		expect(filled.ok && Object.keys(filled.arguments).sort()).toEqual(["__proto__", "constructor"]);
		const sent = parse(
			'{"__proto__":{"polluted":true},"constructor":"5","toString":"x","hasOwnProperty":1,"deep":{"__proto__":{"polluted":true}}}',
		);
		const result = run({ properties: { constructor: { type: "integer" } } }, sent);
		expect(result.ok && JSON.stringify(result.arguments)).toBe(
			'{"__proto__":{"polluted":true},"constructor":5,"toString":"x","hasOwnProperty":1,"deep":{"__proto__":{"polluted":true}}}',
		);
		expect(({} as JsonObject).polluted).toBeUndefined();
		expect(run({ additionalProperties: false }, sent).ok).toBe(false);
	});
});
