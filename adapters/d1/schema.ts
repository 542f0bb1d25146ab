/**
 * The control database as Drizzle sees it: names are wire names, `tenant_id` comes first in every primary key and in
 * every index, so no query can be answered quickly without naming its tenant. Row types stay in this folder. Timestamps
 * are ISO 8601 UTC text with milliseconds, which sorts as time; JSON members are text, parsed with zod after loading.
 * `npm run db:generate` turns a change here into the next file of `migrations/`.
 *
 * The index tables (runs, approvals, evidence, audit) hold small masked rows only; bodies stay in the run's object
 * (decision 40). Every index costs one written row for each change, so each one here answers a question the API asks; the
 * two tables that every governed call writes to, `evidence` and `audit`, are WITHOUT ROWID (migration 0002; drizzle cannot
 * say so), which makes their key the table and a call two written rows.
 */
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

export const tenants = sqliteTable("tenants", {
	tenant_id: text().primaryKey(),
	name: text().notNull(),
	created_at: text().notNull(),
});

/** A key is known by the SHA-256 of its text only; `prefix` and `last4` are what a person recognises it by. */
export const apiKeys = sqliteTable(
	"api_keys",
	{
		tenant_id: text().notNull(),
		key_id: text().notNull(),
		key_hash: text().notNull(),
		prefix: text().notNull(),
		last4: text().notNull(),
		principal_id: text().notNull(),
		created_at: text().notNull(),
		expires_at: text(),
		revoked_at: text(),
	},
	(t) => [
		primaryKey({ columns: [t.tenant_id, t.key_id] }),
		// The one look-up that cannot name a tenant: it is what finds the tenant.
		uniqueIndex("api_keys_by_hash").on(t.key_hash),
	],
);

export const principals = sqliteTable(
	"principals",
	{
		tenant_id: text().notNull(),
		principal_id: text().notNull(),
		kind: text().notNull(),
		name: text().notNull(),
		email: text(),
		department: text(),
		created_at: text().notNull(),
		disabled_at: text(),
	},
	(t) => [primaryKey({ columns: [t.tenant_id, t.principal_id] })],
);

export const roles = sqliteTable(
	"roles",
	{ tenant_id: text().notNull(), name: text().notNull(), role: text().notNull(), updated_at: text().notNull() },
	(t) => [primaryKey({ columns: [t.tenant_id, t.name] })],
);

export const roleBindings = sqliteTable(
	"role_bindings",
	{ tenant_id: text().notNull(), principal_id: text().notNull(), role: text().notNull(), created_at: text().notNull() },
	(t) => [primaryKey({ columns: [t.tenant_id, t.principal_id, t.role] })],
);

/** Published versions are never changed, only retired. `version_sort` is the version zero-padded, so that text order is version order. */
export const toolVersions = sqliteTable(
	"tool_versions",
	{
		tenant_id: text().notNull(),
		tool_id: text().notNull(),
		version: text().notNull(),
		version_sort: text().notNull(),
		definition_hash: text().notNull(),
		descriptor: text().notNull(),
		status: text().notNull(),
		/** 1 on the newest online version of a tool, else 0. */
		is_latest: integer().notNull(),
		created_at: text().notNull(),
		offline_since: text(),
	},
	(t) => [
		primaryKey({ columns: [t.tenant_id, t.tool_id, t.version] }),
		uniqueIndex("tool_versions_latest").on(t.tenant_id, t.tool_id).where(sql`is_latest = 1`),
	],
);

/** `ciphertext` is null after a DELETE: the row stays so that a version number, part of the AAD, is never used again. */
export const secrets = sqliteTable(
	"secrets",
	{
		tenant_id: text().notNull(),
		name: text().notNull(),
		version: integer().notNull(),
		ciphertext: text(),
		allowed_hosts: text().notNull(),
		allowed_tools: text().notNull(),
		created_at: text().notNull(),
		updated_at: text().notNull(),
	},
	(t) => [primaryKey({ columns: [t.tenant_id, t.name] })],
);

