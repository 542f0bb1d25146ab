/**
 * Everything around the runs: control and its lease, the registry, gates, the upstream, planners, and the letters between
 * them. Letters arrive in any order, some twice, some never; a run that dies gets none of those sent to its old life.
 */
import { HALT_RECHECK_MS, LEASE_TTL_MS } from "#core/limits.ts";
import type { Lease } from "#core/ports.ts";
import type { Authority } from "#core/principal.ts";
import type { RunEvent } from "#core/run/event.ts";
import { CALLER, START } from "#core/run/sample-run.ts";
import type { ApprovalRecord, PlannerKind, World } from "#core/run/state.ts";
import type { Step } from "#core/run/transition.ts";
import { checkStep } from "./check-step.ts";
import type { Dice } from "./dice.ts";
import type { Features } from "./features.ts";
import { GateTwin } from "./gate-twin.ts";
import { perform } from "./perform.ts";
import { type RunOptions, RunTwin } from "./run-twin.ts";
import { SandboxTwin } from "./sandbox-twin.ts";
import { fail } from "./taken.ts";
import { CHECKED_REGISTRIES, PRICED_REGISTRIES, REGISTRIES } from "./tools.ts";
import { UpstreamTwin } from "./upstream-twin.ts";

/** No request waits longer for its answer: past it the letter is lost. */
const LETTER_MAX_MS = 150_000;

const WHOLE: Authority = CALLER.authority;
const NARROW: Authority = {
	...WHOLE,
	permissions: ["*:read:*", "tools:write:pay", "tools:write:keyed", "approval:decide:*"],
};

/** On its way to a run of one life. `event` is made when it arrives, with the world of that moment. */
export type Letter = {
	readonly run: RunTwin;
	readonly boot: number;
	readonly sent_at: number;
	readonly what: string;
	readonly call: string;
	event: (world: World) => RunEvent;
	/** How often the checks of its calls were run: see sandbox-twin.ts. */
	readonly rounds: number;
};

/** What happens to the next step of a run: its rows are lost, or they are saved and what should follow is not all done. */
export type Doom = "before_save" | "after_save" | null;

export class Town {
	now = START;
	readonly dice: Dice;
	readonly runs: RunTwin[] = [];
	readonly gates = new Map<string, GateTwin>();
	readonly upstream: UpstreamTwin;
	letters: Letter[] = [];
	registry = 0;
	registry_rev = 1;
	policy_rev = 1;
	narrow = false;
	control = true;
	gate = true;
	revoked = false;
	/** One after the other, never two at a time; the last may be open. */
	halted: { scope: string; since: number; until: number | null }[] = [];
	calm = false;
	readonly dooms = new Map<RunTwin, Exclude<Doom, null>>();
	/** Approvals that a person said yes to, with the hash that they saw. */
	readonly granted = new Map<string, string>();
	readonly note: (line: string) => void;
	readonly #limits: Dice | null;
	#lease: Lease | null = null;

	/** Runs the checks of tools that have one; null where none has. */
	readonly sandbox: SandboxTwin | null;
	readonly registries: typeof REGISTRIES;

	constructor(dice: Dice, note: (line: string) => void, { checks, limits }: Features) {
		this.dice = dice;
		this.sandbox = checks === null ? null : new SandboxTwin(checks);
		this.#limits = limits;
		this.registries = checks !== null ? CHECKED_REGISTRIES : limits !== null ? PRICED_REGISTRIES : REGISTRIES;
		this.registry = checks?.below(CHECKED_REGISTRIES.length) ?? 0;
		this.note = note;
		this.upstream = new UpstreamTwin(dice);
	}

	/** Control's word is held for some seconds, like the shell holds it; where a person acts it is asked anew. */
	world(run: RunTwin, fresh = false): World {
		const held = run.state?.run.authority ?? WHOLE;
		const lease = this.#leased(fresh);
		if (lease === null) return { lease: null, authority: held, tools: null };
		const authority =
			held.policy_rev === lease.policy_rev ? held : { ...(this.narrow ? NARROW : WHOLE), policy_rev: lease.policy_rev };
		const exposure = run.state?.exposure ?? null;
		const stands = exposure?.registry_rev === lease.registry_rev && exposure.policy_rev === lease.policy_rev;
		// The catalog of a newer revision than the lease's may be read; never of an older one.
		return { lease, authority, tools: stands ? null : (this.registries[this.registry] ?? null) };
	}

