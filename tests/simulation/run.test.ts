/**
 * Seeded simulation of the run machine under a virtual clock: decisions, answers, approvals, lost steps, deaths of the
 * object before and after a save, timers ringing twice, control away. After every step the promises that matter are
 * checked; a failure prints its seed. Set SIM_SEEDS for more.
 */
import { describe, expect, it } from "vitest";
import type { Effect } from "#core/run/effect.ts";
import { CALLER, SampleRun, seeded } from "#core/run/sample-run.ts";

const SEEDS = Number(process.env.SIM_SEEDS ?? "2000");
const STEPS = 60;
const LIVE = ["AWAITING_APPROVAL", "PENDING", "DISPATCHED", "RUNNING"];
type Invoke = Extract<Effect, { kind: "invoke" }>;

/** The world's side effects, per call id: what an upstream would have seen. */
function simulate(seed: number): void {
	const chance = seeded(seed);
	const pick = <T>(list: readonly T[]): T => list[Math.floor(chance() * list.length)] as T;
	const run = new SampleRun(seed);
	const effects = new Map<string, number>();
	const decided = new Set<string>();
	let inFlight: Invoke[] = [];
	run.create({ limits: { turns: 12, turn_timeout_ms: 120_000, session_timeout_ms: 600_000, max_tokens: 0 } });

	const gates = (): void => {
		for (const effect of run.effects.splice(0)) {
			if (effect.kind !== "enter") {
				run.effects.push(effect);
				continue;
			}
			const at = run.now;
			const stored = { result: {}, notes: [], at, tool_call_id: "earlier" };
			const answer = pick([
				{ verdict: "go", probe: false },
				{ verdict: "go", probe: false },
				{ verdict: "wait", reason: "claim", retry_at: at + 2_000 },
				{ verdict: "open", until: at + 30_000, snapshot: null },
				{ verdict: "replay", first: stored },
				{ verdict: "replay_unknown", tool_call_id: "earlier" },
				null,
			] as const);
			// Null: the answer is lost, and the timer asks again.
			if (answer !== null)
				run.step({ kind: "gated", tool_call_id: effect.call.tool_call_id, answer, world: run.world() });
		}
		if (run.effects.some((effect) => effect.kind === "enter")) gates();
	};
	const take = (): void => {
		gates();
		for (let one = run.takeInvoke(); one !== undefined; one = run.takeInvoke()) {
			// The effect reaches the world only now, after its row was saved.
			effects.set(one.call.tool_call_id, (effects.get(one.call.tool_call_id) ?? 0) + 1);
			inFlight.push(one);
		}
	};
	const actions: (() => void)[] = [
		() => {
			if (run.state?.run.status !== "awaiting_decision") return;
			const calls = Array.from(
				{ length: 1 + Math.floor(chance() * 6) },
				(_, n) =>
					[
						pick([
							"find",
							"note",
							"pay",
							"keyed",
							"nope",
							"backed",
							"backed_by_pay",
							"checked",
							"asks",
							...(chance() < 0.02 ? ["stops"] : []),
						]),
						`c${n % 2}`,
						{ to: String(n % 2) },
					] as [string, string, object],
			);
			run.decide(calls as never, chance() < 0.1 ? { finish_reason: "length" } : {});
		},
		() => {
			const [one] = inFlight.splice(Math.floor(chance() * inFlight.length), 1);
			if (one === undefined) return;
			const { tool_call_id } = one.call;
			const outcome = pick([
				{ kind: "success", result: { happened: chance() < 0.5 }, facts: [], notes: [] },
				{ kind: "success", result: {}, facts: [], notes: [] },
				{ kind: "failed", code: "http_error", message: "404", effect: "none", retryable: false, http_status: 404 },
				{ kind: "failed", code: "http_error", message: "503", effect: "possible", retryable: true, http_status: 503 },
				{ kind: "timeout", phase: "headers", effect: "possible" },
			] as const);
			run.step({ kind: "settled", tool_call_id, attempt: one.attempt, outcome, world: run.world() });
			if (chance() < 0.2)
				run.step({ kind: "settled", tool_call_id, attempt: one.attempt, outcome, world: run.world() });
		},
		() => {
			const approval = pick([...run.approvals.values()]);
			if (approval === undefined) return;
			const before = approval.status;
			const { problem } = run.approve(approval.approval_id, chance() < 0.7 ? "approve" : "deny");
			if (problem === null) {
				if (decided.has(approval.approval_id)) throw new Error("decided twice");
				if (before !== "pending") throw new Error(`decided when ${before}`);
				decided.add(approval.approval_id);
			}
		},
		() => {
			// The object dies; what was in flight may have reached the world and reports to nobody.
			run.restart();
			inFlight = [];
		},
		() => {
			// It dies before a decision was saved: nothing of it happened.
			const approval = [...run.approvals.values()].find((one) => one.status === "pending");
			if (approval === undefined || run.state === null) return;
			const { tool_id, tool_call_id, input_hash, approval_id } = approval;
			const by = { ...run.state.run.principal, authority: run.state.run.authority };
			run.step(
				{
					kind: "approval_decided",
					approval_id,
					approval,
					decision: "approve",
					tool_id,
					tool_call_id,
					input_hash,
					reason: null,
					by,
					via: "api",
					world: run.world(),
				},
				true,
			);
			run.restart();
			inFlight = [];
		},
		() => {
			run.now += Math.floor(chance() * 90_000);
			const due = [...run.due.values()].filter((one) => one.at <= run.now && one.kind !== "flush");
			for (const one of due)
				for (let ring = 0; ring < 2; ring++)
					run.step({
						kind: "due",
						what: one.kind,
						ref: one.ref,
						call: run.calls.get(one.ref) ?? null,
						world: run.world(),
					} as never);
		},
		() => {
			run.lease = chance() < 0.5 ? null : chance() < 0.3 ? { halts: [{ scope: "tenant", since: 0 }] } : {};
		},
		() => {
			if (chance() < 0.05) run.step({ kind: "cancelled", by: "someone", world: run.world() });
			else if (run.state?.run.status === "suspended") run.step({ kind: "resumed", world: run.world() });
		},
	];

	const check = (): void => {
		for (const call of run.calls.values()) {
			const times = effects.get(call.tool_call_id) ?? 0;
			const gated = call.tool_id === "pay";
			if (answered(run, call.tool_call_id) && call.parent_call_id !== null)
				throw new Error("a stand-in was answered beside its parent");
			if (times > 1 && (["note", "checked", "asks", "stops"].includes(call.tool_id) || gated))
				throw new Error(`${call.tool_id} ran ${times} times`);
			if (times > 0 && gated && !decided.has(call.approval_id ?? "")) throw new Error("ran without a decision");
			if (gated && times > 0 && run.approvals.get(call.approval_id ?? "")?.status !== "consumed")
				throw new Error("ran without a consumed grant");
			if (call.state === "REFUSED" && times > 0 && gated) throw new Error("refused after it ran");
		}
		const seqs = run.log.map((row) => row.seq);
		if (seqs.some((seq, index) => seq !== index + 1)) throw new Error("the log has a gap");
		if (new Set(run.toolMessages).size !== run.toolMessages.length) throw new Error("a call was answered twice");
		const turn = run.state?.run.turn ?? 0;
		const open = run.state?.run.turn_open === true;
		for (const call of run.calls.values()) {
			const told = answered(run, call.tool_call_id);
			if (told && LIVE.includes(call.state)) throw new Error(`answered while ${call.state}`);
			if (
				call.parent_call_id === null &&
				call.superseded_by === null &&
				!told &&
				call.turn < turn &&
				!["cancelled", "failed"].includes(run.state?.run.status ?? "")
			)
				throw new Error("a closed turn left a call unanswered");
			if (
				call.turn === turn &&
				!open &&
				LIVE.includes(call.state) &&
				!["cancelled", "failed", "suspended"].includes(run.state?.run.status ?? "")
			)
				throw new Error("a live call in a closed turn");
		}
	};

	for (let n = 0; n < STEPS; n++) {
		pick(actions)();
		take();
		check();
	}
	// It always comes to rest: control is back, answers arrive, timers ring, people decide.
	run.lease = {};
	for (
		let n = 0;
		n < 400 &&
		(run.state?.calls.size ?? 0) > 0 &&
		[...(run.state?.calls.values() ?? [])].some((call) => LIVE.includes(call.state) || call.unsettled);
		n++
	) {
		if (run.state?.run.status === "suspended") run.step({ kind: "resumed", world: run.world() });
		for (const one of inFlight.splice(0))
			run.step({
				kind: "settled",
				tool_call_id: one.call.tool_call_id,
				attempt: one.attempt,
				outcome: { kind: "success", result: {}, facts: [], notes: [] },
				world: run.world(),
			});
		for (const call of [...run.calls.values()])
			if (call.unsettled && chance() < 0.5)
				run.step({
					kind: "outcome_stated",
					call,
					outcome: "happened",
					result: null,
					reason: "seen",
					by: { ...CALLER },
					world: run.world(),
				});
		for (const one of run.approvals.values())
			if (one.status === "pending")
				if (run.approve(one.approval_id, "deny").problem === null) decided.add(one.approval_id);
		run.now += 31_000;
		for (const due of [...run.due.values()])
			if (due.at <= run.now && due.kind !== "flush")
				run.step({
					kind: "due",
					what: due.kind,
					ref: due.ref,
					call: run.calls.get(due.ref) ?? null,
					world: run.world(),
				} as never);
		take();
		check();
	}
	const stuck = [...(run.state?.calls.values() ?? [])].filter(
		(call) => LIVE.includes(call.state) || (call.unsettled && run.state?.run.turn_open),
	);
	if (stuck.length > 0)
		throw new Error(`did not come to rest: ${run.state?.run.status} ${stuck.map((call) => call.state).join()}`);
}

const answered = (run: SampleRun, id: string): boolean => run.toolMessages.includes(id);

describe("simulation", () => {
	it(`keeps its promises over ${SEEDS} schedules`, { timeout: 600_000 }, () => {
		const first = Number(process.env.SIM_FIRST ?? "1");
		const started = performance.now();
		for (let seed = first; seed < first + SEEDS; seed++) {
			try {
				simulate(seed);
			} catch (error) {
				throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
			}
		}
		console.log(
			`simulation: ${SEEDS} schedules from seed ${first}, ${Math.round((1000 * SEEDS) / (performance.now() - started))} per second`,
		);
		expect(SEEDS).toBeGreaterThan(0);
	});
});
