/**
 * Server-sent events over a WebSocket to the run's object (decision 10): the Worker holds the client, so the object can
 * sleep. Frames come in as `{seq, event, data}` and go out with `id:` = seq, so that `Last-Event-ID` resumes; a frame
 * without seq (`message.delta`) has no id. The client may vanish without a signal or never read (C07): the buffer is
 * bounded and a stalled stream is ended, and the client comes back with the last id it saw. Called by `routes/run-events`.
 */
import { EVENT_NAMES } from "#core/run/view.ts";

/** A comment this often keeps proxies from closing an idle stream and finds clients that are gone. */
export const HEARTBEAT_MS = 15_000;
/** Bytes that may wait for a slow client: a few hundred frames. More means it does not read. */
export const BUFFER_MAX_BYTES = 1_048_576;
/** Heartbeats that nobody took before the stream ends: one minute. */
const STALLED_HEARTBEATS_MAX = 4;

export const STREAM_HEADERS: Readonly<Record<string, string>> = {
	"content-type": "text/event-stream; charset=utf-8",
	// no-transform: a compressing proxy would hold events back
	"cache-control": "no-cache, no-store, no-transform",
	"x-accel-buffering": "no",
};

type Frame = { readonly seq: number | null; readonly event: string; readonly data: unknown };

/**
 * The body of an event stream fed by an accepted `socket`; whichever side ends first ends the other. `allowed` is asked at
 * every heartbeat whether the client may still listen, and ends the stream when not; it never rejects.
 */
export function eventStream(
	socket: WebSocket,
	signal: AbortSignal,
	allowed: () => Promise<boolean>,
): ReadableStream<Uint8Array> {
	const encoder = new TextEncoder();
	let heartbeat: ReturnType<typeof setInterval> | undefined;
	let stalled = 0;
	let open = true;

	const end = (): boolean => {
		if (!open) return false;
		open = false;
		clearInterval(heartbeat);
		try {
			socket.close(1000, "done");
		} catch {
			// it was closed from the other side
		}
		return true;
	};

	return new ReadableStream<Uint8Array>(
		{
			start(controller) {
				const finish = (): void => {
					if (end()) controller.close();
				};
				const write = (text: string): void => {
					if (!open) return;
					controller.enqueue(encoder.encode(text));
					if ((controller.desiredSize ?? 0) <= 0) finish();
				};
				socket.addEventListener("message", (message) => {
					const text = typeof message.data === "string" ? toEvent(message.data) : undefined;
					if (text !== undefined) write(text);
				});
				socket.addEventListener("close", finish);
				socket.addEventListener("error", finish);
				signal.addEventListener("abort", finish);
				heartbeat = setInterval(() => {
					stalled = (controller.desiredSize ?? 0) < BUFFER_MAX_BYTES ? stalled + 1 : 0;
					if (stalled > STALLED_HEARTBEATS_MAX) finish();
					else {
						write(": heartbeat\n\n");
						void allowed().then((still) => {
							if (!still) finish();
						});
					}
				}, HEARTBEAT_MS);
				write(": open\n\n");
				socket.accept();
			},
			cancel() {
				end();
			},
		},
		new ByteLengthQueuingStrategy({ highWaterMark: BUFFER_MAX_BYTES }),
	);
}

/** One frame as event-stream text; undefined for what is no frame. Data is one line of JSON, so it cannot forge a field. */
export function toEvent(raw: string): string | undefined {
	let frame: Frame;
	try {
		frame = JSON.parse(raw) as Frame;
	} catch {
		return undefined;
	}
	if (typeof frame !== "object" || frame === null || !(EVENT_NAMES as readonly string[]).includes(frame.event))
		return undefined;
	const id = Number.isSafeInteger(frame.seq) ? `id: ${frame.seq}\n` : "";
	return `${id}event: ${frame.event}\ndata: ${JSON.stringify(frame.data)}\n\n`;
}
