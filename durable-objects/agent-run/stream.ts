/**
 * The event stream's end at the object: hibernatable WebSockets (decision 10), so an object that only waits can sleep with
 * its listeners. A listener gets what it missed from the log by seq, then what comes. Sends; decides nothing.
 */
import type { LogRow } from "#core/run/effect.ts";
import type { RunStore } from "./store.ts";

const REPLAY_ROWS = 500;

export class Stream {
	readonly #ctx: DurableObjectState;
	readonly #store: RunStore;

	constructor(ctx: DurableObjectState, store: RunStore) {
		this.#ctx = ctx;
		this.#store = store;
	}

	/** Accepts a listener and replays everything after `after_seq` before anything new can reach it (nothing is awaited). */
	open(after_seq: number): Response {
		const { 0: client, 1: server } = new WebSocketPair();
		this.#ctx.acceptWebSocket(server);
		let at = after_seq;
		for (;;) {
			const rows = this.#store.log(at, REPLAY_ROWS);
			for (const row of rows) server.send(frame(row));
			const last = rows.at(-1);
			if (last === undefined) break;
			at = last.seq;
		}
		return new Response(null, { status: 101, webSocket: client });
	}

	publish(rows: readonly LogRow[]): void {
		if (rows.length === 0) return;
		const listeners = this.#ctx.getWebSockets();
		if (listeners.length === 0) return;
		const frames = rows.map(frame);
		for (const listener of listeners) for (const text of frames) send(listener, text);
	}

	/** A piece of the planner's text: not in the log, so without an id to resume from. */
	delta(data: { run_id: string; turn: number; content: string }): void {
		const text = JSON.stringify({ seq: null, event: "message.delta", data });
		for (const listener of this.#ctx.getWebSockets()) send(listener, text);
	}
}

const frame = (row: LogRow): string => JSON.stringify({ seq: row.seq, event: row.event, data: row.data });

function send(listener: WebSocket, text: string): void {
	try {
		listener.send(text);
	} catch {
		// It is gone; its client resumes by seq.
	}
}
