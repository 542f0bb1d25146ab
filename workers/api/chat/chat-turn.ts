/**
 * One chat request as a step of a run: begins a managed run, or goes on with the one that the request names. Everything that
 * governs a call stays where it is, in the run; this only says the user's words to it. Called by `routes/chat-completions`.
 */
import { runId, runPart } from "#core/ids.ts";
import { own } from "#core/json.ts";
import { RUN_TURNS_MAX } from "#core/limits.ts";
import type { RunView } from "#core/run/view.ts";
import { idempotencyKey, newIdPart, requestHash } from "../idempotency.ts";
import type { Ctx } from "../noun.ts";
import { invalidField, notFound } from "../problem.ts";
import { session } from "../routes/create-run.ts";
import { askRun, runStub, unavailable } from "../run-object.ts";
import { createRun } from "../wire/create-run.ts";
import { answersOf, callerFunctions, runOfCalls } from "./caller-tools.ts";
import type { ChatRequest } from "./chat-request.ts";
import { DEFAULT_MODEL } from "./completion.ts";
import { leave, listen } from "./listen.ts";
import { continuation, opening, type Said } from "./spoken.ts";

export type ChatTurn = {
	/** The run when it had taken the request up. */
	readonly run: RunView;
	/** The run before that; null when the request began it. */
	readonly before: RunView | null;
	/** Turns up to this one may have been under way before anybody listened. */
	readonly base_turn: number;
	/** Its live frames, when they were asked for and could be had. */
	readonly socket: WebSocket | null;
};

const ROUTE = "POST /v1/chat/completions";
const RUN_ID = "belay_run_id";

export async function chatTurn(c: Ctx, body: ChatRequest, messages: readonly Said[], live: boolean): Promise<ChatTurn> {
	const named = namedRun(c, body) ?? runOfCalls(body);
	return named === null ? begin(c, body, messages, live) : goOn(c, named, body, messages, live);
}

/** The run that the request names, by header or metadata. */
function namedRun(c: Ctx, body: ChatRequest): string | null {
	const header = c.req.header("belay-run-id");
	const said = own(body.metadata, RUN_ID);
	if (said !== undefined && typeof said !== "string")
		throw invalidField(`/metadata/${RUN_ID}`, "type_mismatch", "the run id is not text", "a run id");
	if (header !== undefined && said !== undefined && header !== said)
		throw invalidField(`/metadata/${RUN_ID}`, "semantic_violation", "header and metadata name two runs", "one run id");
	const named = header ?? said ?? null;
	if (named !== null && runPart(named) === undefined) throw notFound();
	return named;
}

async function begin(c: Ctx, body: ChatRequest, messages: readonly Said[], live: boolean): Promise<ChatTurn> {
	const caller = c.get("caller");
	const { goal, history } = opening(messages);
	const model = body.model === DEFAULT_MODEL ? undefined : body.model;
	const functions = callerFunctions(body);
	const brought = functions.length > 0;
	// parsed again for the defaults of a run, which are the same here as there
	const request = createRun.parse({
		goal,
		messages: history,
		planner: { kind: "openai", ...(model === undefined ? {} : { model }) },
		metadata: body.metadata ?? {},
		// each turn with the caller takes a request of its client, which has its own bound
		...(brought ? { limits: { turns: RUN_TURNS_MAX } } : {}),
	});
	const key = idempotencyKey(c.req.header("idempotency-key"));
	const run_id = runId(newIdPart(c.env, caller, ROUTE, key));
	const base_turn = live && key !== null ? await turnOf(c, run_id) : 0;
	const session_id = await session(c, undefined, run_id);
	const { planner, limits, metadata, context } = request;
	let listening: Promise<WebSocket | null> = Promise.resolve(null);
	try {
		const run = await askRun(c.env, run_id, "write", (one) => {
			if (live) listening = listen(one, caller, null);
			return one.create({
				v: 1,
				caller,
				run_id,
				// how the answer travels is not part of what was asked
				request_hash: requestHash({
					goal,
					history: [...history],
					planner: { ...planner },
					metadata,
					...(brought ? { functions } : {}),
				}),
				trace_id: c.get("trace_id"),
				session_id,
				goal,
				messages: history,
				tools: null,
				...(brought ? { caller_functions: functions } : {}),
				planner: { kind: "openai", model: planner.model ?? null, script: [] },
				limits,
				metadata,
				context,
				wait_ms: 0,
			});
		});
		return { run, before: null, base_turn, socket: await listening };
	} catch (error) {
		c.executionCtx.waitUntil(leave(listening));
		throw error;
	}
}

/** The turn of a run that a repeated Idempotency-Key may have begun long ago; 0 when there is none. */
async function turnOf(c: Ctx, run_id: string): Promise<number> {
	const reply = await runStub(c.env, run_id)
		.read({ v: 1, caller: c.get("caller"), after_seq: null, wait_ms: 0 })
		.catch((error: unknown) => {
			throw unavailable(error);
		});
	return reply.ok ? reply.value.turn : 0;
}

async function goOn(
	c: Ctx,
	run_id: string,
	body: ChatRequest,
	messages: readonly Said[],
	live: boolean,
): Promise<ChatTurn> {
	const caller = c.get("caller");
	const ask = { v: 1 as const, caller };
	const before = await askRun(c.env, run_id, "read", (one) => one.read({ ...ask, after_seq: null, wait_ms: 0 }));
	c.set("run_id", run_id);
	if (before.planner.kind === "external" || before.planner.kind === "scripted")
		throw invalidField("/messages", "semantic_violation", "the run that is named has no model", "a run with a model");
	const content = continuation(messages, before.goal);
	const idempotency_key = sayKey(c, messages);
	const answers = answersOf(body);
	if (answers.length > 0) c.set("repeatable", true);
	const caller_functions = callerFunctions(body);
	const system = messages.flatMap((one) => (one.role === "system" ? [one.content] : []));
	const moves = content !== null || answers.length > 0;
	let listening: Promise<WebSocket | null> = Promise.resolve(null);
	try {
		let run = before;
		if (moves)
			run = await askRun(c.env, run_id, "write", (one) => {
				if (live) listening = listen(one, caller, before.seq);
				if (answers.length > 0 || content === null)
					return one.answer({ ...ask, answers, content, caller_functions, system });
				return one.say({ ...ask, content, caller_functions, system, idempotency_key, wait_ms: 0 });
			});
		else if (live) listening = listen(runStub(c.env, run_id), caller, before.seq);
		if (run.status === "suspended" && moves)
			run = await askRun(c.env, run_id, "write", (one) => one.resume({ ...ask, wait_ms: 0 }));
		return { run, before, base_turn: before.turn, socket: await listening };
	} catch (error) {
		c.executionCtx.waitUntil(leave(listening));
		throw error;
	}
}

/**
 * A client's library repeats a request whose answer was lost. Where the request carries the conversation, the same
 * conversation is the same words, said once. One that carries the new words only may well mean them twice.
 */
function sayKey(c: Ctx, messages: readonly Said[]): string | null {
	const key = idempotencyKey(c.req.header("idempotency-key"));
	if (key !== null) return `chat:${key}`;
	return messages.some(({ role }) => role === "assistant") ? `chat-history:${requestHash([...messages])}` : null;
}
