import { describe, expect, it } from "vitest";
import { D1_PARAMETERS_MAX } from "../limits.ts";
import { checkFixedSql, compileFixedSql } from "./fixed-sql.ts";

const joined = (sql: string): string => {
	const compiled = compileFixedSql(sql);
	if (!compiled.ok) throw new Error(JSON.stringify(compiled.problems));
	return compiled.statement.parts.map((part) => ("text" in part ? part.text : `<${part.parameter}>`)).join("");
};
const issues = (sql: string): string[] => {
	const compiled = compileFixedSql(sql);
	return compiled.ok ? [] : compiled.problems.map((problem) => problem.issue);
};

describe("what fixed SQL may be", () => {
	it.each([
		["SELECT 1", "SELECT 1"],
		["select a from t where b = :b;", "select a from t where b = <b>"],
		["WITH x AS (SELECT :a AS n) SELECT n FROM x -- the end", "WITH x AS (SELECT <a> AS n) SELECT n FROM x"],
		[
			"SELECT ':a', \":a\", [:a], `:a` /* :a */ FROM t WHERE c=:a -- :b",
			"SELECT ':a', \":a\", [:a], `:a` FROM t WHERE c=<a>",
		],
		["SELECT 'it''s :a' || x'0102'", "SELECT 'it''s :a' || x'0102'"],
		["SELECT replace(name, 'a', 'b') FROM t", "SELECT replace(name, 'a', 'b') FROM t"],
		['SELECT "delete", [insert] FROM t', 'SELECT "delete", [insert] FROM t'],
		["SELECT j->>'$.a' FROM t WHERE n IN (:a, :b, :a)", "SELECT j->>'$.a' FROM t WHERE n IN (<a>, <b>, <a>)"],
		["SELECT 'a;b' AS s ; ", "SELECT 'a;b' AS s"],
	])("%s", (sql, expected) => {
		expect(joined(sql)).toBe(expected);
	});

	it("names each parameter once", () => {
		const compiled = compileFixedSql("SELECT :b, :a, :b");
		expect(compiled.ok && compiled.statement.parameters).toEqual(["b", "a"]);
	});
});

describe("what it may not be", () => {
	it.each([
		"",
		"-- SELECT 1",
		"DELETE FROM t",
		"INSERT INTO t SELECT 1",
		"PRAGMA table_info(t)",
		"ATTACH DATABASE 'x' AS y",
		"EXPLAIN SELECT 1",
		"VALUES (1)",
		"SELECT 1; DROP TABLE t",
		"SELECT 1;;",
		"SELECT 1; -- nothing\n DELETE FROM t",
		"WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
		"WITH x AS (SELECT 1) DELETE FROM t",
		"WITH x AS (SELECT 1) UPDATE t SET a = 1",
		"WITH x AS (SELECT 1) REPLACE INTO t SELECT * FROM x",
		"WITH x AS (SELECT 1) /* ' */ INSERT /* ' */ INTO t SELECT * FROM x",
		"WITH x AS (SELECT 1)\ufeffINSERT INTO t SELECT 1",
		"SELECT 1\0; DELETE FROM t",
		"SELECT 'a'';DELETE FROM t",
		"SELECT 1) UNION SELECT (2",
		"SELECT (1",
		"SELECT 1 /* open",
		'SELECT "open',
		"SELECT [a]]; DELETE FROM t",
		"SELECT * FROM pragma_table_info('t')",
		'SELECT * FROM "sqlite_master"',
		"SELECT * FROM _cf_KV",
		"SELECT readfile('/etc/passwd')",
		"SELECT ?1",
		"SELECT ?",
		"SELECT @a",
		"SELECT $a",
		"SELECT :a::b",
		"SELECT :1",
		"SELECT :a\u00e9",
	])("%j", (sql) => {
		expect(issues(sql)).not.toEqual([]);
	});

	it("more parameters than D1 binds", () => {
		const names = Array.from({ length: D1_PARAMETERS_MAX + 1 }, (_, n) => `:p${n}`);
		expect(issues(`SELECT ${names.join(", ")}`)).toEqual(["too_large"]);
		expect(issues(`SELECT ${names.slice(1).join(", ")}`)).toEqual([]);
	});
});

describe("at registration", () => {
	const schema = { type: "object", properties: { product: { type: "string" } } };

	it("accepts parameters that the schema knows", () => {
		expect(checkFixedSql("SELECT * FROM sales WHERE product = :product", schema)).toEqual([]);
	});

	it("names a parameter that the schema does not know, and no inherited name passes for one", () => {
		expect(checkFixedSql("SELECT :produkt", schema)).toEqual([
			expect.objectContaining({
				field: "/implementation/sql",
				issue: "unknown_name",
				hint: expect.stringContaining(":produkt"),
			}),
		]);
		expect(checkFixedSql("SELECT :constructor", schema)).toHaveLength(1);
		expect(checkFixedSql("SELECT :toString", null)).toHaveLength(1);
	});

	it("says that writing is a violation of security", () => {
		expect(checkFixedSql("WITH x AS (SELECT 1) DELETE FROM sales", schema)[0]?.issue).toBe("security_violation");
	});
});
