/**
 * Masks the literals of `INSERT INTO t (a, b) VALUES (x, y)` by the names of their columns (E3): the one place in SQL
 * where a value does not stand beside its name. Leaves all other text as it is. Called by `mask-text.ts`.
 */
import { classifyName } from "./mask-names.ts";
import { MASKED, maskIdentifier } from "./mask-value.ts";

const HEAD = /\b(?:insert|replace)\s{1,8}into\s{1,8}[\w."`[\]]{1,200}\s{0,8}\(([^()]{1,4000})\)\s{0,8}values\s{0,8}/gi;

export function maskInserts(sql: string): string {
	let masked = "";
	let from = 0;
	for (const head of sql.matchAll(HEAD)) {
		const columns = (head[1] ?? "").split(",").map((column) => classifyName(column.replace(/["'`[\]\s]/g, "")));
		const start = head.index + head[0].length;
		if (start < from || columns.every((kind) => kind === undefined)) continue;
		const { text, end } = maskTuples(sql, start, (at, literal) => {
			const kind = columns[at];
			if (kind === undefined || /^(?:null|default|\?\d*|[:@$]\w+)$/i.test(literal)) return literal;
			const quoted = literal.startsWith("'");
			const inner = quoted ? literal.slice(1, literal.endsWith("'") && literal.length > 1 ? -1 : undefined) : literal;
			return `'${kind === "identifier" ? maskIdentifier(inner) : MASKED}'`;
		});
		masked += sql.slice(from, start) + text;
		from = end;
	}
	return masked + sql.slice(from);
}

/** Walks `(…), (…)` from `start`, once, and hands out each value with its position; ends where the tuples end. */
function maskTuples(
	sql: string,
	start: number,
	mask: (at: number, literal: string) => string,
): { text: string; end: number } {
	let text = "";
	let at = start;
	let depth = 0;
	let column = 0;
	let value = "";
	const flush = (): void => {
		const trimmed = value.trim();
		text += trimmed === "" ? value : value.replace(trimmed, () => mask(column, trimmed));
		value = "";
	};
	for (; at < sql.length; at++) {
		const char = sql[at] as string;
		if (depth === 0 && !/[\s,(]/.test(char)) break;
		if (char === "'") {
			const end = literalEnd(sql, at);
			value += sql.slice(at, end);
			at = end - 1;
		} else if (char === "(") {
			depth += 1;
			if (depth === 1) {
				text += char;
				column = 0;
			} else value += char;
		} else if (char === ")" && depth === 1) {
			flush();
			text += char;
			depth = 0;
		} else if (char === "," && depth === 1) {
			flush();
			text += char;
			column += 1;
		} else if (depth === 0) text += char;
		else {
			if (char === ")") depth -= 1;
			value += char;
		}
	}
	if (depth > 0) flush();
	return { text, end: at };
}

/** Behind the closing quote; `''` stands for one quote. An open literal runs to the end. */
function literalEnd(sql: string, start: number): number {
	for (let at = start + 1; at < sql.length; at++) {
		if (sql[at] !== "'") continue;
		if (sql[at + 1] !== "'") return at + 1;
		at += 1;
	}
	return sql.length;
}
