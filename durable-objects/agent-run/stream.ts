/**
 * The event stream's end at the object: hibernatable WebSockets (decision 10), so an object that only waits can sleep with
 * its listeners. A listener gets what it missed from the log by seq, then what comes. Sends; decides nothing.
 */
import { LISTENERS_MAX, LISTENERS_OF_ONE_MAX } from "#core/limits.ts";
import type { LogRow } from "#core/run/effect.ts";
import { no } from "./replies.ts";
import type { RunStore } from "./store.ts";

/** A listener that is gone is found by the Worker's heartbeats within about this time. */
const RETRY_AFTER_S = 60;

export class Stream {
	readonly #ctx: DurableObjectState;
	readonly #store: RunStore;
	readonly #run_id: () => string;

	constructor(ctx: DurableObjectState, store: RunStore, run_id: () => string) {
		this.#ctx = ctx;
		this.#store = store;
		this.#run_id = run_id;
	}

	/**
	 * Accepts a listener and replays everything after `after_seq` before anything new can reach it (nothing is awaited). One
	 * more than the run or the principal may have gets 429: sockets are what a reader could hold without end.
	 */
	open(after_seq: number, principal_id: string): Response {
		const mine = this.#ctx.getWebSockets(principal_id).length;
		if (mine >= LISTENERS_OF_ONE_MAX) return full(`you listen to this run ${mine} times already`);
		const all = this.#ctx.getWebSockets().length;
		if (all >= LISTENERS_MAX) return full(`this run has ${all} listeners already`);
		const { 0: client, 1: server } = new WebSocketPair();
		this.#ctx.acceptWebSocket(server, [principal_id]);
		for (const row of this.#store.log.after(after_seq)) server.send(frame(this.#run_id(), row));
		return new Response(null, { status: 101, webSocket: client });
	}

	publish(rows: readonly LogRow[]): void {
		if (rows.length === 0) return;
		const listeners = this.#ctx.getWebSockets();
		if (listeners.length === 0) return;
		const frames = rows.map((row) => frame(this.#run_id(), row));
		for (const listener of listeners) for (const text of frames) send(listener, text);
	}

	/** A piece of the planner's text: not in the log, so without an id to resume from. */
	delta(data: { turn: number; content: string }): void {
		const text = JSON.stringify({ seq: null, event: "message.delta", data: { run_id: this.#run_id(), ...data } });
		for (const listener of this.#ctx.getWebSockets()) send(listener, text);
	}
}

function full(why: string): Response {
	const { problem } = no(429, "rate_limited", `${why}; close a stream first, or read the run with \`Prefer: wait\``);
	return Response.json({ ...problem, retry_after_s: RETRY_AFTER_S }, { status: problem.status });
}

/** Every entry says whose it is, which one and when; it is stored without, since its place says so. */
const frame = (run_id: string, { seq, at, event, data }: LogRow): string =>
	JSON.stringify({ seq, event, data: { seq, at, run_id, ...data } });

function send(listener: WebSocket, text: string): void {
	try {
		listener.send(text);
	} catch {
		// It is gone; its client resumes by seq.
	}
}