/** `secret` holds sealed text (decision 24), never a plain secret. */
export const channels = sqliteTable(
	"channels",
	{
		tenant_id: text().notNull(),
		channel_id: text().notNull(),
		kind: text().notNull(),
		name: text().notNull(),
		url: text(),
		to: text(),
		secret: text(),
		locale: text(),
		created_at: text().notNull(),
	},
	(t) => [
		primaryKey({ columns: [t.tenant_id, t.channel_id] }),
		uniqueIndex("channels_by_name").on(t.tenant_id, t.name),
	],
);

/** Decision 21: a session belongs to whoever used it first. */
export const sessions = sqliteTable(
	"sessions",
	{
		tenant_id: text().notNull(),
		session_id: text().notNull(),
		principal_id: text().notNull(),
		created_at: text().notNull(),
	},
	(t) => [primaryKey({ columns: [t.tenant_id, t.session_id] })],
);

export const runs = sqliteTable(
	"runs",
	{
		tenant_id: text().notNull(),
		run_id: text().notNull(),
		session_id: text().notNull(),
		principal_id: text().notNull(),
		trace_id: text().notNull(),
		status: text().notNull(),
		goal: text().notNull(),
		planner_kind: text().notNull(),
		seq: integer().notNull(),
		created_at: text().notNull(),
		updated_at: text().notNull(),
	},
	(t) => [
		primaryKey({ columns: [t.tenant_id, t.run_id] }),
		index("runs_by_time").on(t.tenant_id, t.created_at, t.run_id),
		index("runs_by_status").on(t.tenant_id, t.status, t.created_at, t.run_id),
		index("runs_by_principal").on(t.tenant_id, t.principal_id, t.created_at, t.run_id),
	],
);

export const approvals = sqliteTable(
	"approvals",
	{
		tenant_id: text().notNull(),
		approval_id: text().notNull(),
		run_id: text().notNull(),
		tool_id: text().notNull(),
		domain: text().notNull(),
		status: text().notNull(),
		requested_by: text().notNull(),
		seq: integer().notNull(),
		created_at: text().notNull(),
		expires_at: text().notNull(),
	},
	(t) => [
		primaryKey({ columns: [t.tenant_id, t.approval_id] }),
		index("approvals_by_status").on(t.tenant_id, t.status, t.created_at, t.approval_id),
		index("approvals_by_run").on(t.tenant_id, t.run_id, t.created_at, t.approval_id),
	],
);

export const evidence = sqliteTable(
	"evidence",
	{
		tenant_id: text().notNull(),
		run_id: text().notNull(),
		seq: integer().notNull(),
		evidence_id: text().notNull(),
		tool_call_id: text().notNull(),
		tool_id: text().notNull(),
		outcome: text().notNull(),
		input_hash: text().notNull(),
		hash: text().notNull(),
		at: text().notNull(),
	},
	(t) => [primaryKey({ columns: [t.tenant_id, t.run_id, t.seq] })],
);

/** `stream_id` is the run's id, or an administrative action's own id: with `seq` it makes a repeat add nothing. */
export const audit = sqliteTable(
	"audit",
	{
		tenant_id: text().notNull(),
		stream_id: text().notNull(),
		seq: integer().notNull(),
		run_id: text(),
		trace_id: text().notNull(),
		at: text().notNull(),
		session_id: text(),
		principal_id: text().notNull(),
		tool_id: text(),
		action: text().notNull(),
		input_params: text().notNull(),
		duration_ms: integer(),
		permission_decision: text(),
		security_flags: text().notNull(),
		status: text().notNull(),
	},
	(t) => [
		primaryKey({ columns: [t.tenant_id, t.stream_id, t.seq] }),
		// few rows carry a flag, so counting them must not read the others
		index("audit_flagged").on(t.tenant_id, t.at).where(sql`${t.security_flags} <> '[]'`),
	],
);

/** Rows the ledger could not take (decision 40): which and why. The row itself is still in its run's object. */
export const parkedRows = sqliteTable(
	"parked_rows",
	{
		tenant_id: text().notNull(),
		run_id: text().notNull(),
		kind: text().notNull(),
		row_key: text().notNull(),
		reason: text().notNull(),
		bytes: integer().notNull(),
	},
	(t) => [primaryKey({ columns: [t.tenant_id, t.run_id, t.kind, t.row_key] })],
);
