/**
 * One run as its Durable Object holds it: a working state in memory, and what was saved. A death takes the memory; the
 * next life reads what was saved and recovers, exactly as AgentRun does. It performs nothing: the town does.
 */

import type { Evidence } from "#core/evidence/record.ts";
import type { StoredMessage } from "#core/planner/conversation.ts";
import type { TokenPrices } from "#core/run/budget.ts";
import { DERIVED, derivedTimers } from "#core/run/derived-timers.ts";
import type { LogRow, Row } from "#core/run/effect.ts";
import type { RunEvent } from "#core/run/event.ts";
import { isOut } from "#core/run/flight.ts";
import type { Kit } from "#core/run/kit.ts";
import { cheapDigest } from "#core/run/sample-run.ts";
import type {
	ApprovalRecord,
	CallerFunction,
	CallRecord,
	DueKind,
	Exposure,
	PlannerKind,
	RunLimits,
	RunRecord,
	RunState,
} from "#core/run/state.ts";
import { turnMessages } from "#core/run/tool-message-of.ts";
import { type Step, transition } from "#core/run/transition.ts";
import { LIVE, type TurnMessage } from "#core/run/view.ts";
import { storedCall } from "#core/run/wordless.ts";
import type { Dice } from "./dice.ts";
import type { Played } from "./replay-twin.ts";
import { toolOf } from "./tools.ts";

export type Timer = { readonly kind: DueKind; readonly ref: string; readonly at: number };

export type RunOptions = {
	readonly functions?: readonly CallerFunction[];
	readonly prices?: TokenPrices | undefined;
	readonly limits?: Partial<RunLimits>;
	/** What it plays again. */
	readonly played?: Played;
};

export class RunTwin {
	readonly name: string;
	readonly planner: PlannerKind;
	/** What its caller runs itself. */
	readonly functions: readonly CallerFunction[];
	/** Of its planner's tokens. */
	readonly prices: TokenPrices | undefined;
	/** Something that it used has no price, or nobody said how much it was. */
	unpriced = false;
	/** The recording that it plays; null in a run of its own. */
	readonly played: Played | null;
	/** Somebody had a hand in a replay. */
	disturbed = false;
	/** Null in a life that has not looked at its storage yet. */
	state: RunState | null = null;
	boot = 1;
	run: RunRecord | null = null;
	exposure: Exposure | null = null;
	readonly calls = new Map<string, CallRecord>();
	/** Calls by their numbers. */
	readonly places = new Map<number, string>();
	readonly approvals = new Map<string, ApprovalRecord>();
	readonly due = new Map<string, Timer>();
	readonly evidence: Evidence[] = [];
	/** How many log rows were saved; their numbers follow one another. */
	logged = 0;
	/** Those that are kept. */
	readonly messages: StoredMessage[] = [];
	/** Every decision and everything said, kept or not, as it came. */
	readonly whole: StoredMessage[] = [];
	/** Tool messages by call. */
	readonly answers = new Map<string, number>();
	/** The calls that the planner made, by turn and by the ids that it will find their answers under. */
	readonly asked = new Map<number, readonly string[]>();
	readonly #dice: Dice;

	constructor(name: string, planner: PlannerKind, dice: Dice, { functions = [], prices, played }: RunOptions) {
		this.name = name;
		this.planner = planner;
		this.functions = functions;
		this.prices = prices;
		this.played = played ?? null;
		this.#dice = dice;
	}

	kit(now: number): Kit {
		const { next } = this.#dice;
		return {
			now,
			random: (n) => {
				const bytes = new Uint8Array(n);
				for (let i = 0; i < n; i++) bytes[i] = next() * 256;
				return bytes;
			},
			digest: cheapDigest,
			sign: (text) => `signed ${text.slice(0, 16)}`,
			tool: toolOf,
			judgeUrl: () => ({ ok: true }),
			past: {
				callsOf: (turn) => [...this.calls.values()].filter((call) => call.turn === turn),
				messages: () => [],
			},
			tenant_salt: "salt",
			takePlace: () => next() < 0.97,
			boot_id: `boot${this.boot}`,
			environment: "test",
		};
	}

	/** The step as computed; nothing of it is saved. */
	compute(event: RunEvent, now: number): Step {
		return transition(this.state, event, this.kit(now));
	}

