/**
 * Fixed SQL: a SELECT that a person registered, with `:name` parameters bound from a call's arguments. D1 runs several
 * statements in one prepare, and `WITH … INSERT` (decision 37), so a statement is judged here, by its tokens, before it
 * is stored and again before it runs. It refuses everything but one reading statement; it does not rewrite, and SQL that
 * a model writes has no way in. Called at registration and by adapters/sql.
 */
import { D1_PARAMETERS_MAX } from "../limits.ts";
import type { FieldError, Issue } from "../refusal.ts";
import { type SqlToken, sqlTokens } from "./sql-tokens.ts";

/** Words that begin or contain a change, a pragma or a second database. As names they have to be quoted. */
const FORBIDDEN_WORDS = new Set(
	(
		"insert update delete replace create drop alter pragma attach detach vacuum reindex analyze begin commit " +
		"rollback savepoint release explain returning into"
	).split(" "),
);
/** Functions that reach outside the rows, where a build has them. */
const FORBIDDEN_FUNCTIONS = new Set([
	"load_extension",
	"readfile",
	"writefile",
	"edit",
	"fts3_tokenizer",
	"randomblob",
	"zeroblob",
]);
/** The schema, pragmas as tables, and the platform's own tables are no tool's business. */
const FORBIDDEN_PREFIXES = ["sqlite_", "pragma_", "_cf_", "d1_migrations", "dbstat"];

/** A piece of the statement: text as written, or the name of a parameter that stood there. */
export type SqlPart = { readonly text: string } | { readonly parameter: string };

export type FixedSql = {
	/** Without the trailing `;`. Joined in order they are the statement. */
	readonly parts: readonly SqlPart[];
	/** Each name once, in order of first use. */
	readonly parameters: readonly string[];
};

export type CompiledSql =
	| { readonly ok: true; readonly statement: FixedSql }
	| { readonly ok: false; readonly problems: readonly SqlProblem[] };
export type SqlProblem = { readonly issue: Issue; readonly expected: string; readonly hint: string };

/**
 * Judges a statement and cuts it at its parameters. Ok means: one statement, SELECT or WITH, balanced, nothing that
 * writes, `:name` parameters only; so it may stand in parentheses as a sub-query.
 */
export function compileFixedSql(sql: string): CompiledSql {
	const scanned = sqlTokens(sql);
	if (!scanned.ok) return refuse("schema_violation", "a complete SELECT statement", `the statement ${scanned.problem}`);
	const tokens = withoutTrailingSemicolon(scanned.tokens);
	const first = tokens[0];
	if (first?.kind !== "word" || !["select", "with"].includes(first.text.toLowerCase()))
		return refuse(
			"security_violation",
			"a statement that begins with SELECT or WITH",
			"only reading statements can be registered",
		);
	const problems = [...tokens.flatMap((token, at) => judge(token, tokens[at + 1])), ...balance(tokens)];
	const parameters = [...new Set(tokens.filter((t) => t.kind === "parameter").map((t) => t.text.slice(1)))];
	if (parameters.length > D1_PARAMETERS_MAX)
		problems.push({
			issue: "too_large",
			expected: `at most ${D1_PARAMETERS_MAX} parameters`,
			hint: "use fewer parameters",
		});
	if (problems.length > 0) return { ok: false, problems };
	return { ok: true, statement: { parts: cut(sql, tokens), parameters } };
}

/**
 * The check at registration: what `compileFixedSql` finds, and that every `:name` is a property of `input_schema`.
 * `field` is the pointer of the statement in the descriptor.
 */
export function checkFixedSql(sql: string, input_schema: unknown, field = "/implementation/sql"): FieldError[] {
	const compiled = compileFixedSql(sql);
	const problems: SqlProblem[] = compiled.ok ? [] : [...compiled.problems];
	const properties = (input_schema as { properties?: unknown } | null)?.properties;
	const known = (name: string) =>
		typeof properties === "object" && properties !== null && Object.hasOwn(properties, name);
	for (const name of compiled.ok ? compiled.statement.parameters : [])
		if (!known(name))
			problems.push({
				issue: "unknown_name",
				expected: "parameters that are properties of `input_schema`",
				hint: `add \`${name}\` to the properties of input_schema, or take \`:${name}\` out of the statement`,
			});
	return problems.map((problem) => ({ error: "invalid_sql", field, ...problem }));
}

function refuse(issue: Issue, expected: string, hint: string): CompiledSql {
	return { ok: false, problems: [{ issue, expected, hint }] };
}

function withoutTrailingSemicolon(tokens: readonly SqlToken[]): readonly SqlToken[] {
	const last = tokens.at(-1);
	return last?.kind === "symbol" && last.text === ";" ? tokens.slice(0, -1) : tokens;
}

function judge(token: SqlToken, after: SqlToken | undefined): SqlProblem[] {
	const name = token.text.toLowerCase();
	const called = after?.kind === "symbol" && after.text === "(";
	const violation = (expected: string, hint: string): SqlProblem[] => [{ issue: "security_violation", expected, hint }];
	if (token.kind === "symbol" && name === ";")
		return violation("exactly one statement", "take out the `;` inside the statement");
	if (token.kind === "parameter") return judgeParameter(token, after);
	if (token.kind !== "word" && token.kind !== "quoted") return [];
	// `replace(x, y, z)` is a harmless function; as a statement the word is followed by INTO, or by a table's name.
	const isFunction = name === "replace" && called;
	if (token.kind === "word" && FORBIDDEN_WORDS.has(name) && !isFunction)
		return violation(
			"a statement that only reads",
			`\`${token.text}\` is not allowed; a column of that name has to be quoted`,
		);
	if (FORBIDDEN_PREFIXES.some((prefix) => name.startsWith(prefix)))
		return violation("tables of the dataset only", `\`${token.text}\` belongs to the database itself`);
	if (called && FORBIDDEN_FUNCTIONS.has(name))
		return violation("functions over rows only", `\`${token.text}\` is not allowed`);
	return [];
}

function judgeParameter(token: SqlToken, after: SqlToken | undefined): SqlProblem[] {
	const glued = after?.start === token.end && (after.kind === "word" || after.kind === "number");
	if (/^:[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(token.text) && !glued) return [];
	return [
		{
			issue: "pattern_mismatch",
			expected: "parameters written `:name`, of letters, digits and `_`",
			hint: `\`${token.text}\` cannot be bound from an argument`,
		},
	];
}

/** The statement will stand in parentheses: it must not close them itself (`SELECT 1) UNION SELECT …(`). */
function balance(tokens: readonly SqlToken[]): SqlProblem[] {
	let depth = 0;
	for (const token of tokens) {
		if (token.kind !== "symbol") continue;
		if (token.text === "(") depth++;
		if (token.text === ")" && --depth < 0) break;
	}
	return depth === 0
		? []
		: [{ issue: "schema_violation", expected: "balanced parentheses", hint: "pair every `(` with a `)`" }];
}

/** Comments go, so that none can swallow what is put round the statement; white space between tokens becomes one blank. */
function cut(sql: string, tokens: readonly SqlToken[]): SqlPart[] {
	const parts: SqlPart[] = [];
	let text = "";
	let end = 0;
	for (const token of tokens) {
		if (token.start > end && end > 0) text += " ";
		end = token.end;
		if (token.kind !== "parameter") {
			text += sql.slice(token.start, token.end);
			continue;
		}
		if (text !== "") parts.push({ text });
		parts.push({ parameter: token.text.slice(1) });
		text = "";
	}
	if (text !== "") parts.push({ text });
	return parts;
}
