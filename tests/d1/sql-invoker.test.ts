import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { SqlInvoker, type SqlResult } from "#adapters/sql/sql-invoker.ts";
import type { JsonObject } from "#core/json.ts";
import { invocation, quiet, success } from "./datasets.ts";

const datasets = (tenant: string, name: string) =>
	tenant === "tenant_dev" && name === "demo" ? env.DATASET_DEMO : undefined;
const invoker = new SqlInvoker(datasets);
const call = (sql: string, args: JsonObject = {}, more: Parameters<typeof invocation>[2] = {}) =>
	invoker.invoke(invocation({ kind: "sql", dataset: "demo", sql }, args, more), quiet);
const rows = async (sql: string, args: JsonObject = {}, input_schema: JsonObject = { type: "object" }) =>
	(success(await call(sql, args, { input_schema })).result as SqlResult).rows;

beforeAll(async () => {
	await env.DATASET_DEMO.batch([
		env.DATASET_DEMO.prepare(
			"CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant_id TEXT, status TEXT, amount INTEGER, note TEXT)",
		),
		env.DATASET_DEMO.prepare("CREATE TABLE secrets (id INTEGER, val TEXT)"),
		env.DATASET_DEMO.prepare("INSERT INTO secrets VALUES (1, 'TOP-SECRET')"),
		env.DATASET_DEMO.prepare(
			"INSERT INTO orders VALUES (1, 't1', 'open', 10, NULL), (2, 't1', 'paid', 25, 'x'), (3, 't2', 'open', 99, 'y')",
		),
		env.DATASET_DEMO.prepare("CREATE TABLE odd (big INTEGER, bytes BLOB, real_number REAL)"),
		env.DATASET_DEMO.prepare("INSERT INTO odd VALUES (9007199254740993, x'00ff', 0.5)"),
	]);
});

describe("results", () => {
	it("are rows by column, with what there is to say about them", async () => {
		const outcome = success(
			await call("SELECT id, status FROM orders WHERE tenant_id = :tenant ORDER BY id DESC -- newest first", {
				tenant: "t1",
			}),
		);
		expect(outcome).toEqual({
			kind: "success",
			result: {
				columns: ["id", "status"],
				rows: [
					{ id: 2, status: "paid" },
					{ id: 1, status: "open" },
				],
				truncated: false,
				total_available: 2,
			},
			facts: ["2 rows from demo"],
			notes: [],
		});
	});

	it("name their columns when there is no row", async () => {
		const outcome = success(await call("SELECT id, note FROM orders WHERE id = :id", { id: 77 }));
		expect(outcome.result).toEqual({ columns: ["id", "note"], rows: [], truncated: false, total_available: 0 });
		expect(outcome.notes).toEqual(["the query found no rows"]);
	});

	it("are cut at 1000 rows and say how many there are", async () => {
		const numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :last) SELECT i FROM n";
		const cut = success(await call(numbers, { last: 2500 }));
		expect(cut.result).toMatchObject({ truncated: true, total_available: 2500 });
		expect((cut.result as SqlResult).rows).toHaveLength(1000);
		expect(cut.facts).toEqual(["1000 rows from demo"]);
		expect(cut.notes[0]).toContain("1000 of 2500");
		expect(success(await call(numbers, { last: 1000 })).result).toMatchObject({
			truncated: false,
			total_available: 1000,
		});
	});

	it("are cut before they outgrow a result", async () => {
		const wide =
			"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) SELECT i, hex(CAST(printf('%.50000c', 'x') AS BLOB)) AS t FROM n";
		const outcome = success(await call(wide));
		expect(outcome.result).toMatchObject({ truncated: true, total_available: 60 });
		expect(JSON.stringify(outcome.result).length).toBeLessThan(8_388_608 / 3 + 1_000);
	});

	it("keep columns of one name apart, and odd values as plain JSON", async () => {
		expect(await rows("SELECT o.id, p.id FROM orders o JOIN orders p ON p.id = o.id + 1 WHERE o.id = 1")).toEqual([
			{ id: 1, "id:1": 2 },
		]);
		const outcome = success(await call("SELECT big, bytes, real_number, NULL AS absent FROM odd"));
		expect((outcome.result as SqlResult).rows[0]).toMatchObject({ bytes: "00FF", real_number: 0.5, absent: null });
		expect(outcome.notes).toEqual([expect.stringContaining("`big`")]);
		const [row] = await rows('SELECT 1 AS "__proto__", 2 AS "constructor"');
		expect(JSON.stringify(row)).toBe('{"__proto__":1,"constructor":2}');
		expect(({} as JsonObject).polluted).toBeUndefined();
	});
});

describe("parameters", () => {
	it("keep their types", async () => {
		const typed =
			"SELECT typeof(:i) AS i, :i || '' AS said, typeof(:f) AS f, typeof(:s) AS s, :yes AS yes, typeof(:none) AS none, typeof(:absent) AS absent";
		expect(await rows(typed, { i: 5, f: 2.5, s: "5", yes: true, none: null })).toEqual([
			{ i: "integer", said: "5", f: "real", s: "text", yes: 1, none: "null", absent: "null" },
		]);
	});

	it("stay real where the schema says `number`", async () => {
		const schema = { type: "object", properties: { n: { type: "number" } } };
		expect(await rows("SELECT :n / 2 AS half", { n: 7 }, schema)).toEqual([{ half: 3.5 }]);
		expect(await rows("SELECT :n / 2 AS half", { n: 7 })).toEqual([{ half: 3 }]);
	});

	it("pass lists and objects as JSON text", async () => {
		const sql =
			"SELECT id FROM orders WHERE id IN (SELECT value FROM json_each(:ids)) AND :o ->> '$.k' = 'v' ORDER BY id";
		expect(await rows(sql, { ids: [1, 3, 9], o: { k: "v" } })).toEqual([{ id: 1 }, { id: 3 }]);
	});

	it("may repeat, may limit, and are not looked for in strings, names and comments", async () => {
		const sql = "SELECT ':n' AS a, /* :n */ :n AS b, :n AS \":n\" -- :n\nFROM orders LIMIT :n";
		expect(await rows(sql, { n: 1 })).toEqual([{ a: ":n", b: 1, ":n": 1 }]);
	});

	it("are not taken from a prototype", async () => {
		expect(await rows("SELECT :constructor AS c, :toString AS t", {})).toEqual([{ c: null, t: null }]);
	});
});

