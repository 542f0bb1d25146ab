/**
 * Cuts SQLite text into tokens, exactly where SQLite would: the difference between the two is what an attacker lives on
 * (a `;` that one of them takes for part of a string). It refuses what it cannot end, strings and comments included, and
 * judges nothing else. Called by the check of fixed SQL.
 */
export type SqlToken = {
	/** `word` is bare (keyword or name), `quoted` a name in `"`, `[]` or backticks, `parameter` any of SQLite's forms. */
	readonly kind: "word" | "quoted" | "string" | "number" | "parameter" | "symbol";
	/** As written; a quoted name without its quotes. */
	readonly text: string;
	/** Where it begins and ends in the source, in UTF-16 code units. */
	readonly start: number;
	readonly end: number;
};

export type SqlTokens =
	| { readonly ok: true; readonly tokens: readonly SqlToken[] }
	| { readonly ok: false; readonly at: number; readonly problem: string };

/** SQLite's own white space: U+00A0 and its kin belong to names there, and so they do here. */
const SPACE = /[ \t\n\f\r]+/y;
const WORD = /[A-Za-z_\u0080-\uffff][A-Za-z0-9_$\u0080-\uffff]*/y;
const NUMBER = /(?:0[xX][0-9a-fA-F_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d+)?|\.\d[\d_]*(?:[eE][+-]?\d+)?)/y;
const PARAMETER = /[:@$][A-Za-z0-9_$\u0080-\uffff:]+|\?\d*/y;
const LINE_COMMENT = /--[^\n]*/y;

/** The tokens of `sql` without white space and comments. */
export function sqlTokens(sql: string): SqlTokens {
	const tokens: SqlToken[] = [];
	let at = 0;
	const take = (pattern: RegExp): string | undefined => {
		pattern.lastIndex = at;
		return pattern.exec(sql)?.[0];
	};
	// SQLite stops at the first NUL and takes a byte order mark before a token for white space, so `<mark>insert` is INSERT
	// to it and some unknown name to a scanner that does not know. Nobody needs either character.
	const odd = /[\0\ufeff]/.exec(sql);
	if (odd !== null) return { ok: false, at: odd.index, problem: "holds a NUL character or a byte order mark" };
	while (at < sql.length) {
		const blank = take(SPACE) ?? take(LINE_COMMENT);
		if (blank !== undefined) {
			at += blank.length;
			continue;
		}
		const start = at;
		const head = sql[at] as string;
		if (sql.startsWith("/*", at)) {
			const end = sql.indexOf("*/", at + 2);
			if (end < 0) return { ok: false, at, problem: "holds a comment that does not end" };
			at = end + 2;
			continue;
		}
		if (head === "'" || head === '"' || head === "`" || head === "[") {
			const end = closing(sql, at, head === "[" ? "]" : head);
			if (end < 0) return { ok: false, at, problem: "holds a string or quoted name that does not end" };
			at = end;
			const text = sql.slice(start, end);
			tokens.push({
				kind: head === "'" ? "string" : "quoted",
				text: head === "'" ? text : text.slice(1, -1),
				start,
				end,
			});
			continue;
		}
		const [kind, text] = plain(take, head);
		at += text.length;
		tokens.push({ kind, text, start, end: at });
	}
	return { ok: true, tokens };
}

function plain(take: (pattern: RegExp) => string | undefined, head: string): [SqlToken["kind"], string] {
	const word = take(WORD);
	if (word !== undefined) return ["word", word];
	const number = take(NUMBER);
	if (number !== undefined) return ["number", number];
	const parameter = take(PARAMETER);
	if (parameter !== undefined) return ["parameter", parameter];
	return ["symbol", head];
}

/** The index after the closing quote, where a doubled quote stands for itself (but not in brackets); -1 when there is none. */
function closing(sql: string, start: number, quote: string): number {
	for (let at = start + 1; at < sql.length; at++) {
		if (sql[at] !== quote) continue;
		if (quote !== "]" && sql[at + 1] === quote) at++;
		else return at + 1;
	}
	return -1;
}