	/** All rows or none, then memory: the order of `apply`. */
	save(step: Step): void {
		for (const row of step.rows) this.#save(row);
		if ((this.run?.next_message ?? 1) - 1 > this.whole.length) this.#wordless(step);
		this.state = step.state;
	}

	/** A number was taken and no message kept: the step's new calls are what the planner said. */
	#wordless({ rows }: Step): void {
		const made = new Map<string, CallRecord>();
		for (const row of rows)
			if (row.table === "call" && row.doc.parent_call_id === null) made.set(row.doc.tool_call_id, row.doc);
		const tool_calls = [...made.values()].sort((a, b) => a.n - b.n).map(storedCall);
		const turn = [...made.values()][0]?.turn;
		if (this.planner !== "external" || turn === undefined) throw new Error("a message is missing");
		this.#heard({ n: this.whole.length + 1, turn, role: "assistant", content: null, tool_calls });
	}

	#heard(message: StoredMessage): void {
		if (message.n !== this.whole.length + 1) throw new Error(`message ${message.n} is not the next one`);
		this.whole.push(message);
		if (message.role !== "assistant" || message.tool_calls === undefined) return;
		const ids = message.tool_calls.map((one) => one.tool_call_id);
		this.asked.set(message.turn, ids);
	}

	/** What a planner outside reads of a turn's calls: no conversation is kept for it. */
	read(turn: number): TurnMessage[] {
		const calls = [...this.calls.values()].filter((call) => call.turn === turn);
		return turnMessages(calls.sort((a, b) => a.ordinal - b.ordinal));
	}

	die(): void {
		this.boot += 1;
		this.state = null;
	}

	/** A new life reads what was saved; true when it has to recover something. */
	wake(): boolean {
		const { run } = this;
		if (this.state !== null || run === null) return false;
		const calls = [...this.calls.values()].filter((call) => call.turn === run.turn || LIVE.has(call.state));
		calls.sort((a, b) => a.ordinal - b.ordinal);
		const approvals: [string, ApprovalRecord][] = [];
		for (const one of this.approvals.values())
			if (one.status === "pending" || this.calls.get(one.tool_call_id)?.turn === run.turn)
				approvals.push([one.approval_id, one]);
		this.state = {
			run,
			exposure: this.exposure,
			calls: new Map(calls.map((call) => [call.tool_call_id, call])),
			approvals: new Map(approvals),
		};
		// These are not stored: a new life works them out.
		for (const [name, { kind }] of this.due) if (DERIVED.has(kind)) this.due.delete(name);
		for (const timer of derivedTimers(this.state)) this.due.set(`${timer.kind}:${timer.ref}`, timer);
		const lost = run.status === "planning" && !this.due.has("plan:");
		return lost || calls.some((call) => isOut(call.state));
	}

	#save(row: Row): void {
		switch (row.table) {
			case "run":
				this.run = row.doc;
				return;
			case "exposure":
				this.exposure = row.doc;
				return;
			case "call":
				this.#place(row.doc);
				this.calls.set(row.doc.tool_call_id, row.doc);
				return;
			case "approval":
				this.approvals.set(row.doc.approval_id, row.doc);
				return;
			case "message":
				this.messages.push(row.doc);
				this.#heard(row.doc);
				if (row.doc.role === "tool") {
					const id = row.doc.tool_call_id ?? "";
					this.answers.set(id, (this.answers.get(id) ?? 0) + 1);
				}
				return;
			case "log":
				this.#log(row.doc);
				return;
			case "due":
				this.due.set(`${row.kind}:${row.ref}`, row);
				return;
			case "due_done":
				this.due.delete(`${row.kind}:${row.ref}`);
				return;
			case "definition":
				return;
		}
	}

	/** A call's row is found by its number: two under one would be one. */
	#place({ n, tool_call_id }: CallRecord): void {
		const there = this.places.get(n) ?? tool_call_id;
		if (there !== tool_call_id) throw new Error(`two calls have the number ${n}`);
		const before = this.calls.get(tool_call_id)?.n ?? n;
		if (before !== n) throw new Error(`a call's number went from ${before} to ${n}`);
		this.places.set(n, tool_call_id);
	}

	#log(doc: LogRow): void {
		if (doc.seq !== this.logged + 1) throw new Error(`the log has a gap at ${doc.seq}`);
		this.logged = doc.seq;
		if (doc.event === "evidence.recorded") this.evidence.push(doc.data as unknown as Evidence);
	}
}
