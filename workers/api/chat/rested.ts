/** Waits for a run as long as a chat client would: until it rests, or the client's patience is nearly at its end. */
import { PREFER_WAIT_MAX_S } from "#core/limits.ts";
import type { Caller } from "#core/principal.ts";
import { RESTING, type RunView } from "#core/run/view.ts";
import type { Env } from "../env.ts";
import { askRun } from "../run-object.ts";

/** OpenAI's libraries give up after 10 minutes and then ask again, which would begin a second run: Belay answers before. */
const CHAT_WAIT_MAX_MS = 540_000;

/** The run as it is then; it may still work when the time was up or the client has gone. */
export async function rested(env: Env, caller: Caller, run: RunView, signal: AbortSignal): Promise<RunView> {
	const until = Date.now() + CHAT_WAIT_MAX_MS;
	let found = run;
	while (!RESTING.has(found.status) && !signal.aborted) {
		const left = until - Date.now();
		if (left <= 0) break;
		const wait_ms = Math.min(PREFER_WAIT_MAX_S * 1_000, left);
		found = await askRun(env, found.run_id, "read", (one) => one.read({ v: 1, caller, after_seq: null, wait_ms }));
	}
	return found;
}
