/** A fault that nobody is told of, for the log of the deployment: what kind it was, never its text, which may hold anything. */
import type { DueKind } from "#core/run/state.ts";

export function complain(what: string, error: unknown, kind?: DueKind): void {
	const name = error instanceof Error ? error.name : typeof error;
	console.error(JSON.stringify({ level: "error", what, kind, error: name }));
}
