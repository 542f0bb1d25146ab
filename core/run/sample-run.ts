/**
 * A run for tests of the machine: a deterministic kit (seeded randomness, a clock that is set, a cheap digest), a few
 * tools, and a memory that keeps what the Durable Object would keep. Used by tests and the simulation only.
 */
import type { Json, JsonObject } from "../json.ts";
import type { StoredMessage } from "../planner/conversation.ts";
import type { Lease, PlannerDecision } from "../ports.ts";
import type { Caller } from "../principal.ts";
import type { ToolVersion } from "../registry/descriptor.ts";
import { type CompiledTool, compileTool } from "../registry/register.ts";
import { sampleTool } from "../registry/sample-tool.ts";
import type { Effect, LogRow, Row } from "./effect.ts";
import type { Created, RunEvent } from "./event.ts";
import type { Kit } from "./kit.ts";
import type { ApprovalRecord, CallRecord, RunRecord, RunState, World } from "./state.ts";
import { turnMessages } from "./tool-message-of.ts";
import { type Step, transition } from "./transition.ts";
import { withWordless } from "./wordless.ts";

/** mulberry32: small, seeded, good enough to choose and to name. */
export function seeded(seed: number): () => number {
	let state = seed >>> 0;
	return () => {
		state = (state + 0x6d2b79f5) >>> 0;
		let t = Math.imul(state ^ (state >>> 15), state | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
	};
}

/** Not a hash to trust: FNV-1a twice, 64 hex digits by repetition. Tests want it fast and stable. */
export function cheapDigest(text: string): string {
	let a = 0x811c9dc5;
	let b = 0x01000193;
	for (let i = 0; i < text.length; i++) {
		a = Math.imul(a ^ text.charCodeAt(i), 0x01000193) >>> 0;
		b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b) >>> 0;
	}
	return (a.toString(16).padStart(8, "0") + b.toString(16).padStart(8, "0")).repeat(4);
}

export const START = Date.UTC(2026, 10, 30);

const http = { kind: "http", method: "POST", url: "https://ledger.test/x" };
const open = { type: "object", properties: { to: { type: "string" } } };
const tool = (tool_id: string, more: JsonObject): ToolVersion =>
	sampleTool({ tool_id, name: tool_id, input_schema: open, implementation: http, ...more }, cheapDigest);

/** A gated write, a free write, a keyed write, reads, and one of each way that a tool may declare for bad ends. */
export const TOOLS: readonly ToolVersion[] = [
	tool("asks", { effect: "write", approval: { mode: "never" }, on_unknown: "ask" }),
	tool("backed", {
		effect: "read",
		approval: { mode: "never" },
		fallback: { tool_id: "find", args: { to: "args.to" } },
		input_schema: { ...open, required: ["to"] },
	}),
	tool("backed_by_pay", { effect: "read", approval: { mode: "never" }, fallback: { tool_id: "pay", args: {} } }),
	tool("checked", { effect: "write", approval: { mode: "never" }, on_unknown: "reconcile:status" }),
	tool("stops", { effect: "write", approval: { mode: "never" }, on_unknown: "fail" }),
	tool("status", {
		effect: "read",
		approval: { mode: "never" },
		visibility: "internal",
		input_schema: { type: "object", properties: { tool_call_id: { type: "string" } } },
	}),
	tool("find", { effect: "read", approval: { mode: "never" } }),
	tool("keyed", { effect: "write", approval: { mode: "never" }, idempotency: { mode: "key" } }),
	tool("note", { effect: "write", approval: { mode: "never" } }),
	tool("pay", { effect: "write", approval: { mode: "always" } }),
];

export const CALLER: Caller = {
	tenant_id: "tenant_t",
	principal_id: "usr_o",
	kind: "user",
	name: "operator@example.com",
	authority: { policy_rev: 1, roles: ["agent_operator"], permissions: ["*:*:*"], tools: [], data_scope: "all" },
};