	#leased(fresh: boolean): Lease | null {
		const held = this.#lease;
		if (!fresh && held !== null && this.now - held.issued_at < LEASE_TTL_MS * 0.8) return held;
		if (!this.control) return null;
		const open_breakers = [...this.gates]
			.filter(([, gate]) => gate.breaker.until !== null)
			.map(([tool_id, gate]) => ({ tool_id, until: gate.breaker.until ?? 0 }));
		this.#lease = {
			policy_rev: this.policy_rev,
			registry_rev: this.registry_rev,
			revoked_principals: this.revoked ? [CALLER.principal_id] : [],
			halts: this.halted.filter(({ until }) => until === null),
			halted: [...this.halted],
			open_breakers,
			issued_at: this.now,
		};
		return this.#lease;
	}

	/** Whether a provider says nothing of what its model used. */
	unsaid(): boolean {
		return !this.calm && this.#limits?.maybe(0.06) === true;
	}

	/** True when there was one to end. */
	endHalt(): boolean {
		const last = this.halted.at(-1);
		if (last?.until !== null) return false;
		this.halted = [...this.halted.slice(0, -1), { ...last, until: this.now }];
		return true;
	}

	/** When an approval ends: its own time and what halts took from it. */
	endOf({ created_at, expires_at_ms, tool_id }: ApprovalRecord): number {
		let end = expires_at_ms;
		for (const { scope, since, until } of this.halted)
			if (scope === "tenant" || scope === `tool:${tool_id}`)
				end += Math.max(0, (until ?? this.now) - Math.max(since, Date.parse(created_at)));
		return end;
	}

	gateOf(tool_id: string): GateTwin {
		const found = this.gates.get(tool_id) ?? new GateTwin();
		this.gates.set(tool_id, found);
		return found;
	}

	/** Some of its limits are thrown here, whatever the options say. */
	begin(name: string, planner: PlannerKind, options: RunOptions): RunTwin {
		const { functions = [], prices, limits = {}, played } = options;
		const run = new RunTwin(name, planner, this.dice, options);
		this.runs.push(run);
		this.step(run, {
			kind: "created",
			run_id: `run_${("abcdef"[this.runs.length - 1] ?? fail("too many runs")).repeat(32)}`,
			request_hash: "h",
			trace_id: "t",
			session_id: played === undefined ? "sess_1" : name,
			goal: "goal",
			messages: [],
			pinned: null,
			planner: { kind: planner, model: null },
			prices,
			script_length: played?.script.length ?? 0,
			replay: played?.replay,
			limits: {
				turns: this.dice.maybe(0.1) ? 2 : 40,
				turn_timeout_ms: this.dice.pick([20_000, 120_000, 600_000]),
				session_timeout_ms: this.dice.pick([60_000, 1_800_000]),
				max_tokens: this.dice.maybe(0.05) ? 50 : 0,
				...limits,
			},
			metadata: {},
			context: {},
			...(functions.length === 0 ? {} : { caller_functions: functions }),
			caller: CALLER,
			world: this.world(run),
		});
		return run;
	}

	/** An event reaches a run, which recovers first if this is a new life. Null: the object died of it, or its checks are run first. */
	step(run: RunTwin, event: RunEvent | ((world: World) => RunEvent), fresh = false, rounds = 0): Step | null {
		if (run.run !== null && run.state === null && run.wake()) {
			const recovered = this.#apply(run, { kind: "booted", world: this.world(run) });
			if (recovered === null) return null;
		}
		const asked = typeof event === "function" ? event(this.world(run, fresh)) : event;
		const known = this.sandbox === null ? asked : this.sandbox.gather(this, run, asked, rounds);
		return known === null ? null : this.#apply(run, known);
	}

	#apply(run: RunTwin, event: RunEvent): Step | null {
		const before = run.state;
		const saved = run.run;
		const step = run.compute(event, this.now);
		const doom = this.dooms.get(run) ?? null;
		this.dooms.delete(run);
		this.note(
			`${run.name} ${event.kind}${doom === null ? "" : ` (${doom})`} -> ${step.problem?.code ?? step.state?.run.status}`,
		);
		if (doom === "before_save" && run.run !== null) {
			run.die();
			return null;
		}
		run.save(step);
		checkStep(this, run, { before, saved, event, step });
		// Dying after the save cuts the list of what was to be done at any point.
		const alive = doom === null ? step.effects.length : this.dice.below(step.effects.length + 1);
		for (const effect of step.effects.slice(0, alive)) perform(this, run, effect);
		if (doom === null) return step;
		run.die();
		return null;
	}

	/** A letter of the caller's: it may come twice, late, or to a run that has moved on. */
	post(run: RunTwin, event: Letter["event"]): void {
		this.send(run, "answered", "", event);
	}

	/** Puts a letter into the bag, for this life of the run. */
	send(run: RunTwin, what: string, call: string, event: Letter["event"], rounds = 0): void {
		this.letters.push({ run, boot: run.boot, sent_at: this.now, what, call, event, rounds });
	}

	/** One letter, any of them. Sometimes a copy stays in the bag and comes again. */
	deliver(): void {
		if (this.letters.length === 0) return;
		const at = this.dice.below(this.letters.length);
		const letter = this.letters[at] as Letter;
		const copy = !this.calm && this.dice.maybe(0.06);
		if (!copy) {
			this.letters[at] = this.letters.at(-1) as Letter;
			this.letters.pop();
		}
		if (letter.boot !== letter.run.boot || this.now - letter.sent_at > LETTER_MAX_MS) return;
		this.step(letter.run, letter.event, false, letter.rounds);
	}

	/** The alarm reads what is due, then serves it one by one; other events come between. The object may die before the end. */
	ring(run: RunTwin): void {
		for (const { kind, ref, at } of run.due.values()) {
			if (at > this.now || kind === "flush") continue;
			this.send(run, `due ${kind}`, ref, (world) =>
				kind === "leave"
					? { kind: "due", what: kind, ref, call: run.calls.get(ref) ?? null, world }
					: { kind: "due", what: kind, ref, world },
			);
		}
	}

	pass(ms: number): void {
		this.now += ms;
		for (const gate of this.gates.values()) gate.sweep(this.now);
	}

	/** And falls ill again. */
	unsettle(): void {
		this.calm = false;
		this.upstream.calm = false;
	}

	/** The world gets well: from here on only what is still owed happens. */
	settleDown(): void {
		this.calm = true;
		this.upstream.calm = true;
		this.control = true;
		this.gate = true;
		this.endHalt();
		this.dooms.clear();
		this.pass(HALT_RECHECK_MS);
	}
}
