/**
 * The index of approvals, for lists. It decides nothing and is never asked whether something was approved: that is the
 * run's object alone.
 */
import { and, desc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { ApprovalIndexRow } from "#core/ports.ts";
import { type DatabaseSource, databaseOf, readD1 } from "./d1-unavailable.ts";
import { isOneOf, type Page, type PageRequest, pageOf } from "./page.ts";
import { approvals } from "./schema.ts";

export type ApprovalFilter = PageRequest & {
	readonly status?: string | undefined;
	readonly run_id?: string | undefined;
	/** Only these domains; an empty list means none, undefined means all. */
	readonly domains?: readonly string[] | undefined;
	readonly requested_by?: string | undefined;
};

export class D1Approvals {
	readonly #database: (tenant_id: string) => D1Database;

	constructor(source: DatabaseSource) {
		this.#database = databaseOf(source);
	}

	/** Newest first. */
	async list(tenant_id: string, filter: ApprovalFilter): Promise<Page<ApprovalIndexRow>> {
		return pageOf(
			filter,
			{ at: approvals.created_at, id: approvals.approval_id },
			(row: ApprovalIndexRow) => [row.created_at, row.approval_id],
			async (after, limit) => {
				const rows = await readD1("list approvals", () =>
					drizzle(this.#database(tenant_id))
						.select()
						.from(approvals)
						.where(
							and(
								eq(approvals.tenant_id, tenant_id),
								filter.status === undefined ? undefined : eq(approvals.status, filter.status),
								filter.run_id === undefined ? undefined : eq(approvals.run_id, filter.run_id),
								filter.domains === undefined ? undefined : isOneOf(approvals.domain, filter.domains),
								filter.requested_by === undefined ? undefined : eq(approvals.requested_by, filter.requested_by),
								after,
							),
						)
						.orderBy(desc(approvals.created_at), desc(approvals.approval_id))
						.limit(limit),
				);
				return rows.map(({ tenant_id: _tenant, ...row }) => row);
			},
		);
	}
}
