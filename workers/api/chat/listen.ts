/**
 * The live frames of a run for a chat stream. A planner's text has no place in the log, so it cannot be caught up with:
 * whoever wants all of it listens before the run exists. Answers null instead of failing: the text then comes at the end.
 */
import type { Caller } from "#core/principal.ts";
import type { AgentRunApi, Ask, Listen } from "#objects/agent-run/api.ts";
import { asciiJson } from "../routes/run-events.ts";

/** How long a listener waits at the object for its run to be created by the call that follows it. */
const CREATION_MS = 5_000;

/** `after_seq`: what came before is known; null: the run is about to be created. */
export async function listen(run: AgentRunApi, caller: Caller, after_seq: number | null): Promise<WebSocket | null> {
	const ask: Ask<Listen> =
		after_seq === null ? { v: 1, caller, after_seq, creation_ms: CREATION_MS } : { v: 1, caller, after_seq };
	const headers = { upgrade: "websocket", "x-belay-ask": asciiJson(ask) };
	try {
		return (await run.fetch(new Request("https://run/events", { headers }))).webSocket;
	} catch {
		return null;
	}
}

/** For a listener whose request failed. */
export async function leave(listening: Promise<WebSocket | null>): Promise<void> {
	const socket = await listening;
	socket?.accept();
	socket?.close(1000, "done");
}
