import { describe, expect, it } from "vitest";
import { compileExpression, type Scope } from "./expression.ts";
import type { JsonObject } from "./json.ts";

const SCHEMA: JsonObject = {
	type: "object",
	properties: {
		amount: { type: "integer" },
		price: { type: "number" },
		to: { type: "string" },
		note: { type: "string" },
		size: { type: "integer", default: 10 },
		start_date: { type: "string" },
		end_date: { type: "string" },
		tags: { type: "array", items: { type: "string" } },
		rows: {
			type: "array",
			items: {
				type: "object",
				properties: {
					n: { type: "integer" },
					m: { type: "integer" },
					cells: { type: "array", items: { type: "integer" } },
				},
				required: ["n", "cells"],
			},
		},
		address: { type: "object", properties: { zip: { type: "string" }, city: { type: "string" } }, required: ["zip"] },
		either: { type: ["integer", "null"] },
		constructor: { type: "string" },
	},
	required: ["amount", "price", "to", "start_date", "end_date", "tags", "rows"],
};

function scope(args: JsonObject): Scope {
	return {
		args,
		context: {
			principal: { id: "p1", kind: "agent", roles: ["reader"] },
			tenant_id: "t1",
			session_id: "sess_1",
			run_id: "run_1",
			now: "2026-11-30T08:30:00.000Z",
			environment: "production",
		},
	};
}
const ARGS: JsonObject = {
	amount: 5,
	price: 2.5,
	to: "bob",
	start_date: "2026-01-01",
	end_date: "2026-02-01",
	tags: ["a"],
	rows: [{ n: 1, cells: [1] }],
};

function value(source: string, args: JsonObject = ARGS, want: "bool" | "any" = "any"): unknown {
	const compiled = compileExpression(source, SCHEMA, want);
	if (!compiled.ok) throw new Error(compiled.message);
	const result = compiled.expression.evaluate(scope(args));
	return result.ok ? result.value : result.message;
}
const refusal = (source: string, want: "bool" | "any" = "bool"): string => {
	const compiled = compileExpression(source, SCHEMA, want);
	return compiled.ok ? "" : compiled.message;
};

