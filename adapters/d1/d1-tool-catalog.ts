/**
 * The registry at rest: published tool versions of a tenant. A version is written once and never changed; whether a new
 * one is allowed (same content, conflict, incompatible change) is core's judgement, made from what this returns. Called
 * by the Worker's tool routes and, through `ToolCatalog`, by runs before a turn.
 */
import { and, asc, desc, eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { ToolCatalog } from "#core/ports.ts";
import { type ToolDescriptor, type ToolVersion, toolDescriptor } from "#core/registry/descriptor.ts";
import { jsonChunks } from "./bulk-insert.ts";
import { readD1, writeD1 } from "./d1-unavailable.ts";
import { toolVersions } from "./schema.ts";
import { storedJson } from "./stored-json.ts";

export type NewToolVersion = Pick<ToolVersion, "definition_hash" | "descriptor" | "created_at">;
export type Published = {
	/** `same`: this version was there with the same definition (and is online again); `conflict`: with another one. */
	readonly outcome: "created" | "same" | "conflict";
	readonly stored: ToolVersion;
};

export class D1ToolCatalog implements ToolCatalog {
	readonly #db: D1Database;

	constructor(db: D1Database) {
		this.#db = db;
	}

	/**
	 * The newest online version of every tool, by tool_id: one indexed query. A row that no longer parses is left out
	 * (its tool becomes unknown) rather than taking every other tool with it.
	 */
	async listOnline(tenant_id: string): Promise<ToolVersion[]> {
		const rows = await readD1("list tools", () =>
			drizzle(this.#db)
				.select()
				.from(toolVersions)
				// A literal, not a parameter: SQLite uses the partial index only where it can see the 1.
				.where(and(eq(toolVersions.tenant_id, tenant_id), sql`${toolVersions.is_latest} = 1`))
				.orderBy(asc(toolVersions.tool_id)),
		);
		return rows.flatMap((row) => asVersion(row) ?? []);
	}

	/** One version, or without `version` the newest online one. Undefined when there is none. */
	async get(tenant_id: string, tool_id: string, version?: string): Promise<ToolVersion | undefined> {
		const chosen = version === undefined ? sql`${toolVersions.is_latest} = 1` : eq(toolVersions.version, version);
		const [row] = await readD1("read a tool", () =>
			drizzle(this.#db)
				.select()
				.from(toolVersions)
				.where(and(eq(toolVersions.tenant_id, tenant_id), eq(toolVersions.tool_id, tool_id), chosen)),
		);
		return row && asVersion(row);
	}

	/** Every version of a tool, newest first, retired ones included. */
	async versions(tenant_id: string, tool_id: string): Promise<ToolVersion[]> {
		const rows = await readD1("list versions", () =>
			drizzle(this.#db)
				.select()
				.from(toolVersions)
				.where(and(eq(toolVersions.tenant_id, tenant_id), eq(toolVersions.tool_id, tool_id)))
				.orderBy(desc(toolVersions.version_sort)),
		);
		return rows.flatMap((row) => asVersion(row) ?? []);
	}

	/** Every tool of the tenant in its highest version, online or not, by tool_id. */
	async listAll(tenant_id: string): Promise<ToolVersion[]> {
		const rows = await readD1("list tools", () =>
			drizzle(this.#db)
				.select()
				.from(toolVersions)
				.where(
					and(
						eq(toolVersions.tenant_id, tenant_id),
						sql`${toolVersions.version_sort} = (SELECT max(other.version_sort) FROM tool_versions AS other
							WHERE other.tenant_id = ${toolVersions.tenant_id} AND other.tool_id = ${toolVersions.tool_id})`,
					),
				)
				.orderBy(asc(toolVersions.tool_id)),
		);
		return rows.flatMap((row) => asVersion(row) ?? []);
	}

	/**
	 * Publishes versions, all or none in one transaction, each if its (tool_id, version) is free. The primary key decides
	 * between two that arrive together: whoever comes second gets the first one's definition. Outcomes in the given order.
	 */
	async publish(tenant_id: string, tools: readonly NewToolVersion[]): Promise<Published[]> {
		if (tools.length === 0) return [];
		const statements = [...insertVersions(tenant_id, tools, "revive"), ...readVersions(tenant_id, tools)];
		const results = await writeD1("publish tools", () =>
			this.#db.batch<typeof toolVersions.$inferSelect>(
				statements.map((one) => this.#db.prepare(one.sql).bind(...one.params)),
			),
		);
		const rowsOf = (wanted: (statement: SqlStatement) => boolean) =>
			new Map<string, typeof toolVersions.$inferSelect>(
				statements.flatMap((statement, n) =>
					wanted(statement)
						? (results[n]?.results ?? []).map((row) => [`${row.tool_id}@${row.version}`, row] as const)
						: [],
				),
			);
		const created = rowsOf((statement) => statement.sql === INSERT);
		const stored = rowsOf((statement) => statement.sql === SELECT);
		return tools.map((tool) => {
			const id = `${tool.descriptor.tool_id}@${tool.descriptor.version}`;
			const row = stored.get(id);
			const version = (row && asVersion(row)) ?? { ...tool, status: "online", offline_since: null };
			if (created.has(id)) return { outcome: "created", stored: version };
			return { outcome: row?.definition_hash === tool.definition_hash ? "same" : "conflict", stored: version };
		});
	}

	/** Takes every version of a tool offline, for good until published again. False when none was online. */
	async retire(tenant_id: string, tool_id: string, now: string): Promise<boolean> {
		const done = await writeD1("retire a tool", () =>
			this.#db
				.prepare(
					"UPDATE tool_versions SET status = 'offline', is_latest = 0, offline_since = ?3 WHERE tenant_id = ?1 AND tool_id = ?2 AND status = 'online'",
				)
				.bind(tenant_id, tool_id, now)
				.run(),
		);
		return done.meta.changes > 0;
	}
}

/** For any D1 client; parameters are `?1`, `?2` … */
export type SqlStatement = { readonly sql: string; readonly params: readonly (string | number | null)[] };

// ?1 is the tenant, ?2 the versions as one JSON text, however many (bulk-insert.ts says why).
const MEMBERS = ["tool_id", "version", "version_sort", "definition_hash", "descriptor", "created_at"];
const EACH = (members: readonly string[]) =>
	`SELECT ${members.map((name) => `value->>'$.${name}'`).join(", ")} FROM json_each(?2)`;
const MINE = `tenant_id = ?1 AND tool_id IN (${EACH(["tool_id"])})`;
const NEWEST = `(SELECT version FROM tool_versions AS other WHERE other.tenant_id = tool_versions.tenant_id
	AND other.tool_id = tool_versions.tool_id AND other.status = 'online' ORDER BY other.version_sort DESC LIMIT 1)`;
const INSERT = `INSERT INTO tool_versions (${MEMBERS.join(", ")}, tenant_id, status, is_latest)
	SELECT *, ?1, 'online', 0 FROM (${EACH(MEMBERS)}) WHERE true ON CONFLICT (tenant_id, tool_id, version) DO NOTHING RETURNING tool_id, version`;
const REVIVE = `UPDATE tool_versions SET status = 'online', offline_since = NULL WHERE tenant_id = ?1 AND status = 'offline'
	AND (tool_id, version, definition_hash) IN (${EACH(["tool_id", "version", "definition_hash"])})`;
const UNMARK = `UPDATE tool_versions SET is_latest = 0 WHERE ${MINE} AND is_latest = 1 AND version <> ${NEWEST}`;
const MARK = `UPDATE tool_versions SET is_latest = 1 WHERE ${MINE} AND is_latest = 0 AND version = ${NEWEST}`;
const SELECT = `SELECT * FROM tool_versions WHERE tenant_id = ?1 AND (tool_id, version) IN (${EACH(["tool_id", "version"])})`;

/**
 * Insert if absent, bring the same definition back online (`revive`) or leave it retired (`keep`), then mark the newest.
 * The mark is taken away before it is given: the index that allows one mark per tool checks row by row.
 */
export function insertVersions(
	tenant_id: string,
	tools: readonly NewToolVersion[],
	retired: "revive" | "keep",
): SqlStatement[] {
	const rows = tools.map(({ descriptor, definition_hash, created_at }) => ({
		tool_id: descriptor.tool_id,
		version: descriptor.version,
		version_sort: versionSort(descriptor.version),
		definition_hash,
		descriptor: JSON.stringify(descriptor),
		created_at,
	}));
	const texts = retired === "revive" ? [INSERT, REVIVE, UNMARK, MARK] : [INSERT, UNMARK, MARK];
	return jsonChunks(rows).flatMap((chunk) => texts.map((sql) => ({ sql, params: [tenant_id, chunk] })));
}

function readVersions(tenant_id: string, tools: readonly NewToolVersion[]): SqlStatement[] {
	const keys = tools.map(({ descriptor }) => ({ tool_id: descriptor.tool_id, version: descriptor.version }));
	return jsonChunks(keys).map((chunk) => ({ sql: SELECT, params: [tenant_id, chunk] }));
}

/** `1.10.2` -> `000001.000010.000002`; the descriptor allows six digits a part. */
function versionSort(version: string): string {
	return version
		.split(".")
		.map((part) => part.padStart(6, "0"))
		.join(".");
}

function asVersion(row: typeof toolVersions.$inferSelect): ToolVersion | undefined {
	const descriptor: ToolDescriptor | undefined = storedJson(toolDescriptor, row.descriptor);
	if (descriptor === undefined || descriptor.tool_id !== row.tool_id || descriptor.version !== row.version)
		return undefined;
	const status = row.status === "online" ? "online" : "offline";
	return {
		definition_hash: row.definition_hash,
		descriptor,
		status,
		created_at: row.created_at,
		offline_since: row.offline_since,
	};
}
