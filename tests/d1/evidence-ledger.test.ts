import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { D1Approvals } from "#adapters/d1/d1-approvals.ts";
import { D1Audit } from "#adapters/d1/d1-audit.ts";
import { D1EvidenceLedger } from "#adapters/d1/d1-evidence-ledger.ts";
import { D1Runs } from "#adapters/d1/d1-runs.ts";
import { D1Unavailable } from "#adapters/d1/d1-unavailable.ts";
import type { ApprovalIndexRow, AuditRow, EvidenceIndexRow, LedgerBatch, RunIndexRow } from "#core/ports.ts";
import { MemoryLedger } from "./memory-ledger.ts";
import { approval, at, auditRow, batch, evidence, run } from "./rows.ts";

type Subject = {
	append(batch: LedgerBatch): Promise<void>;
	write(batch: LedgerBatch): Promise<readonly { kind: string; row_key: string; reason: string }[]>;
	runs(tenant: string): Promise<readonly RunIndexRow[]>;
	approvals(tenant: string): Promise<readonly ApprovalIndexRow[]>;
	evidence(tenant: string): Promise<readonly EvidenceIndexRow[]>;
	audit(tenant: string): Promise<readonly AuditRow[]>;
};

const real = (): Subject => {
	const ledger = new D1EvidenceLedger(env.DB);
	const data = <T>(page: { ok: true; data: readonly T[] } | { ok: false }) => (page.ok ? page.data : []);
	return {
		append: (one) => ledger.append(one),
		write: (one) => ledger.write(one),
		runs: async (tenant) => data(await new D1Runs(env.DB).list(tenant, { limit: 100 })),
		approvals: async (tenant) => data(await new D1Approvals(env.DB).list(tenant, { limit: 100 })),
		evidence: async (tenant) => {
			const sql = "SELECT * FROM evidence WHERE tenant_id = ?1 ORDER BY seq";
			const rows = (await env.DB.prepare(sql).bind(tenant).all<EvidenceIndexRow & { tenant_id: string }>()).results;
			return rows.map(({ tenant_id: _tenant, ...row }) => row);
		},
		audit: async (tenant) =>
			data(await new D1Audit(env.DB).list(tenant, { limit: 100 }))
				.map(({ stream_id: _stream, ...row }) => row)
				.reverse(),
	};
};

