/**
 * Waits for an executor on behalf of an invoker and says what came of it in the words of the choke point. A run in the
 * sandbox touches nothing of the world, so whatever happens to it, its effect is `none`.
 */
import type { Json } from "#core/json.ts";
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { CancelSignal } from "#core/ports.ts";
import type { RunOutcome } from "./executor-api.ts";

/** The executor watches the same limit and knows more to say about it: it gets this much longer to say it. */
const ANSWER_GRACE_MS = 250;

type Ended = RunOutcome | "timeout" | "cancelled" | "lost";

/**
 * `wall_ms` bounds the waiting here as well, in case the executor never answers. `toResult` shapes the result of a run
 * that succeeded. Never throws.
 */
export async function settleRun(
	start: () => Promise<RunOutcome>,
	wall_ms: number,
	signal: CancelSignal,
	toResult: (outcome: Extract<RunOutcome, { ok: true }>) => Json,
): Promise<InvokeOutcome> {
	const ended = await firstOf(start, wall_ms, signal);
	if (ended === "timeout") return { kind: "timeout", phase: "wall", effect: "none" };
	if (ended === "cancelled") return failed("interrupted", "the call was cancelled");
	if (ended === "lost") return failed("interrupted", "the sandbox went away during the run", { retryable: true });
	if (ended.ok) {
		return { kind: "success", result: toResult(ended), facts: factsOf(ended), notes: notesOf(ended) };
	}
	const detail = detailOf(ended);
	return failed(ended.code, ended.message, detail === undefined ? {} : { detail });
}

async function firstOf(start: () => Promise<RunOutcome>, wall_ms: number, signal: CancelSignal): Promise<Ended> {
	if (signal.aborted) return "cancelled";
	const other = Promise.withResolvers<Ended>();
	const timer = setTimeout(() => other.resolve("timeout"), wall_ms + ANSWER_GRACE_MS);
	const cancel = (): void => other.resolve("cancelled");
	if (signal instanceof AbortSignal) signal.addEventListener("abort", cancel, { once: true });
	try {
		return await Promise.race([start().catch((): Ended => "lost"), other.promise]);
	} catch {
		return "lost"; // `start` threw before it had a promise
	} finally {
		clearTimeout(timer);
		if (signal instanceof AbortSignal) signal.removeEventListener("abort", cancel);
	}
}

function factsOf(outcome: RunOutcome): string[] {
	return [`${outcome.fuel_used} fuel used`, `${outcome.peak_memory_bytes} bytes of memory at the peak`];
}

function notesOf(outcome: Extract<RunOutcome, { ok: true }>): string[] {
	return outcome.stdout_truncated
		? [...outcome.notes, "the output was cut: it is longer than kept"]
		: [...outcome.notes];
}

/** What helps to repair a program: where it failed, what it had printed, what it had used. */
function detailOf(outcome: Extract<RunOutcome, { ok: false }>): Json | undefined {
	const { error, stdout, fuel_used, peak_memory_bytes } = outcome;
	const printed = stdout === "" ? {} : { stdout };
	if (error !== undefined) {
		return { type: error.type, message: error.message, line: error.line, code_snippet: error.snippet, ...printed };
	}
	if (fuel_used === 0) return undefined;
	return { fuel_used, peak_memory_bytes, ...printed };
}
