/**
 * Runs a tool's own check of its arguments in the sandbox (V2), with little fuel and a short wall clock. The program finds a
 * copy of the arguments as `args` and nothing of the world, and every run has an engine of its own: nothing is carried over.
 * Called by the run object before a step, and when a tool is registered.
 */
import { type Json, own } from "#core/json.ts";
import { SEMANTIC_CHECK_FUEL, SEMANTIC_CHECK_WALL_MS } from "#core/limits.ts";
import type { FaultCode, InvokeOutcome } from "#core/outcome.ts";
import { readVerdict, type SemanticVerdict } from "#core/run/semantic-check.ts";
import type { CodeRequest, ExecutorApi } from "./executor-api.ts";
import { settleRun } from "./settle-run.ts";

/** On the program's first line, so that lines keep their numbers. */
const program = (source: string): string => `const args = inputs;${source}`;

/** Never throws: what does not come to an answer is a check that failed. */
export async function runSemanticCheck(
	executor: Sandbox,
	source: string,
	args: Json,
	wall_ms: number,
): Promise<SemanticVerdict> {
	const ended = await ask(executor, { source: program(source), inputs: args, wall_ms });
	if (ended.kind === "success") return readVerdict(ended.result);
	return { kind: "failed", code: ended.kind === "failed" ? ended.code : "wall_exceeded" };
}

/** Codes that say something of the sandbox and nothing of the program. */
const AWAY: ReadonlySet<FaultCode> = new Set<FaultCode>(["wall_exceeded", "interrupted", "internal"]);

/**
 * Why the program does not compile, `SyntaxError in line 3: …`, or null. Nothing of it runs. A sandbox that is away finds
 * nothing; the tool's first call does then.
 */
export async function compileSemanticCheck(executor: Sandbox, source: string): Promise<string | null> {
	const asked = { source: program(source), inputs: null, wall_ms: SEMANTIC_CHECK_WALL_MS, compile_only: true };
	const ended = await ask(executor, asked);
	if (ended.kind !== "failed" || AWAY.has(ended.code)) return null;
	const line = own(ended.detail, "line");
	const [type = "", ...rest] = ended.message.split(": ");
	const where = typeof line === "number" ? ` in line ${line}` : "";
	return `${type}${where}${rest.length === 0 ? "" : `: ${rest.join(": ").slice(0, 200)}`}`;
}

type Sandbox = Pick<ExecutorApi, "runCode">;

function ask(executor: Sandbox, asked: Omit<CodeRequest, "language" | "fuel">): Promise<InvokeOutcome> {
	const request: CodeRequest = { language: "javascript", fuel: SEMANTIC_CHECK_FUEL, ...asked };
	const never = new AbortController().signal;
	return settleRun(
		() => executor.runCode(request),
		asked.wall_ms,
		never,
		({ result }) => result,
	);
}