describe.each([
	["memory", () => new MemoryLedger() as Subject],
	["D1", real],
])("the ledger contract: %s", (_name, make) => {
	it("keeps what it is given", async () => {
		const ledger = make();
		const given = batch("t_keep", { approvals: [approval()], evidence: [evidence()], audit: [auditRow()] });
		await ledger.append(given);
		expect(await ledger.runs("t_keep")).toEqual([given.run]);
		expect(await ledger.approvals("t_keep")).toEqual(given.approvals);
		expect(await ledger.evidence("t_keep")).toEqual(given.evidence);
		expect(await ledger.audit("t_keep")).toEqual(given.audit);
	});

	it("adds nothing when a batch comes again, and the first evidence of a seq stands", async () => {
		const ledger = make();
		const given = batch("t_twice", { evidence: [evidence()], audit: [auditRow()] });
		await ledger.append(given);
		await ledger.append(given);
		await ledger.append({ ...given, evidence: [evidence({ outcome: "denied", hash: "f".repeat(64) })] });
		expect(await ledger.evidence("t_twice")).toEqual(given.evidence);
		expect(await ledger.audit("t_twice")).toHaveLength(1);
	});

	it("lets a run and an approval move forward only", async () => {
		const ledger = make();
		const state = (seq: number, status: string) =>
			batch("t_seq", { run: run({ seq, status }), approvals: [approval({ seq, status })] });
		await ledger.append(state(5, "completed"));
		await ledger.append(state(3, "executing"));
		await ledger.append(state(5, "failed"));
		expect((await ledger.runs("t_seq"))[0]).toMatchObject({ seq: 5, status: "completed" });
		expect((await ledger.approvals("t_seq"))[0]).toMatchObject({ seq: 5, status: "completed" });
		await ledger.append(state(6, "cancelled"));
		expect((await ledger.runs("t_seq"))[0]).toMatchObject({ seq: 6, status: "cancelled" });
	});

	it("takes the latest of two states of one approval in one batch", async () => {
		const ledger = make();
		await ledger.append(
			batch("t_both", { approvals: [approval({ seq: 2, status: "approved" }), approval({ seq: 1 })] }),
		);
		expect(await ledger.approvals("t_both")).toEqual([approval({ seq: 2, status: "approved" })]);
	});

	it("takes 500 rows of evidence and of audit at once", async () => {
		const ledger = make();
		const list = Array.from({ length: 500 }, (_, n) => n + 1);
		await ledger.append(
			batch("t_many", { evidence: list.map((seq) => evidence({ seq })), audit: list.map((seq) => auditRow({ seq })) }),
		);
		expect((await ledger.evidence("t_many")).map((row) => row.seq)).toEqual(list);
	});

	it("keeps tenants apart, even where ids are the same", async () => {
		const ledger = make();
		await ledger.append(batch("t_one", { evidence: [evidence({ outcome: "success" })] }));
		await ledger.append(batch("t_two", { evidence: [evidence({ outcome: "failed" })] }));
		expect((await ledger.evidence("t_one")).map((row) => row.outcome)).toEqual(["success"]);
		expect((await ledger.evidence("t_two")).map((row) => row.outcome)).toEqual(["failed"]);
	});

	it("parks a row that is too large or broken, and takes its neighbours", async () => {
		const ledger = make();
		const parked = await ledger.write(
			batch("t_poison", {
				evidence: [evidence({ seq: 1 }), evidence({ seq: 2, tool_id: "x".repeat(70_000) }), evidence({ seq: 3 })],
				audit: [auditRow({ seq: 1.5 }), auditRow({ seq: 2 })],
			}),
		);
		expect(parked).toEqual([
			expect.objectContaining({ kind: "evidence", row_key: "2", reason: "row_too_large" }),
			expect.objectContaining({ kind: "audit", row_key: "1.5", reason: "bad_member:seq" }),
		]);
		expect((await ledger.evidence("t_poison")).map((row) => row.seq)).toEqual([1, 3]);
		expect((await ledger.audit("t_poison")).map((row) => row.seq)).toEqual([2]);
	});

	it("keeps hostile text as text", async () => {
		const ledger = make();
		const goal = `'); DROP TABLE runs; -- "\u202e $.goal \u0001 ${"\u{1f9ff}"}`;
		await ledger.append(batch("t_text", { run: run({ goal }) }));
		expect((await ledger.runs("t_text"))[0]?.goal).toBe(goal);
	});
});

/** D1 as it fails in the field (C13); `throws` decides per call whether the statements reach the database. */
function failing(how: (call: number) => "before" | "after" | "stall" | "works"): D1Database {
	let calls = 0;
	return {
		prepare: (sql: string) => env.DB.prepare(sql),
		batch: async (statements: D1PreparedStatement[]) => {
			const way = how(++calls);
			if (way === "stall") return new Promise(() => undefined);
			if (way === "before") throw new Error("D1_ERROR: Network connection lost.");
			const results = await env.DB.batch(statements);
			if (way === "after") throw new Error("D1_ERROR: Network connection lost.");
			return results;
		},
	} as unknown as D1Database;
}
const limits = { read_try_ms: 100, read_tries: 2, write_ms: 100 };
const count = (tenant: string) =>
	env.DB.prepare("SELECT count(*) AS n FROM evidence WHERE tenant_id = ?1").bind(tenant).first<number>("n");

describe("a ledger on a failing D1", () => {
	it("parks what only the database refuses, and nothing else", async () => {
		await env.DB.prepare(
			"CREATE TRIGGER poison BEFORE INSERT ON evidence WHEN new.tool_id = 'poison' BEGIN SELECT raise(ABORT, 'no'); END",
		).run();
		const rows = Array.from({ length: 60 }, (_, n) => evidence({ seq: n, tool_id: n === 41 ? "poison" : "pay" }));
		const ledger = new D1EvidenceLedger(env.DB);
		const parked = await ledger.write(batch("t_trigger", { evidence: rows }));
		await env.DB.prepare("DROP TRIGGER poison").run();
		expect(parked).toEqual([
			expect.objectContaining({ kind: "evidence", row_key: "41", reason: "refused_by_database" }),
		]);
		expect(await count("t_trigger")).toBe(59);
		const recorded = await env.DB.prepare(
			"SELECT kind, row_key, reason FROM parked_rows WHERE tenant_id = 't_trigger'",
		).all();
		expect(recorded.results).toEqual([{ kind: "evidence", row_key: "41", reason: "refused_by_database" }]);
	});

	it("parks nothing because of a lost connection: the rows arrive", async () => {
		const ledger = new D1EvidenceLedger(
			failing((call) => (call === 1 ? "before" : "works")),
			limits,
		);
		expect(await ledger.write(batch("t_before", { evidence: [evidence()] }))).toEqual([]);
		expect(await count("t_before")).toBe(1);
	});

	it("adds nothing when the answer was lost after the commit", async () => {
		const ledger = new D1EvidenceLedger(
			failing((call) => (call === 1 ? "after" : "works")),
			limits,
		);
		expect(await ledger.write(batch("t_after", { evidence: [evidence()] }))).toEqual([]);
		expect(await count("t_after")).toBe(1);
	});

	it("gives up on a stall in time, without a word of SQL or data", async () => {
		const ledger = new D1EvidenceLedger(
			failing(() => "stall"),
			limits,
		);
		const error = await ledger
			.append(batch("t_stall", { run: run({ goal: "s3cret goal" }) }))
			.catch((thrown) => thrown);
		expect(error).toBeInstanceOf(D1Unavailable);
		expect(error).toMatchObject({ timed_out: true });
		expect(`${error.message} ${error.stack} ${JSON.stringify(error)}`).not.toMatch(/s3cret|INSERT/);
		expect(error.cause).toBeUndefined();
	});
});