export class SampleRun {
	now = START;
	boot = 1;
	state: RunState | null = null;
	/** What storage holds: the working state is rebuilt from it after a restart. */
	readonly calls = new Map<string, CallRecord>();
	readonly approvals = new Map<string, ApprovalRecord>();
	readonly log: LogRow[] = [];
	readonly messages: StoredMessage[] = [];
	/** Who was answered, as the planner is told: by stored messages, or by what one outside reads. */
	readonly toolMessages: string[] = [];
	readonly due = new Map<string, { kind: string; ref: string; at: number }>();
	effects: Effect[] = [];
	tools: readonly ToolVersion[] = TOOLS;
	registry_rev = 1;
	lease: Partial<Lease> | null = {};
	readonly #random: () => number;
	readonly #compiled = new Map<string, CompiledTool>();
	#stored: { run: RunRecord; exposure: RunState["exposure"] } | null = null;

	constructor(seed = 1) {
		this.#random = seeded(seed);
		for (const version of TOOLS) this.#compiled.set(version.definition_hash, compileTool(version));
	}

	kit(): Kit {
		return {
			now: this.now,
			random: (n) => Uint8Array.from({ length: n }, () => Math.floor(this.#random() * 256)),
			digest: cheapDigest,
			sign: (text) => `signed ${text.slice(0, 8)}`,
			tool: (hash) => this.#compiled.get(hash) as CompiledTool,
			judgeUrl: () => ({ ok: true }),
			past: {
				callsOf: (turn) => [...this.calls.values()].filter((call) => call.turn === turn),
				messages: () => this.messages,
			},
			tenant_salt: "salt",
			takePlace: () => true,
			boot_id: `boot${this.boot}`,
			environment: "test",
		};
	}

	world(): World {
		const { state, lease } = this;
		const authority = state?.run.authority ?? CALLER.authority;
		if (lease === null) return { lease: null, authority, tools: null };
		const said: Lease = {
			policy_rev: 1,
			registry_rev: this.registry_rev,
			revoked_principals: [],
			halts: [],
			halted: [],
			open_breakers: [],
			issued_at: this.now,
			...lease,
		};
		const stands = state?.exposure?.registry_rev === this.registry_rev;
		return { lease: said, authority, tools: stands ? null : this.tools };
	}

	create(more: Partial<Created> = {}): Step {
		return this.step({
			kind: "created",
			run_id: `run_${"a".repeat(32)}`,
			request_hash: "h",
			trace_id: "t",
			session_id: "sess_1",
			goal: "goal",
			messages: [],
			pinned: null,
			planner: { kind: "external", model: null },
			script_length: 0,
			limits: { turns: 20, turn_timeout_ms: 120_000, session_timeout_ms: 600_000, max_tokens: 0 },
			metadata: {},
			context: {},
			caller: CALLER,
			world: this.world(),
			...more,
		});
	}

	/** One step, saved as the store would. `lost` throws its rows away: the object died before they were saved. */
	step(event: RunEvent, lost = false): Step {
		const step = transition(this.state, event, this.kit());
		if (lost) return step;
		for (const row of step.rows) this.#save(row);
		this.state = step.state;
		this.effects.push(...step.effects);
		return step;
	}

	#save(row: Row): void {
		if (row.table === "run") this.#read(row.doc);
		if (row.table === "run") this.#stored = { run: row.doc, exposure: this.#stored?.exposure ?? null };
		else if (row.table === "exposure" && this.#stored !== null) this.#stored = { ...this.#stored, exposure: row.doc };
		else if (row.table === "exposure") this.#stored = { run: undefined as unknown as RunRecord, exposure: row.doc };
		else if (row.table === "call") this.calls.set(row.doc.tool_call_id, row.doc);
		else if (row.table === "approval") this.approvals.set(row.doc.approval_id, row.doc);
		else if (row.table === "log") this.log.push(row.doc);
		else if (row.table === "message") {
			this.messages.push(row.doc);
			if (row.doc.role === "tool") this.toolMessages.push(row.doc.tool_call_id ?? "");
		} else if (row.table === "due") this.due.set(`${row.kind}:${row.ref}`, row);
		else if (row.table === "due_done") this.due.delete(`${row.kind}:${row.ref}`);
	}

	/** A planner outside reads the answers of a closed turn; no messages are kept for it. */
	#read({ planner, closed_turn }: RunRecord): void {
		if (planner.kind !== "external" || closed_turn <= ((this.#stored?.run as RunRecord | undefined)?.closed_turn ?? 0))
			return;
		const calls = [...this.calls.values()].filter((call) => call.turn === closed_turn);
		this.toolMessages.push(...turnMessages(calls).map((one) => one.tool_call_id));
	}

	/** Its messages as a recording reads them. */
	heard(): StoredMessage[] {
		const called = new Set([...this.calls.values()].map(({ turn }) => turn));
		return withWordless(
			this.messages,
			[...called].sort((a, b) => a - b),
		);
	}

	/** Memory is lost; what was stored is read again, as the Durable Object does. */
	restart(): void {
		this.boot += 1;
		this.effects = [];
		if (this.#stored === null) return;
		const { run, exposure } = this.#stored;
		const live = new Set(["AWAITING_APPROVAL", "PENDING", "DISPATCHED", "RUNNING"]);
		const calls = [...this.calls.values()]
			.filter((call) => call.turn === run.turn || live.has(call.state))
			.sort((a, b) => a.ordinal - b.ordinal);
		const ofTurn = new Set(calls.map((call) => call.tool_call_id));
		const approvals = [...this.approvals.values()].filter(
			(one) => one.status === "pending" || ofTurn.has(one.tool_call_id),
		);
		this.state = {
			run,
			exposure,
			calls: new Map(calls.map((call) => [call.tool_call_id, call])),
			approvals: new Map(approvals.map((one) => [one.approval_id, one])),
		};
		this.step({ kind: "booted", world: this.world() });
	}

	decide(calls: readonly [name: string, id: string, args: Json][], more: Partial<PlannerDecision> = {}): Step {
		const decision: PlannerDecision = {
			content: calls.length === 0 ? "answer" : null,
			tool_calls: calls.map(([name, id, args]) => ({ id, name, arguments: JSON.stringify(args) })),
			finish_reason: calls.length === 0 ? "stop" : "tool_calls",
			usage: { prompt_tokens: 0, completion_tokens: 0 },
			...more,
		};
		return this.step({
			kind: "planned",
			turn: this.state?.run.turn ?? 0,
			decision,
			call_as_text: false,
			results: null,
			world: this.world(),
		});
	}

	approve(approval_id: string, decision: "approve" | "deny" = "approve", more: object = {}): Step {
		const approval = this.approvals.get(approval_id) ?? null;
		const { tool_id = "", tool_call_id = "", input_hash = "" } = approval ?? {};
		const base = {
			kind: "approval_decided",
			approval_id,
			approval,
			decision,
			tool_id,
			tool_call_id,
			input_hash,
			reason: null,
		} as const;
		return this.step({ ...base, by: CALLER, via: "api", world: this.world(), ...more });
	}

	/** Takes an invocation out of what is to be performed. */
	takeInvoke(): Extract<Effect, { kind: "invoke" }> | undefined {
		const at = this.effects.findIndex((effect) => effect.kind === "invoke");
		return at < 0 ? undefined : (this.effects.splice(at, 1)[0] as Extract<Effect, { kind: "invoke" }>);
	}

	succeed(invoke: Extract<Effect, { kind: "invoke" }>, result: Json = {}): Step {
		const outcome = { kind: "success", result, facts: [], notes: [] } as const;
		return this.step({
			kind: "settled",
			tool_call_id: invoke.call.tool_call_id,
			attempt: invoke.attempt,
			outcome,
			world: this.world(),
		});
	}
}
