/**
 * Many rows in one statement with few bound parameters: the tenant, what all rows share, and the rest of the rows as one JSON
 * text that SQLite takes apart (`json_each`). The limit of 100 bound parameters (field case C01) is thus out of reach whatever the table's width, 500
 * rows are one statement instead of fifty, and integers stay integers (D1 binds every JavaScript number as REAL, tried).
 * Column names come from the schema alone. Called by the ledger and the audit.
 */
import { getTableColumns, getTableName } from "drizzle-orm";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { BULK_STATEMENT_MAX_BYTES, INDEX_ROW_MAX_BYTES } from "#core/limits.ts";

export type Row = { readonly [column: string]: string | number | null };
export type BulkTable = {
	readonly table: SQLiteTable;
	/** `keep`: the first writer of a key wins. `newest`: a higher `seq` replaces a lower one. */
	readonly on_conflict: "keep" | "newest";
};

/** Why this row can never be written, or undefined when it can: missing or mistyped members, or far too large. */
export function unfit(table: SQLiteTable, row: Row): string | undefined {
	if (isTooLarge(row)) return "row_too_large";
	for (const { name, notNull, dataType } of columnsOf(table)) {
		const value = row[name] ?? null;
		if (value === null ? notNull : !fits(dataType, value)) return `bad_member:${name}`;
	}
	return undefined;
}

type Column = { readonly name: string; readonly notNull: boolean; readonly dataType: string };
const columns = new WeakMap<SQLiteTable, readonly Column[]>();

/** A table's columns but the tenant's; drizzle puts its list together anew whenever it is asked. */
function columnsOf(table: SQLiteTable): readonly Column[] {
	let known = columns.get(table);
	if (known === undefined) {
		known = Object.entries(getTableColumns(table))
			.filter(([name]) => name !== "tenant_id")
			.map(([name, { notNull, dataType }]) => ({ name, notNull, dataType }));
		columns.set(table, known);
	}
	return known;
}

function fits(dataType: string, value: string | number): boolean {
	return dataType === "number" ? Number.isSafeInteger(value) : typeof value === "string";
}

/** A character is six bytes at most once JSON has escaped it, so most rows need no counting. */
function isTooLarge(row: Row): boolean {
	let chars = 0;
	for (const name in row) chars += name.length + MARKS_MAX_CHARS + String(row[name]).length;
	return chars * 6 > INDEX_ROW_MAX_BYTES && rowBytes(row) > INDEX_ROW_MAX_BYTES;
}
/** Quotes, colon, comma. */
const MARKS_MAX_CHARS = 6;

export function rowBytes(row: Row): number {
	return utf8Bytes(JSON.stringify(row));
}

const UTF8 = new TextEncoder();
const utf8Bytes = (text: string): number => UTF8.encode(text).length;

/** As few statements as the size of a bound value allows, for rows of one table and tenant. */
export function bulkInsert(
	db: D1Database,
	into: BulkTable,
	tenant_id: string,
	rows: readonly Row[],
): D1PreparedStatement[] {
	if (rows.length === 0) return [];
	const { shared, own } = parted(columnsOf(into.table), rows);
	const text = textOf(into, [...shared.keys()], own);
	const said = [...shared.values()];
	return jsonChunks(rows.map((row) => own.map((name) => row[name] ?? null))).map((json) =>
		db.prepare(text).bind(tenant_id, json, ...said),
	);
}

/** What all rows say alike, as those of one run do its ids, is bound once. Texts only: a bound number would become REAL. */
function parted(columns: readonly Column[], rows: readonly Row[]): { shared: Map<string, string>; own: string[] } {
	const shared = new Map<string, string>();
	const own: string[] = [];
	for (const { name } of columns) {
		const value = rows[0]?.[name];
		if (typeof value === "string" && rows.every((row) => row[name] === value)) shared.set(name, value.toWellFormed());
		else own.push(name);
	}
	return { shared, own };
}

/** Statements by table, conflict rule and shared columns: few of the combinations occur. */
const texts = new Map<string, string>();
const TEXTS_MAX = 200;

function textOf(into: BulkTable, shared: readonly string[], own: readonly string[]): string {
	const key = `${getTableName(into.table)} ${into.on_conflict} ${shared.join()}`;
	const text = texts.get(key) ?? insertText(into, shared, own);
	if (texts.size >= TEXTS_MAX) texts.clear();
	texts.set(key, text);
	return text;
}

function insertText({ table, on_conflict }: BulkTable, shared: readonly string[], own: readonly string[]): string {
	const columns = Object.keys(getTableColumns(table));
	const key = getTableConfig(table).primaryKeys[0]?.columns.map((column) => column.name) ?? [];
	const name = getTableName(table);
	const values = columns.map((column) => {
		if (column === "tenant_id") return "?1";
		const at = shared.indexOf(column);
		return at < 0 ? `value->>${own.indexOf(column)}` : `?${at + 3}`;
	});
	const rest = columns.filter((column) => !key.includes(column)).map((column) => `"${column}" = excluded."${column}"`);
	const action =
		on_conflict === "keep" ? "NOTHING" : `UPDATE SET ${rest.join(", ")} WHERE excluded.seq > "${name}".seq`;
	return `INSERT INTO "${name}" (${columns.map((column) => `"${column}"`).join(", ")})
		SELECT ${values.join(", ")} FROM json_each(?2) WHERE true ON CONFLICT (${key.join(", ")}) DO ${action}`;
}

type Plain = Row | readonly (string | number | null)[];

/** JSON arrays of rows, each below the limit. Lone surrogates are mended here: SQLite would store them as broken UTF-8. */
export function jsonChunks(rows: readonly Plain[]): string[] {
	const said = rows.map(wellFormed);
	// Counted only where it might matter: no character has more than three bytes to its UTF-16 unit.
	if (said.reduce((sum, text) => sum + text.length + 1, 2) * 3 <= BULK_STATEMENT_MAX_BYTES)
		return said.length === 0 ? [] : [`[${said.join(",")}]`];
	const list: string[] = [];
	let open: string[] = [];
	let bytes = 0;
	for (const text of said) {
		const size = utf8Bytes(text) + 1;
		if (bytes + size > BULK_STATEMENT_MAX_BYTES && open.length > 0) {
			list.push(`[${open.join(",")}]`);
			open = [];
			bytes = 0;
		}
		open.push(text);
		bytes += size;
	}
	if (open.length > 0) list.push(`[${open.join(",")}]`);
	return list;
}

/** JSON text writes a lone surrogate as an escape; only a text that holds such escapes is looked at member by member. */
function wellFormed(row: Plain): string {
	const text = JSON.stringify(row);
	if (!/\\ud[89a-f]/.test(text)) return text;
	return JSON.stringify(row, (_, value) => (typeof value === "string" ? value.toWellFormed() : value));
}