describe("lists", () => {
	it("page through runs that share a millisecond, none twice and none left out", async () => {
		const ledger = new D1EvidenceLedger(env.DB);
		const ids = Array.from({ length: 25 }, (_, n) => `run_${String(n).padStart(32, "0")}`);
		for (const [n, run_id] of ids.entries())
			await ledger.append(
				batch("t_page", {
					run: run({ run_id, created_at: at(Math.floor(n / 5)), status: n % 2 ? "failed" : "completed" }),
				}),
			);
		const runs = new D1Runs(env.DB);
		const seen: string[] = [];
		let cursor: string | undefined;
		do {
			const page = await runs.list("t_page", { limit: 7, cursor });
			if (!page.ok) throw new Error(page.reason);
			seen.push(...page.data.map((row) => row.run_id));
			cursor = page.next_cursor ?? undefined;
		} while (cursor !== undefined);
		expect(seen).toEqual([...ids].reverse());
		const failed = await runs.list("t_page", { status: "failed", limit: 100 });
		expect(failed.ok && failed.data.length).toBe(12);
		const others = await runs.list("t_page", { principal_id: "somebody else" });
		expect(others).toEqual({ ok: true, data: [], next_cursor: null });
	});

	it.each(["", "%%%", "bnVsbA", "eyJhIjoxfQ", "WzEsMl0", "x".repeat(5000), "' OR 1=1 --"])(
		"refuse the cursor %j as a value",
		async (cursor) => {
			expect(await new D1Runs(env.DB).list("t_page", { cursor })).toEqual({ ok: false, reason: "cursor_malformed" });
			expect(await new D1Approvals(env.DB).list("t_page", { cursor })).toEqual({
				ok: false,
				reason: "cursor_malformed",
			});
		},
	);

	it("never leave the tenant, whatever the cursor says", async () => {
		const page = await new D1Runs(env.DB).list("t_page", { limit: 1 });
		const cursor = page.ok ? (page.next_cursor ?? undefined) : undefined;
		expect(cursor).toBeDefined();
		expect(await new D1Runs(env.DB).list("t_other", { cursor })).toEqual({ ok: true, data: [], next_cursor: null });
	});

	it("show approvals of the given domains only: 300 of them, one, or none", async () => {
		const list = ["finance", "mail", "hr"].map((domain, n) =>
			approval({ approval_id: `apr_${n}`, domain, created_at: at(n) }),
		);
		await new D1EvidenceLedger(env.DB).append(batch("t_domain", { approvals: list }));
		const approvals = new D1Approvals(env.DB);
		const ids = async (filter: Parameters<typeof approvals.list>[1]) => {
			const page = await approvals.list("t_domain", filter);
			return page.ok ? page.data.map((row) => row.domain) : page.reason;
		};
		expect(await ids({})).toEqual(["hr", "mail", "finance"]);
		expect(await ids({ domains: ["mail"] })).toEqual(["mail"]);
		expect(await ids({ domains: [] })).toEqual([]);
		expect(await ids({ domains: [...Array.from({ length: 300 }, (_, n) => `d${n}`), "finance"] })).toEqual(["finance"]);
		expect(await ids({ requested_by: "usr_2" })).toEqual([]);
		expect(await ids({ status: "denied" })).toEqual([]);
		expect(await ids({ run_id: run().run_id, status: "pending", domains: ["hr"] })).toEqual(["hr"]);
	});
});
