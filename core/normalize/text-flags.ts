/**
 * Signs of an attack in texts that are safe where they go: an injection pattern in a value that will be bound, a template
 * expression in a notification. They flag the call for the evidence and block nothing, because `O'Brien` and an article
 * about SQL are honest arguments. Called by `danger.ts`.
 */

/** Frozen literals: `security_flags` of the audit. */
export type TextFlag =
	| "sql_pattern"
	| "template_expression"
	| "shell_expansion"
	| "mixed_scripts"
	| "windows_device_name";

/** Only the beginning is looked at: a pattern that hides behind so much text is no less harmless, as it is bound. */
const LOOKED_AT_MAX_CHARS = 8_192;
const SUSPECT = /['"`;#(*]|--|\bunion\b|\bselect\b|\bor\b/i;

/**
 * Each needs the syntax, never a word alone: `select a plan`, `1; drop by later`, `trade union select committee`. Blanks
 * between parts are bounded, which keeps every pattern linear.
 */
const SQL_PATTERNS: readonly RegExp[] = [
	// a quote that closes, then a condition that always holds
	/['"`]\)* {0,9}(?:\b(?:or|and|xor|having)\b|\|\||&&)[ (]{0,9}(?:not )?(?:(['"])\w{0,20}\1|['"]?\w{0,20})[ ()]{0,9}(?:=|<>|<|>|!=|like\b|between\b)/i,
	/['"]\)* {0,9}(?:or|and|\|\||&&) {1,9}(?:(?:true|false|not|null|exists|sleep|\d{1,9})\b|(?:''|"")(?:[^'"]|$))/i,
	/^ {0,3}(?:or|and) {1,9}(?:\d{1,9} {0,9}= {0,9}\d|true {0,3}(?:--|#))/i,
	/^\W{0,3}\d{1,9}\)* {1,9}(?:or|and|xor|\|\||&&)[ (]{1,9}['"]?\d{1,9}['"]? {0,9}(?:=|<|>|like\b) {0,9}['"(]?\d/i,
	/\bunion(?: {1,9}(?:all|distinct))? {1,9}select {1,9}(?:[\d'"*(@]|null\b|[\w.,() ]{1,80}\bfrom\b)/i,
	// a value that ends and a statement that begins
	/(?:['")]|^-?\d{1,9}) {0,9}; {0,9}(?:drop|alter|create|truncate) {1,9}(?:table|database|view|user|index|schema)\b/i,
	/['")\d] {0,9}; {0,9}(?:delete {1,9}from|insert {1,9}into|update {1,9}\w{1,40} {1,9}set|select\b.{1,40}\bfrom|exec\b|shutdown\b|declare {1,9}@|waitfor\b)/i,
	// a quote that closes, then the rest of the statement is cut off
	/['"]\)*(?:--(?!['"\]`])| {1,9}--[ -]{0,4}$| {0,9}#$| {0,9}\/\*)/,
	/['"]\)* {0,9}(?:union|(?:order|group) by \d{1,4}|procedure analyse)\b.{0,40}(?:--|#)/i,
	/['"] {0,9}\|\| {0,9}\( {0,9}select\b/i,
	// functions and tables that only an attacker names
	/\b(?:sleep|benchmark|pg_sleep|load_file|load_extension|extractvalue|updatexml|xp_cmdshell|utl_http\.request) {0,9}\( {0,9}(?:['"]|\d{1,9} {0,9}[),])/i,
	/\bwaitfor {1,9}delay {1,9}['"]/i,
	/\binto {1,9}(?:out|dump)file {1,9}['"]/i,
	/\b(?:exec|execute) {1,9}(?:master\.{1,2})?xp_\w{1,40}/i,
	/\bfrom {1,9}(?:information_schema\.|sqlite_master\b|pg_catalog\.|sys(?:objects|columns|users)\b|mysql\.user\b|all_tables\b)/i,
];

/** Comments for blanks, encodings for characters, full-width for plain: one spelling per attack. */
function plain(text: string): string {
	const decoded = text
		.slice(0, LOOKED_AT_MAX_CHARS)
		.replace(/%([2-7][0-9a-f])/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
		.normalize("NFKC");
	// a comment between two words is a blank; one that ends the text stays
	return decoded.replace(/\/\*[^*/]{0,80}\*\//g, " ").replace(/[\s+]+/g, " ");
}

export function hasSqlPattern(text: string): boolean {
	if (text.length < 5 || !(SUSPECT.test(text) || text.includes("%"))) return false;
	const spelt = plain(text);
	return SQL_PATTERNS.some((pattern) => pattern.test(spelt));
}

/** What common template engines would run, were the text ever taken for a template. */
export const hasTemplateExpression = (text: string): boolean => /\{\{|\{%|<%|[$#*]\{|<#(?:if|assign|list)\b/.test(text);