describe("compileExpression", () => {
	it.each([
		["args.amount + 1 > 5", true],
		["args.amount > 100", false],
		["args.price * 2.0 == 5.0", true],
		["args.start_date <= args.end_date", true],
		["args.size <= 100", "unset"],
		["args.tags.exists(t, t == 'a')", true],
		["args.rows.all(r, r.n > 0)", true],
		["args.rows.all(r, r.cells.all(c, c > 0))", true],
		["args.tags.exists(t, t == args.to) || args.rows.filter(r, r.n > 0).all(r, r.n < args.amount)", true],
		["args.tags.all(t, t.matches('^[a-z]$'))", true],
		["'reader' in context.principal.roles && context.principal.kind == 'agent'", true],
		["context.now.getHours('Asia/Shanghai') == 16", true],
		["context.environment == 'production'", true],
		["args.to.matches('^[a-z]+$')", true],
		["!has(args.note) || size(args.note) < 5", true],
		["has(args.note) && args.note == 'x'", false],
		["has(args.address) && args.address.zip == '1'", false],
		["has(args.note) ? args.note == 'x' : true", true],
	])("%s", (source, expected) => {
		expect(value(source, { ...ARGS, size: 10 })).toBe(expected === "unset" ? true : expected);
	});

	it("takes integers of integer-typed fields as int: a double there would make `args.amount + 1` err", () => {
		expect(value("args.amount + 1")).toBe(6n);
		expect(value("args.rows[0].n + 1")).toBe(2n);
		expect(value("args.price + 1.0")).toBe(3.5);
	});

	it.each([
		["args.note == 'x'", "optional"],
		["args.note == 'x' || has(args.note)", "optional"],
		["has(args.note) || args.note == 'x'", "optional"],
		["has(args.address) && args.address.city == 'x'", "optional"],
		["args.address.zip == 'x'", "optional"],
		["args['note'] == 'x'", "optional"],
		["args.rows.all(r, r.m > 0)", "optional"],
		["has(args.rows[0].m) && args.rows[1].m > 0", "invalid argument"],
		["!has(args.note) && args.note == 'x'", "optional"],
	])("refuses an unguarded optional: %s", (source, says) => {
		expect(refusal(source)).toContain(says);
	});

	it.each([
		["args.nope == 1", "No such key"],
		["args.__proto__ == 1", ""],
		["args.constructor == 'x'", ""],
		["args.amount", "true or false"],
		["args.amount == 'x'", "overload"],
		["args.price * 2 > 1.0", "overload"],
		["nope == 1", ""],
		["args.amount ==", ""],
		["", "empty"],
		[`args.to == '${"x".repeat(3000)}'`, "longer"],
		["args.to.matches('^(a+)+$')", "pattern"],
		["args.to.matches(args.start_date)", "literal"],
		["args.tags.join('x') == 'x'", "not available"],
		["cel.bind(x, args.to, x == 'a')", "not available"],
		["args.rows.all(r, args.rows.all(q, q.n == r.n))", "loop"],
		["args.tags.all(args, args == 'x')", ""],
		["args.tags.all(t, t in args.tags)", "inside a loop"],
		["args.tags.all(t, args.to.contains(t))", "inside a loop"],
		["args.tags.all(t, args.tags == args.tags)", "inside a loop"],
		["args.tags.all(t, args.to.matches('a'))", ""],
		["args.tags.map(x, args.tags).size() > 1", "inside a loop"],
		["[args.tags].all(x, x.all(y, y == 'a'))", "a list of the arguments"],
		["args.to.split('').all(x, x == 'a')", "a list of the arguments"],
		["(args.to + args.to).matches('a')", "takes a field"],
	])("refuses %s", (source, says) => {
		const message = refusal(source);
		expect(message).not.toBe("");
		expect(message).toContain(says);
		expect(message).not.toContain("\n");
	});

	it("never throws on arguments of another shape, prototype names included", () => {
		const compiled = compileExpression("args.amount > 1", SCHEMA, "bool");
		if (!compiled.ok) throw new Error(compiled.message);
		const hostile = JSON.parse('{"amount": {"constructor": 1, "__proto__": {"x": 1}}, "constructor": 5}') as JsonObject;
		for (const args of [{}, { amount: null }, { amount: "5" }, { amount: 1.5 }, hostile] as JsonObject[]) {
			expect(compiled.expression.evaluate(scope(args)).ok).toBe(false);
		}
	});

	it("does not run `matches` on texts that would take long: 300,000 characters", () => {
		const compiled = compileExpression("args.to.matches('[a-z]+0')", SCHEMA, "bool");
		if (!compiled.ok) throw new Error(compiled.message);
		const start = performance.now();
		expect(compiled.expression.evaluate(scope({ ...ARGS, to: "a".repeat(300_000) })).ok).toBe(false);
		expect(performance.now() - start).toBeLessThan(100);
	});

	it("reads own properties only", () => {
		const compiled = compileExpression(
			"has(args.o.toString)",
			{ type: "object", properties: { o: { type: "object" } }, required: ["o"] },
			"bool",
		);
		if (!compiled.ok) throw new Error(compiled.message);
		expect(compiled.expression.evaluate(scope({ o: {} }))).toEqual({ ok: true, value: false });
	});

	it("follows references and allOf to types", () => {
		const schema: JsonObject = {
			type: "object",
			$defs: { money: { type: "integer" } },
			allOf: [{ properties: { sum: { $ref: "#/$defs/money" } }, required: ["sum"] }],
		};
		const compiled = compileExpression("args.sum + 1 == 3", schema, "bool");
		if (!compiled.ok) throw new Error(compiled.message);
		expect(compiled.expression.evaluate(scope({ sum: 2 }))).toEqual({ ok: true, value: true });
	});

	it("answers a wrong result type as an error when it was not known before", () => {
		const compiled = compileExpression("args.x", { type: "object", properties: { x: {} }, required: ["x"] }, "bool");
		expect(compiled.ok).toBe(false);
	});

	it("reads where the arguments came from, and errs where nobody worked it out (fail closed)", () => {
		const verdict = (source: string, args_taint?: readonly string[]): unknown => {
			const compiled = compileExpression(source, SCHEMA, "bool");
			if (!compiled.ok) throw new Error(compiled.message);
			const result = compiled.expression.evaluate({ ...scope(ARGS), ...(args_taint && { args_taint }) });
			return result.ok ? result.value : "err";
		};
		expect(verdict("size(args_taint) > 0", [])).toBe(false);
		expect(verdict("size(args_taint) > 0", ["web"])).toBe(true);
		expect(verdict("'web' in args_taint", ["mail", "web"])).toBe(true);
		expect(verdict("args_taint.exists(t, t.startsWith('mcp:'))", ["web"])).toBe(false);
		expect(verdict("size(args_taint) > 0")).toBe("err");
		expect(verdict("args.amount > 0")).toBe(true);
		expect(compileExpression("args_taint == 'web'", SCHEMA, "bool").ok).toBe(false);
		expect(compileExpression("args.tags.all(args_taint, args_taint != '')", SCHEMA, "bool").ok).toBe(false);
	});
});
