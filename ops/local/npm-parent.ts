/**
 * The npm that ran this script, watched: npm starts a shell, the shell starts us, and neither passes on a `kill -9`. Without
 * this a killed `npm start` would go on serving with nobody in charge of it. POSIX only. Called by start.
 */
import { execFileSync } from "node:child_process";

/** How soon the end of npm is noticed. */
const LOOK_EVERY_MS = 1_000;

type Process = { readonly parent: number; readonly command: string };

function look(pid: number): Process | undefined {
	try {
		const [parent, ...command] = execFileSync("ps", ["-o", "ppid=,comm=", "-p", String(pid)], { encoding: "utf8" })
			.trim()
			.split(/\s+/);
		return { parent: Number(parent), command: command.join(" ") };
	} catch {
		return undefined;
	}
}

/** npm's process id: our parent, or the parent of the shell between; undefined when no npm runs us or it cannot be told. */
function npmAbove(): number | undefined {
	if (process.env.npm_lifecycle_event === undefined || process.platform === "win32") return undefined;
	const above = look(process.ppid);
	if (above === undefined || !/sh$/.test(above.command)) return undefined;
	return /npm|node/.test(look(above.parent)?.command ?? "") ? above.parent : undefined;
}

/** Calls `end` once npm is gone. */
export function whenNpmIsGone(end: () => void): void {
	const npm = npmAbove();
	if (npm === undefined) return;
	const timer = setInterval(() => {
		try {
			process.kill(npm, 0);
		} catch {
			clearInterval(timer);
			end();
		}
	}, LOOK_EVERY_MS);
	timer.unref();
}
