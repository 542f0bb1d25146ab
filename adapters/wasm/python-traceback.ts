/**
 * Reads MicroPython's report of an exception, `Type\x04Traceback (most recent call last):\n  File "<stdin>", line 3, in f\n
 * Type: message`. The message is the program's and may look like anything, so frames are read from the top only.
 */
import { codeSnippet } from "./code-snippet.ts";
import type { ProgramError } from "./executor-api.ts";

const FRAME = /^ {2}File "(.*)", line (\d+)(?:, in .*)?$/;
/** The name that MicroPython gives to the text it runs. */
const PROGRAM_FILE = "<stdin>";
const MESSAGE_MAX_CHARS = 2_000;

/** `line` is the deepest one in the program's own text. */
export function readTraceback(report: string, source: string): ProgramError {
	const cut = report.indexOf("\x04");
	const type = cut < 0 ? "Exception" : report.slice(0, cut);
	const lines = (cut < 0 ? report : report.slice(cut + 1)).replace(/\n$/, "").split("\n");
	let line: number | null = null;
	let at = lines[0]?.startsWith("Traceback ") === true ? 1 : 0;
	for (; at < lines.length; at++) {
		const frame = FRAME.exec(lines[at] ?? "");
		if (frame === null) break;
		if (frame[1] === PROGRAM_FILE) line = Number(frame[2]);
	}
	const said = lines.slice(at).join("\n");
	const message = said.startsWith(`${type}: `) ? said.slice(type.length + 2) : said === type ? "" : said;
	return { type, message: message.slice(0, MESSAGE_MAX_CHARS), line, snippet: codeSnippet(source, line) };
}
