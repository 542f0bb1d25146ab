/** The line where a program failed with its neighbours, so that whoever repairs it sees the place at once (S4). */
const LINE_MAX_CHARS = 200;

/** `line` counts from 1. Null when the program has no such line. */
export function codeSnippet(source: string, line: number | null): string | null {
	const lines = source.split(/\r\n|\n|\r/);
	if (line === null || line < 1 || line > lines.length) return null;
	const first = Math.max(1, line - 1);
	const last = Math.min(lines.length, line + 1);
	const width = String(last).length;
	const shown: string[] = [];
	for (let at = first; at <= last; at++) {
		const text = (lines[at - 1] ?? "").slice(0, LINE_MAX_CHARS);
		shown.push(`${at === line ? ">" : " "} ${String(at).padStart(width)} | ${text}`.trimEnd());
	}
	return shown.join("\n");
}