describe("attacks through arguments", () => {
	const attempts = [
		"x' OR 1=1 --",
		"' OR '1'='1",
		"'; DROP TABLE orders; --",
		"x'; INSERT INTO orders SELECT * FROM secrets; --",
		"' UNION SELECT id, val, val, id, val FROM secrets --",
		"open' AND (SELECT val FROM secrets) LIKE 'T%",
		"*/ SELECT val FROM secrets /*",
		") UNION SELECT val FROM secrets --",
		":status",
		"?1",
		"\\'; DELETE FROM orders; --",
		"\0'; DELETE FROM orders; --",
		"\ud800' OR 1=1 --",
		"${val}",
	];
	it.each(attempts)("%j is a value and nothing else", async (status) => {
		const sql = "SELECT id FROM orders WHERE status = :status OR note = :status";
		expect(await rows(sql, { status })).toEqual([]);
		expect(await rows("SELECT count(*) AS n, (SELECT count(*) FROM secrets) AS s FROM orders")).toEqual([
			{ n: 3, s: 1 },
		]);
	});
});

describe("refusals", () => {
	it.each([
		"SELECT 1; DELETE FROM orders",
		"WITH x AS (SELECT 9 AS id) INSERT INTO orders (id) SELECT id FROM x",
		"DELETE FROM orders",
		"SELECT 1) UNION SELECT (val) FROM (secrets",
	])("run nothing of %j, stored though it is", async (sql) => {
		expect(await call(sql)).toMatchObject({
			kind: "failed",
			code: "security_blocked",
			effect: "none",
			retryable: false,
		});
		expect(await rows("SELECT count(*) AS n FROM orders")).toEqual([{ n: 3 }]);
	});

	it("know no dataset of another tenant, nor one that is not there", async () => {
		for (const outcome of [
			await call("SELECT 1", {}, { tenant_id: "tenant_other" }),
			await invoker.invoke(invocation({ kind: "sql", dataset: "control", sql: "SELECT 1" }, {}), quiet),
		])
			expect(outcome).toMatchObject({ kind: "failed", code: "not_configured", effect: "none" });
	});

	it("say nothing of SQL or values when the database fails", async () => {
		const outcome = await call("SELECT s3cret_column FROM orders WHERE note = :v", { v: "s3cret value" });
		expect(outcome).toMatchObject({ kind: "failed", code: "dataset_error", retryable: false, effect: "none" });
		expect(JSON.stringify(outcome)).not.toMatch(/s3cret|SELECT|no such/);
	});

	it("call a lost connection worth another try", async () => {
		const lost = {
			prepare: () => ({ bind: () => ({ raw: () => Promise.reject(new Error("D1_ERROR: Network connection lost.")) }) }),
		};
		const outcome = await new SqlInvoker(() => lost as unknown as D1Database).invoke(
			invocation({ kind: "sql", dataset: "demo", sql: "SELECT 1" }, {}),
			quiet,
		);
		expect(outcome).toMatchObject({ kind: "failed", code: "dataset_error", retryable: true });
	});
});

describe("time", () => {
	const silent = {
		prepare: () => ({ bind: () => ({ raw: () => new Promise(() => undefined) }) }),
	} as unknown as D1Database;
	const slow = new SqlInvoker(() => silent);
	const asked = (timeout_ms: number) =>
		invocation({ kind: "sql", dataset: "demo", sql: "SELECT 1" }, {}, { timeout_ms });

	it("ends", async () => {
		expect(await slow.invoke(asked(30), quiet)).toEqual({ kind: "timeout", phase: "body", effect: "none" });
	});

	it("is not wasted: rows are shown though the rest could not be counted", async () => {
		const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
		const counting = {
			prepare: (sql: string) =>
				sql.startsWith("SELECT count")
					? { bind: () => ({ first: () => new Promise(() => undefined) }) }
					: env.DATASET_DEMO.prepare(sql),
		} as unknown as D1Database;
		const asking = invocation({ kind: "sql", dataset: "demo", sql: endless }, {}, { timeout_ms: 400 });
		const outcome = success(await new SqlInvoker(() => counting).invoke(asking, quiet));
		expect(outcome.result).toMatchObject({ truncated: true, total_available: null });
		expect((outcome.result as SqlResult).rows).toHaveLength(1000);
	});

	it("ends early for a cancelled call", async () => {
		const cancel = new AbortController();
		const outcome = slow.invoke(asked(60_000), cancel.signal);
		cancel.abort();
		expect(await outcome).toMatchObject({ kind: "failed", code: "interrupted", effect: "none" });
		expect(await slow.invoke(asked(60_000), AbortSignal.abort())).toMatchObject({ code: "interrupted" });
	});
});
