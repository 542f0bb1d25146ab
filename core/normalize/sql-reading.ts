/**
 * Cuts SQL text into words and symbols as one family of databases would read it. Four readings instead of one: text that
 * one database takes for a string is a second statement to another (`'\''; drop table t --'`), and that difference is the
 * attack. It judges nothing. Called by `sql-text.ts`.
 */
export type SqlDialect = {
	/** A backslash escapes inside quotes (MySQL); in the others only inside `E'...'`. */
	readonly backslash: boolean;
	/** `$tag$ ... $tag$` is a string (Postgres). */
	readonly dollar: boolean;
	/** `#` begins a comment, and `--` only before white space (MySQL). */
	readonly hash: boolean;
	/** `[name]` is quoted (SQLite, SQL Server). */
	readonly brackets: boolean;
	/** `/*` nests (Postgres, SQL Server). */
	readonly nested: boolean;
};

/** SQLite, MySQL and its kin, Postgres, SQL Server. */
export const SQL_DIALECTS: readonly SqlDialect[] = [
	{ backslash: false, dollar: false, hash: false, brackets: true, nested: false },
	{ backslash: true, dollar: false, hash: true, brackets: false, nested: false },
	{ backslash: false, dollar: true, hash: false, brackets: false, nested: true },
	{ backslash: false, dollar: false, hash: false, brackets: true, nested: true },
];

/** `word` in lower case without quotes, `name` quoted by anything but `'`, `text` a string, else one symbol. */
export type SqlPiece = { readonly kind: "word" | "name" | "text" | "symbol"; readonly text: string };

const SPACE = /[\s\u00a0\ufeff]+/y;
const WORD = /[\p{L}_][\p{L}\p{N}_$]*/uy;
/** Above ASCII the word's own pattern decides. */
const LETTER = /[A-Za-z_\u0080-\uffff]/;
const NUMBER = /[0-9][0-9A-Za-z_.]*/y;
const TAG = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy;

/** Undefined when a string, name or comment does not end: such a database answers with an error and runs nothing. */
export function readSql(sql: string, dialect: SqlDialect): readonly SqlPiece[] | undefined {
	const pieces: SqlPiece[] = [];
	let at = 0;
	const take = (pattern: RegExp): string | undefined => {
		pattern.lastIndex = at;
		return pattern.exec(sql)?.[0];
	};
	while (at < sql.length) {
		const head = sql[at] as string;
		const space = head <= " " || head >= "\u0080" ? take(SPACE) : undefined;
		if (space !== undefined) {
			at += space.length;
			continue;
		}
		const end = head === "-" || head === "/" || head === "#" ? hidden(sql, at, dialect) : at;
		if (end === -1) return undefined;
		if (end > at) {
			at = end;
			continue;
		}
		const tag = dialect.dollar && head === "$" ? take(TAG) : undefined;
		if (tag !== undefined) {
			const close = sql.indexOf(tag, at + tag.length);
			if (close < 0) return undefined;
			pieces.push({ kind: "text", text: "" });
			at = close + tag.length;
			continue;
		}
		if (head === "'" || head === '"' || head === "`" || (head === "[" && dialect.brackets)) {
			const before = pieces.at(-1);
			const escaped = before?.kind === "word" && before.text === "e" && /e/i.test(sql[at - 1] ?? "");
			const close = closing(sql, at, head === "[" ? "]" : head, dialect.backslash || (dialect.dollar && escaped));
			if (close < 0) return undefined;
			pieces.push({ kind: head === "'" ? "text" : "name", text: sql.slice(at + 1, close - 1).toLowerCase() });
			at = close;
			continue;
		}
		const word = LETTER.test(head) ? take(WORD) : undefined;
		const text = word ?? (head >= "0" && head <= "9" ? take(NUMBER) : undefined) ?? head;
		pieces.push({ kind: word === undefined ? "symbol" : "word", text: text.toLowerCase() });
		at += text.length;
	}
	return pieces;
}

/** Where the comment that begins here ends; `at` when none does, -1 when it never ends. */
function hidden(sql: string, at: number, dialect: SqlDialect): number {
	const line =
		(sql.startsWith("--", at) && (!dialect.hash || /^[\s\0]?$/.test(sql[at + 2] ?? ""))) ||
		(dialect.hash && sql[at] === "#");
	if (line) {
		const end = sql.indexOf("\n", at);
		return end < 0 ? sql.length : end + 1;
	}
	if (!sql.startsWith("/*", at)) return at;
	let depth = 1;
	for (let i = at + 2; i < sql.length; i += 1) {
		if (sql.startsWith("*/", i)) {
			depth -= 1;
			i += 1;
			if (depth === 0) return i + 1;
		} else if (dialect.nested && sql.startsWith("/*", i)) {
			depth += 1;
			i += 1;
		}
	}
	return -1;
}

/** The index after the closing quote; a doubled quote stands for itself. */
function closing(sql: string, start: number, quote: string, backslash: boolean): number {
	for (let at = start + 1; at < sql.length; at += 1) {
		if (backslash && sql[at] === "\\" && quote !== "`") at += 1;
		else if (sql[at] === quote) {
			if (sql[at + 1] === quote) at += 1;
			else return at + 1;
		}
	}
	return -1;
}
