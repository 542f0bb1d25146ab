/**
 * Judges an argument that its schema calls shell text (`x-belay-kind: shell`): one simple command in the quoting of a
 * POSIX shell. What would begin a second command, run a substitution or redirect is refused outside quotes; inside single
 * quotes everything is text, inside double quotes a substitution still runs. It knows nothing of which program may run,
 * and not of `cmd.exe`, where single quotes quote nothing. Called by `danger.ts`.
 */

/** Why this shell text must not be sent, or undefined. One pass. */
export function judgeShellText(text: string): string | undefined {
	let quote = "";
	for (let i = 0; i < text.length; i += 1) {
		const char = text[i] as string;
		const code = text.charCodeAt(i);
		if (code === 0 || (code < 0x20 && !/[\t\n\r]/.test(char)) || code === 0x7f) return "holds a control character";
		if (quote === "'") {
			if (char === "'") quote = "";
		} else if (char === "\\") {
			// a line break after it joins lines; at the end it would take the next character of whoever appends
			if (i + 1 === text.length || /[\r\n]/.test(text[i + 1] as string)) return "ends a line with a backslash";
			i += 1;
		} else if (char === "`" || (char === "$" && /[({]/.test(text[i + 1] ?? ""))) return "holds a substitution";
		else if (quote === '"') {
			if (char === '"') quote = "";
		} else if (char === "'" || char === '"') {
			// `$'...'` reads escapes, so its end is elsewhere than it seems
			if (text[i - 1] === "$") return "holds a substitution";
			quote = char;
		} else if (/[\r\n]/.test(char)) return "holds several lines";
		else if (char === ";" || char === "&" || char === "|") return "holds several commands";
		else if (char === "<" || char === ">") return "holds a redirection";
		else if (char === "(" || char === ")") return "holds a sub-shell";
	}
	return quote === "" ? undefined : "holds a quote that does not end";
}

/** `$NAME` shows the environment to whatever reads the command's output: worth telling, often meant. */
export const expandsVariables = (text: string): boolean => /\$[A-Za-z_0-9@*#?!$-]/.test(text);
