/**
 * The audit of administrative actions (who registered which tool, made which key), and the reading of all of it. What
 * runs do arrives through the ledger instead. Append only: there is no update and no delete here. Callers mask before.
 */
import { and, desc, eq, gte, lt, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import * as z from "zod";
import type { Json } from "#core/json.ts";
import type { AuditRow } from "#core/ports.ts";
import { bulkInsert, unfit } from "./bulk-insert.ts";
import { auditRow } from "./d1-evidence-ledger.ts";
import { D1Unavailable, type DatabaseSource, databaseOf, readD1, writeD1 } from "./d1-unavailable.ts";
import { type Page, type PageRequest, pageOf } from "./page.ts";
import { audit } from "./schema.ts";
import { storedJson } from "./stored-json.ts";

export type AuditEntry = AuditRow & { readonly stream_id: string };
export type AuditFilter = PageRequest & {
	readonly [column in "trace_id" | "principal_id" | "session_id" | "tool_id" | "run_id"]?: string | undefined;
} & {
	/** ISO 8601 UTC; `from` is included, `to` is not. */
	readonly from?: string | undefined;
	readonly to?: string | undefined;
};

/** How often a principal's calls carried a flag: `security_blocked`, `egress`, or the name of one that blocks nothing. */
export type FlagCount = {
	readonly principal_id: string;
	readonly flag: string;
	readonly count: number;
	readonly last_at: string;
};
export type FlagFilter = Pick<AuditFilter, "principal_id" | "from" | "to">;
/** Pairs of principal and flag in one answer, the most frequent first. */
const FLAG_COUNTS_MAX_ROWS = 500;
const flagCounts = z.array(
	z.object({ principal_id: z.string(), flag: z.string(), count: z.number(), last_at: z.string() }),
);

/** Rows of one run may share a millisecond: the stream alone would not tell them apart. */
const POSITION = sql`${audit.stream_id} || ':' || printf('%015d', ${audit.seq})`;

export class D1Audit {
	readonly #database: (tenant_id: string) => D1Database;

	constructor(source: DatabaseSource) {
		this.#database = databaseOf(source);
	}

	/** `entry_id` is the action's own random id: the same entry sent twice is stored once. Throws `D1Unavailable`. */
	async append(tenant_id: string, entry_id: string, row: AuditRow): Promise<void> {
		const stored = auditRow(entry_id, row);
		// An audit row that cannot be stored must not look stored: the action it would attest has to fail.
		if (unfit(audit, stored) !== undefined) throw new D1Unavailable("append to the audit", false);
		const db = this.#database(tenant_id);
		await writeD1("append to the audit", () =>
			db.batch(bulkInsert(db, { table: audit, on_conflict: "keep" }, tenant_id, [stored])),
		);
	}

	/** Newest first. */
	async list(tenant_id: string, filter: AuditFilter): Promise<Page<AuditEntry>> {
		const only = (["trace_id", "principal_id", "session_id", "tool_id", "run_id"] as const).map((name) => {
			const wanted = filter[name];
			return wanted === undefined ? undefined : eq(audit[name], wanted);
		});
		return pageOf(
			filter,
			{ at: audit.at, id: POSITION },
			(row: AuditEntry) => [row.at, `${row.stream_id}:${String(row.seq).padStart(15, "0")}`],
			async (after, limit) => {
				const rows = await readD1("list the audit", () =>
					drizzle(this.#database(tenant_id))
						.select()
						.from(audit)
						.where(
							and(
								eq(audit.tenant_id, tenant_id),
								...only,
								filter.from === undefined ? undefined : gte(audit.at, filter.from),
								filter.to === undefined ? undefined : lt(audit.at, filter.to),
								after,
							),
						)
						.orderBy(desc(audit.at), desc(POSITION))
						.limit(limit),
				);
				return rows.map(asEntry);
			},
		);
	}

	/** Flags of the records between `from` and `to`, counted by principal; where in the arguments they were is left out. */
	async flagCounts(tenant_id: string, { principal_id, from, to }: FlagFilter): Promise<FlagCount[]> {
		// `<flag>:<JSON Pointer>` and `taint:<label>`: what comes after the colon is a call's own
		const flag = sql`CASE instr(value, ':') WHEN 0 THEN value ELSE substr(value, 1, instr(value, ':') - 1) END`;
		const where = and(
			eq(audit.tenant_id, tenant_id),
			sql`${audit.security_flags} <> '[]'`,
			principal_id === undefined ? undefined : eq(audit.principal_id, principal_id),
			from === undefined ? undefined : gte(audit.at, from),
			to === undefined ? undefined : lt(audit.at, to),
		);
		const rows = await readD1("count security flags", () =>
			drizzle(this.#database(tenant_id)).all(
				sql`SELECT ${audit.principal_id} AS principal_id, ${flag} AS flag, count(*) AS count, max(${audit.at}) AS last_at
					FROM ${audit}, json_each(${audit.security_flags})
					WHERE ${where} GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT ${FLAG_COUNTS_MAX_ROWS}`,
			),
		);
		return flagCounts.parse(rows);
	}
}

function asEntry({ tenant_id: _tenant, ...row }: typeof audit.$inferSelect): AuditEntry {
	return {
		...row,
		input_params: (storedJson(z.json(), row.input_params) ?? null) as Json,
		security_flags: storedJson(z.array(z.string()), row.security_flags) ?? [],
	};
}
