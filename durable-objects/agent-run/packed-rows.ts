/**
 * Documents in cells. A cell stops at 2 MB (C03): a text of up to 256 Ki characters lies in its row, a longer one in parts
 * in the table `body`. Used by the run's store.
 */
import { BODY_CHUNK_BYTES } from "#core/limits.ts";

/** A doc that starts so lies in `body`. No JSON text begins with it. */
const CHUNKED = "§";

export class PackedRows {
	readonly #sql: SqlStorage;

	constructor(sql: SqlStorage) {
		this.#sql = sql;
	}

	one<T>(query: string, ...binds: (string | number)[]): T | undefined {
		return this.all<T>(query, ...binds)[0];
	}
	all<T>(query: string, ...binds: (string | number)[]): T[] {
		return [...this.each<T>(query, ...binds)];
	}
	/** One by one: of documents that lie in parts, only the one that is looked at is in memory. */
	*each<T>(query: string, ...binds: (string | number)[]): Generator<T> {
		for (const { doc } of this.#sql.exec<{ doc: string }>(query, ...binds).toArray())
			yield this.unpack(doc.startsWith(CHUNKED) ? doc.slice(1) : "", doc);
	}

	/** C03: a row stops at 2 MB; two texts of up to 256 Ki characters fit, a longer one is kept in parts. */
	pack(owner: string, value: unknown): string {
		const text = JSON.stringify(value);
		if (text.length <= BODY_CHUNK_BYTES) return text;
		this.#sql.exec("DELETE FROM body WHERE owner = ?", owner);
		for (let part = 0; part * BODY_CHUNK_BYTES < text.length; part++) {
			const data = text.slice(part * BODY_CHUNK_BYTES, (part + 1) * BODY_CHUNK_BYTES);
			// JSON-quoted: a cut may fall inside a surrogate pair, which SQLite's UTF-8 could not hold.
			this.#sql.exec("INSERT INTO body VALUES (?, ?, ?)", owner, part, JSON.stringify(data));
		}
		return CHUNKED + owner;
	}
	unpack<T>(owner: string, text: string): T {
		if (!text.startsWith(CHUNKED)) return JSON.parse(text) as T;
		const parts = this.#sql
			.exec<{ data: string }>("SELECT data FROM body WHERE owner = ? ORDER BY part", owner)
			.toArray();
		return JSON.parse(parts.map(({ data }) => JSON.parse(data) as string).join("")) as T;
	}
}
