/** How a dataset is asked: with a limit in time, and with errors told apart by SQLite's result code, never by their prose. */
import type { CancelSignal } from "#core/ports.ts";

/**
 * The answer, or `timeout` after `ms`, or `aborted` when the signal is. D1 cannot be told to stop: what it still finds is
 * dropped, an error included; the platform ends any query after 30 s.
 */
export async function withinTime<T>(
	work: Promise<T>,
	ms: number,
	signal: CancelSignal,
): Promise<T | "timeout" | "aborted"> {
	let timer: ReturnType<typeof setTimeout> | undefined;
	let stop: (() => void) | undefined;
	const late = new Promise<"timeout" | "aborted">((done) => {
		if (signal.aborted) done("aborted");
		timer = setTimeout(() => done("timeout"), ms);
		stop = () => done("aborted");
		if (signal instanceof AbortSignal) signal.addEventListener("abort", stop, { once: true });
	});
	try {
		return await Promise.race([late, work]);
	} finally {
		clearTimeout(timer);
		work.catch(() => undefined);
		if (stop !== undefined && signal instanceof AbortSignal) signal.removeEventListener("abort", stop);
	}
}

/** Codes that say the statement or a value is wrong: asking again would get the same answer. */
const PERMANENT = new Set([
	"SQLITE_ERROR",
	"SQLITE_MISMATCH",
	"SQLITE_RANGE",
	"SQLITE_TOOBIG",
	"SQLITE_AUTH",
	"SQLITE_CONSTRAINT",
]);

/** D1 puts SQLite's result code at the end of the message; without one the connection or the platform failed. */
export function isPermanent(error: unknown): boolean {
	const code = error instanceof Error ? /: (SQLITE_[A-Z]+)$/.exec(error.message)?.[1] : undefined;
	return code !== undefined && PERMANENT.has(code);
}
