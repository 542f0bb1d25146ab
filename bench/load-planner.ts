/**
 * One external planner with its approver, as one of many: a run, one decision after the other with a tool of the mix, a
 * word on what waits for one, and at the end an answer. It counts what it did, so that the databases can be held to it.
 */

import { seeded } from "#core/run/sample-run.ts";
import type { ApprovalView, RunView } from "#core/run/view.ts";
import type { Answer, Ask, Client } from "./load.ts";

type Turn = { readonly run: RunView; readonly pending_approvals: readonly ApprovalView[] };
export type Kind =
	| "allow"
	| "approve"
	| "deny"
	| "refused"
	| "http read"
	| "http write"
	| "http keyed"
	| "sql"
	| "code";

/** Of a hundred decisions. Programs are dear: an isolate runs two at a time. */
const MIX: readonly [Kind, number][] = [
	["allow", 30],
	["approve", 14],
	["deny", 6],
	["refused", 8],
	["http read", 14],
	["http write", 8],
	["http keyed", 8],
	["sql", 10],
	["code", 2],
];
const TOOLS = ["echo", "bench_ask", "load_read", "load_write", "load_keyed", "sales_query", "code_execute_js"];
/** A run takes no more than this many turns before it answers and another takes its place. */
const TURNS = 40;

export type Tally = {
	readonly times: Map<Kind, number[]>;
	readonly runs: string[];
	approvals: number;
	/** Statuses that were not what the request should have got. */
	readonly wrong: string[];
};

export class LoadPlanner {
	readonly #client: Client;
	readonly #keys: { readonly agent: string; readonly approver: string };
	readonly #tally: Tally;
	readonly #chance: () => number;
	readonly #name: number;

	constructor(client: Client, keys: { agent: string; approver: string }, tally: Tally, name: number) {
		this.#client = client;
		this.#keys = keys;
		this.#tally = tally;
		this.#name = name;
		this.#chance = seeded(name + 1);
	}

	/** Until `over` says so; every run that it began is brought to its end. */
	async work(over: () => boolean): Promise<void> {
		while (!over()) {
			const run_id = await this.#newRun();
			if (run_id === null) return;
			for (let turn = 0; turn < TURNS && !over(); turn++) await this.#turn(run_id, turn);
			await this.#ask(200, "agent", {
				method: "POST",
				path: `/v1/runs/${run_id}/decisions`,
				body: { content: "done", tool_calls: [] },
			});
		}
	}

	async #newRun(): Promise<string | null> {
		const limits = { turns: TURNS + 2, turn_timeout_ms: 600_000, session_timeout_ms: 3_600_000 };
		const body = { goal: "load", tools: TOOLS, planner: { kind: "external" }, limits };
		const made = await this.#ask<RunView>(201, "agent", { method: "POST", path: "/v1/runs", body });
		if (made === null) return null;
		this.#tally.runs.push(made.run_id);
		return made.run_id;
	}

	async #turn(run_id: string, turn: number): Promise<void> {
		const kind = this.#draw();
		const began = performance.now();
		const decided = await this.#ask<Turn>(200, "agent", {
			method: "POST",
			path: `/v1/runs/${run_id}/decisions`,
			headers: { prefer: "wait=60" },
			body: { content: null, tool_calls: [this.#call(kind, turn)] },
		});
		if (decided === null) return;
		const [approval] = decided.pending_approvals;
		if ((kind === "approve" || kind === "deny") !== (approval !== undefined))
			this.#wrong(`${kind}: approval ${approval?.status}`);
		if (approval !== undefined)
			await this.#decide(run_id, approval, kind === "deny" ? "deny" : "approve", decided.run.seq);
		else this.#see(kind, decided.run);
		const times = this.#tally.times.get(kind) ?? [];
		times.push(performance.now() - began);
		this.#tally.times.set(kind, times);
	}

	async #decide(run_id: string, approval: ApprovalView, decision: "approve" | "deny", seq: number): Promise<void> {
		this.#tally.approvals += 1;
		const { approval_id, tool_id, tool_call_id, input_hash } = approval;
		await this.#ask(200, "approver", {
			method: "POST",
			path: `/v1/approvals/${approval_id}/decision`,
			body: { decision, tool_id, tool_call_id, input_hash },
		});
		const run = await this.#ask<RunView>(200, "agent", {
			method: "GET",
			path: `/v1/runs/${run_id}?after_seq=${seq}`,
			headers: { prefer: "wait=60" },
		});
		if (run !== null) this.#see(decision, run);
	}

	#see(kind: Kind, run: RunView): void {
		const expected = kind === "refused" ? "REFUSED" : kind === "deny" ? "DENIED" : "COMPLETED";
		const last = run.calls.at(-1);
		if (last?.state !== expected || run.status !== "awaiting_decision")
			this.#wrong(`${kind}: ${last?.state} ${last?.error?.code ?? ""}, run ${run.status}`);
	}

	#call(kind: Kind, turn: number): unknown {
		const message = `${this.#name}-${turn}-${this.#tally.runs.length}`;
		const [name, args] = ((): [string, unknown] => {
			switch (kind) {
				case "allow":
					return ["echo", { message }];
				case "approve":
				case "deny":
					return ["bench_ask", { message }];
				case "refused":
					return ["echo", { message: 1 }];
				case "http read":
					return ["load_read", { message }];
				case "http write":
					return ["load_write", { message }];
				case "http keyed":
					return ["load_keyed", { message }];
				case "sql":
					return ["sales_query", { products: ["A", "B"], from_quarter: "2026-Q3" }];
				case "code":
					return ["code_execute_js", { code: "result = { n: 6 * 7 };" }];
			}
		})();
		return { id: `c${turn}`, type: "function", function: { name, arguments: JSON.stringify(args) } };
	}

	#draw(): Kind {
		let at = this.#chance() * 100;
		for (const [kind, share] of MIX) {
			at -= share;
			if (at < 0) return kind;
		}
		return "allow";
	}

	/** Null when the answer was not the expected one, which is noted; nothing is thrown, so that the load goes on. */
	async #ask<T = unknown>(status: number, who: "agent" | "approver", ask: Ask): Promise<T | null> {
		const headers = { ...ask.headers, authorization: `Bearer ${this.#keys[who]}` };
		const answer = await this.#client
			.ask({ ...ask, headers })
			.catch((fault: unknown): Answer => ({ status: 0, body: String(fault) }));
		if (answer.status === status) return JSON.parse(answer.body) as T;
		this.#wrong(
			`${ask.method} ${ask.path.replaceAll(/[0-9a-f]{32}/g, "#")}: ${answer.status} ${answer.body.slice(0, 200)}`,
		);
		return null;
	}

	#wrong(what: string): void {
		this.#tally.wrong.push(what);
	}
}
