/**
 * What every planner that streams has around its turn: one abort for a cancelled run, a turn without time and a silent
 * stream, each told apart; and the faults and the cut-off that follow. Called by the OpenAI and the Workers AI planner.
 */
import { PLANNER_IDLE_MS } from "#core/limits.ts";
import type { CancelSignal, PlannerDecision, PlannerFault, PlannerRequest } from "#core/ports.ts";

type Stop = "cancelled" | "total" | "idle";

export type Bounds = {
	readonly signal: AbortSignal;
	/** Something came: the silence is counted anew. */
	readonly alive: () => void;
	/** Passes text on. Who listens to it may be gone; the turn is worth having all the same. */
	readonly say: (delta: { content: string }) => void;
};
export type Planned =
	| { readonly ok: true; readonly decision: PlannerDecision; readonly call_as_text: boolean }
	| { readonly ok: false; readonly fault: PlannerFault };

/** One turn within `request.timeout_ms` and, between two signs of life, `idleMs`. Never throws. `fault` is asked for what nobody stopped. */
export async function boundedTurn(
	request: PlannerRequest,
	cancel: CancelSignal,
	onDelta: (delta: { content: string }) => void,
	idleMs: number = PLANNER_IDLE_MS,
	turn: (bounds: Bounds) => Promise<Planned>,
	fault: (error: unknown) => PlannerFault | Promise<PlannerFault>,
): Promise<Planned> {
	const controller = new AbortController();
	let why: Stop | undefined;
	const stop = (reason: Stop): void => {
		why ??= reason;
		controller.abort();
	};
	const cancelled = (): void => stop("cancelled");
	const total = setTimeout(() => stop("total"), request.timeout_ms);
	let idle = setTimeout(() => stop("idle"), idleMs);
	const alive = (): void => {
		clearTimeout(idle);
		idle = setTimeout(() => stop("idle"), idleMs);
	};
	if (cancel instanceof AbortSignal) cancel.addEventListener("abort", cancelled);
	if (cancel.aborted) cancelled();
	const say = (delta: { content: string }): void => {
		try {
			onDelta(delta);
		} catch {
			return;
		}
	};
	try {
		return await turn({ signal: controller.signal, alive, say });
	} catch (error) {
		return { ok: false, fault: why === undefined ? await fault(error) : STOPPED[why] };
	} finally {
		clearTimeout(total);
		clearTimeout(idle);
		if (cancel instanceof AbortSignal) cancel.removeEventListener("abort", cancelled);
		controller.abort();
	}
}

const STOPPED: Readonly<Record<Stop, PlannerFault>> = {
	cancelled: { code: "planner_error", message: "the plan was cancelled", retryable: false },
	total: { code: "planner_timeout", message: "the planner took longer than its turn has left", retryable: false },
	idle: { code: "planner_timeout", message: "the planner's stream went silent", retryable: true },
};

/** The stream ended without its end mark, or lost an event: complete-looking arguments may lack their end. */
export function cutOff(decision: PlannerDecision): PlannerDecision {
	const clean = decision.finish_reason === "tool_calls" || decision.finish_reason === "stop";
	return clean ? { ...decision, finish_reason: "cut_off" } : decision;
}
