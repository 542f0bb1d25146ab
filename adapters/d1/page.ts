/**
 * Pages of a list, newest first: an opaque cursor that holds the sort key of the last row shown. It is not signed and need
 * not be: every query names its tenant itself, so a forged cursor only moves within what its caller may list anyway.
 */
import { type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import * as z from "zod";
import { PAGE_DEFAULT_ROWS, PAGE_MAX_ROWS } from "#core/limits.ts";
import { storedJson } from "./stored-json.ts";

export type PageRequest = { readonly cursor?: string | undefined; readonly limit?: number | undefined };
/** `next_cursor` is null on the last page. A cursor that Belay did not make is a value, not a throw: the caller sent it. */
export type Page<T> =
	| { readonly ok: true; readonly data: readonly T[]; readonly next_cursor: string | null }
	| { readonly ok: false; readonly reason: "cursor_malformed" };

const key = z.tuple([z.string().max(64), z.string().max(256)]);
type Key = z.infer<typeof key>;

function encode(value: Key): string {
	const bytes = new TextEncoder().encode(JSON.stringify(value));
	return btoa(String.fromCharCode(...bytes))
		.replaceAll("+", "-")
		.replaceAll("/", "_")
		.replaceAll("=", "");
}

function decode(cursor: string): Key | undefined {
	if (!/^[A-Za-z0-9_-]{1,1024}$/.test(cursor)) return undefined;
	try {
		const binary = atob(cursor.replaceAll("-", "+").replaceAll("_", "/"));
		return storedJson(key, new TextDecoder().decode(Uint8Array.from(binary, (char) => char.charCodeAt(0))));
	} catch {
		return undefined;
	}
}

/**
 * One page by keyset: `load` gets the condition that continues after the cursor (undefined on the first page) and how
 * many rows to fetch, ordered by `(at, id)` descending; `keyOf` gives a row's
 * `[at, id]`, which has to be unique: of rows that share it, those after a page's end would be skipped.
 */
export async function pageOf<T>(
	request: PageRequest,
	columns: { readonly at: SQLiteColumn; readonly id: SQLiteColumn | SQL },
	keyOf: (row: T) => Key,
	load: (after: SQL | undefined, rows: number) => Promise<T[]>,
): Promise<Page<T>> {
	const limit = Math.min(
		Math.max(Math.trunc(request.limit ?? PAGE_DEFAULT_ROWS) || PAGE_DEFAULT_ROWS, 1),
		PAGE_MAX_ROWS,
	);
	const from = request.cursor === undefined ? undefined : decode(request.cursor);
	if (request.cursor !== undefined && from === undefined) return { ok: false, reason: "cursor_malformed" };
	const after = from && sql`(${columns.at}, ${columns.id}) < (${from[0]}, ${from[1]})`;
	const rows = await load(after, limit + 1);
	const data = rows.slice(0, limit);
	const last = rows.length > limit ? data.at(-1) : undefined;
	return { ok: true, data, next_cursor: last === undefined ? null : encode(keyOf(last)) };
}

/** `column` is one of `values`, however many: one bound parameter instead of one each (field case C01). */
export function isOneOf(column: SQLiteColumn, values: readonly string[]): SQL {
	return sql`${column} IN (SELECT value FROM json_each(${JSON.stringify(values)}))`;
}
