/** `GET /v1/runs/:run_id/events`: the live log of a run as server-sent events, resumable by `Last-Event-ID`. */
import * as z from "zod";
import { runPart } from "#core/ids.ts";
import type { Ask, Problem } from "#objects/agent-run/api.ts";
import { eventStream, STREAM_HEADERS } from "../event-stream.ts";
import { authenticate } from "../middleware/authenticate.ts";
import type { Ctx } from "../noun.ts";
import { ApiProblem, notFound } from "../problem.ts";
import { askRun, fromRun, unavailable } from "../run-object.ts";

/** Heartbeats in a row at which the key could not be looked up (D1 away) before the stream ends: one minute. */
const UNCONFIRMED_MAX = 4;

export const eventsQuery = z.object({
	/** For clients that cannot set a header; the header wins. */
	last_event_id: z
		.string()
		.regex(/^\d{1,15}$/, "a seq")
		.optional(),
});

export async function runEvents(c: Ctx<"/:run_id/events">, query: z.infer<typeof eventsQuery>): Promise<Response> {
	const runId = c.req.param("run_id");
	if (runPart(runId) === undefined) throw notFound();
	const answer = await open(c, runId, lastSeen(c.req.header("last-event-id") ?? query.last_event_id));
	const socket = answer.webSocket;
	if (socket === null) throw fromRun(await refusalOf(answer));
	if (c.req.raw.method === "HEAD") {
		socket.accept();
		socket.close(1000, "done");
		return c.body(null, 200, STREAM_HEADERS);
	}
	return c.body(eventStream(socket, c.req.raw.signal, stillAllowed(c, runId)), 200, STREAM_HEADERS);
}

/**
 * A stream must not outlive the key that opened it, nor what its owner may read. The key is looked up again at each
 * heartbeat (remembered for KEY_CACHE_TTL_MS, so it ends within some 20 s); the run is asked only when the policy has moved,
 * since asking would wake its object. What cannot be looked up for a while is not believed for ever.
 */
function stillAllowed(c: Ctx<"/:run_id/events">, runId: string): () => Promise<boolean> {
	let known = c.get("caller");
	let unconfirmed = 0;
	return async () => {
		try {
			const caller = await authenticate(c);
			if (caller.authority.policy_rev !== known.authority.policy_rev)
				await askRun(c.env, runId, "read", (run) => run.messages({ v: 1, caller, turn: null }));
			known = caller;
			unconfirmed = 0;
			return true;
		} catch (error) {
			if (error instanceof ApiProblem && error.status < 500) return false;
			unconfirmed += 1;
			return unconfirmed <= UNCONFIRMED_MAX;
		}
	};
}

async function open(c: Ctx, runId: string, afterSeq: number | null): Promise<Response> {
	const ask: Ask<{ after_seq: number | null }> = { v: 1, caller: c.get("caller"), after_seq: afterSeq };
	const headers = { upgrade: "websocket", "x-belay-ask": asciiJson(ask) };
	for (let attempt = 1; ; attempt++) {
		try {
			return await c.env.AGENT_RUN.getByName(runId).fetch("https://run/events", { headers });
		} catch (error) {
			if (attempt > 1) throw unavailable(error);
		}
	}
}

/** The seq a client saw last; what is no seq means from the start. */
function lastSeen(id: string | undefined): number | null {
	return id !== undefined && /^\d{1,15}$/.test(id) ? Number(id) : null;
}

/** JSON for a header, which takes no character beyond Latin-1: a name may hold any. */
export function asciiJson(value: unknown): string {
	return JSON.stringify(value).replace(
		/[\u007f-\uffff]/g,
		(one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
	);
}

async function refusalOf(answer: Response): Promise<Problem> {
	const found = (await answer.json().catch(() => null)) as Partial<Problem> | null;
	if (
		found !== null &&
		typeof found.status === "number" &&
		typeof found.code === "string" &&
		typeof found.detail === "string"
	) {
		return found as Problem;
	}
	throw answer.status === 404 ? notFound() : unavailable(new Error("no socket"));
}
