/** The API as the demo speaks it: fetch with a key, JSON both ways, and a run's event stream. Talks to loopback only. */
import type { Json } from "#core/json.ts";
import type { ApprovalView, Evidence, RunView } from "#core/run/view.ts";

export type StreamedEvent = { readonly event: string; readonly data: Record<string, unknown> };

export class BelayClient {
	readonly #base: string;
	readonly #key: string;

	constructor(base: string, key: string) {
		this.#base = base;
		this.#key = key;
	}

	async #ask<T>(method: string, path: string, body?: unknown, prefer?: string): Promise<T> {
		const headers: Record<string, string> = { authorization: `Bearer ${this.#key}` };
		if (body !== undefined) headers["content-type"] = "application/json";
		if (prefer !== undefined) headers.prefer = prefer;
		const answer = await fetch(`${this.#base}${path}`, {
			method,
			headers,
			body: body === undefined ? null : JSON.stringify(body),
		});
		const text = await answer.text();
		if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 800)}`);
		return JSON.parse(text) as T;
	}

	createRun(run: { readonly [name: string]: Json }): Promise<RunView> {
		return this.#ask("POST", "/v1/runs", run);
	}

	/** The run once it rests at a later place in its log than `after_seq`, or after 30 s. */
	rested(run_id: string, after_seq: number): Promise<RunView> {
		return this.#ask("GET", `/v1/runs/${run_id}?after_seq=${after_seq}`, undefined, "wait=30");
	}

	decide(approval: ApprovalView, decision: "approve" | "deny", reason: string): Promise<ApprovalView> {
		const { tool_id, tool_call_id, input_hash } = approval;
		return this.#ask("POST", `/v1/approvals/${approval.approval_id}/decision`, {
			decision,
			tool_id,
			tool_call_id,
			input_hash,
			reason,
		});
	}

	evidence(run_id: string): Promise<{ data: Evidence[]; head_hash: string }> {
		return this.#ask("GET", `/v1/runs/${run_id}/evidence`);
	}

	verify(run_id: string): Promise<{ valid: boolean; checked: number; broken_at: number | null }> {
		return this.#ask("GET", `/v1/runs/${run_id}/evidence/verify`);
	}

	/** Events from the beginning of the run until `signal` aborts or the stream ends. */
	async *events(run_id: string, signal: AbortSignal): AsyncGenerator<StreamedEvent> {
		const answer = await fetch(`${this.#base}/v1/runs/${run_id}/events`, {
			headers: { authorization: `Bearer ${this.#key}`, "last-event-id": "0" },
			signal,
		});
		if (!answer.ok || answer.body === null) throw new Error(`GET events: ${answer.status} ${await answer.text()}`);
		let rest = "";
		for await (const chunk of answer.body.pipeThrough(
			new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>,
		)) {
			const frames = (rest + chunk).split("\n\n");
			rest = frames.pop() ?? "";
			for (const frame of frames) {
				const event = /^event: (.+)$/m.exec(frame)?.[1];
				const data = /^data: (.+)$/m.exec(frame)?.[1];
				if (event !== undefined && data !== undefined)
					yield { event, data: JSON.parse(data) as Record<string, unknown> };
			}
		}
	}
}
