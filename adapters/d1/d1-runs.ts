/** The index of runs, for lists. A run itself is read from its object; what is here may be a moment behind. */
import { and, desc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { RunIndexRow } from "#core/ports.ts";
import { type DatabaseSource, databaseOf, readD1 } from "./d1-unavailable.ts";
import { type Page, type PageRequest, pageOf } from "./page.ts";
import { runs } from "./schema.ts";

export type RunFilter = PageRequest & {
	readonly status?: string | undefined;
	readonly principal_id?: string | undefined;
};

export class D1Runs {
	readonly #database: (tenant_id: string) => D1Database;

	constructor(source: DatabaseSource) {
		this.#database = databaseOf(source);
	}

	/** Newest first. `principal_id` restricts to one principal's runs: whoever lacks `runs:read:*` gets their own. */
	async list(tenant_id: string, filter: RunFilter): Promise<Page<RunIndexRow>> {
		return pageOf(
			filter,
			{ at: runs.created_at, id: runs.run_id },
			(row: RunIndexRow) => [row.created_at, row.run_id],
			async (after, limit) => {
				const rows = await readD1("list runs", () =>
					drizzle(this.#database(tenant_id))
						.select()
						.from(runs)
						.where(
							and(
								eq(runs.tenant_id, tenant_id),
								filter.status === undefined ? undefined : eq(runs.status, filter.status),
								filter.principal_id === undefined ? undefined : eq(runs.principal_id, filter.principal_id),
								after,
							),
						)
						.orderBy(desc(runs.created_at), desc(runs.run_id))
						.limit(limit),
				);
				return rows.map(({ tenant_id: _tenant, ...row }) => row);
			},
		);
	}
}
