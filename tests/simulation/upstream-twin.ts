/**
 * What the world really did. An upstream acts, or does not, the moment it is asked; its answer may say so, be lost, come
 * late, or be a fault. A keyed request is one operation, as its key promises. What it never does is lie: an answer
 * without effect is only given where it did not act. The checkers compare what runs say with this.
 */
import type { Json } from "#core/json.ts";
import type { InvokeOutcome } from "#core/outcome.ts";
import type { ToolDescriptor } from "#core/registry/descriptor.ts";
import type { CallRecord } from "#core/run/state.ts";
import type { Dice } from "./dice.ts";

export type Operation = { readonly tool_id: string; readonly to: string; readonly key: string; readonly at: number };

export class UpstreamTwin {
	/** How often a call acted: with a key at most once, whatever the number of requests. */
	readonly acted = new Map<string, number>();
	readonly requests = new Map<string, number>();
	/** Operations of keyed tools, in order. */
	readonly operations: Operation[] = [];
	calm = false;
	readonly #dice: Dice;

	constructor(dice: Dice) {
		this.#dice = dice;
	}

	/** One request, and what its sender gets to hear of it, if it lives. */
	ask(call: CallRecord, descriptor: ToolDescriptor, now: number): InvokeOutcome {
		const id = call.tool_call_id;
		this.requests.set(id, (this.requests.get(id) ?? 0) + 1);
		const reads = descriptor.effect === "read";
		const possible = reads ? "none" : "possible";
		const dice = this.#dice;
		const way = this.calm || dice.maybe(0.5) ? 0 : 1 + dice.below(8);
		if (way === 0) return this.#act(call, descriptor, now);
		// The effect comes first and its answer is lost, or there is none and nobody can tell.
		const did = way <= 4 && dice.maybe(0.5);
		const result = did ? this.#act(call, descriptor, now) : null;
		switch (way) {
			case 1:
				return {
					kind: "failed",
					code: "http_error",
					message: "503",
					effect: possible,
					retryable: true,
					http_status: 503,
				};
			case 2:
				return { kind: "failed", code: "connection_lost", message: "reset", effect: possible, retryable: true };
			case 3:
				return { kind: "timeout", phase: "headers", effect: possible };
			case 4:
				return result ?? { kind: "timeout", phase: "body", effect: possible };
			case 5:
				// An upstream that keeps its promise of keys answers a repeat with the first answer.
				if (descriptor.idempotency.mode === "key" && this.happened(call.tool_call_id))
					return this.#act(call, descriptor, now);
				return {
					kind: "failed",
					code: "http_error",
					message: "404",
					effect: "none",
					retryable: false,
					http_status: 404,
				};
			case 6:
				return {
					kind: "failed",
					code: "rate_limited",
					message: "429",
					effect: "none",
					retryable: true,
					http_status: 429,
					retry_after_ms: 1_000 * dice.below(20),
				};
			case 7:
				return { kind: "failed", code: "connection_lost", message: "not sent", effect: "none", retryable: true };
			default:
				return { kind: "failed", code: "redirect_refused", message: "refused", effect: "none", retryable: false };
		}
	}

	/** Whether a call took effect: what a status tool and a careful person find out. */
	happened(tool_call_id: string): boolean {
		return (this.acted.get(tool_call_id) ?? 0) > 0;
	}

	#act(call: CallRecord, descriptor: ToolDescriptor, now: number): InvokeOutcome {
		const id = call.tool_call_id;
		const keyed = descriptor.idempotency.mode === "key";
		const first = !this.acted.has(id);
		if (!keyed || first) this.acted.set(id, (this.acted.get(id) ?? 0) + 1);
		if (keyed && first)
			this.operations.push({ tool_id: call.tool_id, to: String(call.frozen?.to ?? ""), key: id, at: now });
		const asked = call.frozen?.tool_call_id;
		const said: Json =
			call.tool_id === "status" && typeof asked === "string" ? { happened: this.happened(asked) } : { n: 1 };
		const result = call.tool_id === "promised" && this.#dice.maybe(0.2) ? { n: "one" } : said;
		return { kind: "success", result: { body: result }, facts: [], notes: [] };
	}
}
