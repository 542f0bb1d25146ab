/**
 * Judges an argument that its schema calls SQL text (`x-belay-kind: sql`): one statement that reads or changes rows, in
 * whatever database reads it. It refuses several statements, changes of the schema or the rights, and functions that reach
 * files, the network or the system. It is no grammar and no substitute for bound parameters: what a table may show is the
 * database's matter. Called by `danger.ts`; text that is bound as a parameter never comes here.
 */
import { SQL_TEXT_MAX_CHARS } from "../limits.ts";
import { readSql, SQL_DIALECTS, type SqlPiece } from "./sql-reading.ts";

/** Statements that define, grant or administer; as the first word, or after a word that takes a statement. */
const REFUSED_HEADS = new Set(
	(
		"create drop alter truncate attach detach pragma vacuum reindex analyze grant revoke deny exec execute call do copy " +
		"load set reset begin commit rollback savepoint release lock unlock shutdown kill backup restore bulk use declare " +
		"prepare deallocate install uninstall flush rename optimize listen notify handler waitfor dbcc reconfigure"
	).split(" "),
);
/** Elsewhere these words are names; followed by one of their objects they are a statement, also without a `;` (T-SQL). */
const DEFINES = new Set(["create", "drop", "alter", "truncate"]);
const OBJECTS = new Set(
	(
		"table view index database schema user role login function procedure proc trigger sequence type extension " +
		"tablespace server policy event column constraint materialized temporary temp unique virtual"
	).split(" "),
);
const WRITES: ReadonlyMap<string, string> = new Map([
	["delete", "from"],
	["insert", "into"],
	["merge", "into"],
]);
const REFUSED_CALLS = new Set(
	(
		"load_extension readfile writefile edit fts3_tokenizer load_file sys_exec sys_eval pg_read_file pg_read_binary_file " +
		"pg_ls_dir pg_stat_file pg_sleep pg_sleep_for pg_terminate_backend lo_import lo_export dblink dblink_exec set_config " +
		"query_to_xml database_to_xml xp_cmdshell xp_dirtree xp_regread sp_executesql sp_oacreate openrowset opendatasource " +
		"openquery utl_http utl_file dbms_pipe sleep benchmark extractvalue updatexml randomblob zeroblob exec execute"
	).split(" "),
);

/** Without these all databases cut a text alike, and one reading is enough. */
const READ_DIFFERENTLY = /[\\$#[]|\/\*|--/;

/** Why this SQL text must not be sent, or undefined. Linear in its length. */
export function judgeSqlText(sql: string): string | undefined {
	if (sql.length > SQL_TEXT_MAX_CHARS) return "the SQL is too long";
	if (/[\0\ufeff]/.test(sql)) return "the SQL holds a NUL character or a byte order mark";
	// MySQL runs what stands in `/*! ... */`; to every other reader it is a comment
	if (/\/\*M?!/.test(sql)) return "the SQL holds an executable comment";
	let complete = false;
	const dialects = READ_DIFFERENTLY.test(sql) ? SQL_DIALECTS : SQL_DIALECTS.slice(0, 1);
	for (const dialect of dialects) {
		const pieces = readSql(sql, dialect);
		if (pieces === undefined) continue;
		complete = true;
		const found = judgePieces(pieces);
		if (found !== undefined) return found;
	}
	return complete ? undefined : "the SQL holds a string or comment that does not end";
}

function judgePieces(pieces: readonly SqlPiece[]): string | undefined {
	const last = pieces.findLastIndex((piece) => !(piece.kind === "symbol" && piece.text === ";"));
	const first = pieces.find((piece) => !(piece.kind === "symbol" && piece.text === "("));
	if (first?.kind === "word" && REFUSED_HEADS.has(first.text)) return "the SQL is not a statement over rows";
	for (const [i, piece] of pieces.entries()) {
		if (piece.kind === "symbol" && piece.text === ";" && i < last) return "the SQL holds several statements";
		if (piece.kind !== "word" && piece.kind !== "name") continue;
		const next = pieces[i + 1];
		const word = next?.kind === "word" ? next.text : "";
		if (next?.kind === "symbol" && next.text === "(" && REFUSED_CALLS.has(piece.text))
			return "the SQL calls a function that reaches beyond rows";
		if (piece.kind === "word" && leads(piece.text, word)) return "the SQL changes more than rows";
		// T-SQL begins the next statement without a `;`
		if (first?.text === "select" && piece.kind === "word" && WRITES.get(piece.text) === word)
			return "the SQL holds several statements";
	}
	return undefined;
}

const leads = (word: string, next: string): boolean =>
	(DEFINES.has(word) && OBJECTS.has(next)) ||
	(word === "into" && (next === "outfile" || next === "dumpfile")) ||
	((word === "exec" || word === "execute") && next !== "") ||
	word === "xp_cmdshell" ||
	(word === "waitfor" && (next === "delay" || next === "time"));
