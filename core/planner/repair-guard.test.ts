import { describe, expect, test } from "vitest";
import { type FieldError, REFUSAL_REASONS } from "../refusal.ts";
import { seeded } from "../run/sample-run.ts";
import {
	EMPTY_REPAIR_GUARD,
	type RefusedCall,
	type RepairGuardState,
	type RepairVerdict,
	refusedCall,
	validCall,
} from "./repair-guard.ts";

const missing = (field: string): FieldError => ({
	error: `\`${field}\` is missing`,
	field,
	issue: "required_field_missing",
	expected: "a string",
	hint: "for example `acct_1`",
});
const refused = (turn: number, more: Partial<RefusedCall> = {}): RefusedCall => ({
	function_name: "pay",
	turn,
	reason: "validation_failed",
	errors: [missing("/to")],
	fallback: null,
	...more,
});

/** Plays refusals in order; the state goes through storage after each. */
function play(calls: readonly RefusedCall[], from: RepairGuardState = EMPTY_REPAIR_GUARD) {
	let state = from;
	const verdicts: RepairVerdict[] = [];
	for (const one of calls) {
		const next = refusedCall(JSON.parse(JSON.stringify(state)) as RepairGuardState, one);
		state = next.state;
		verdicts.push(next.verdict);
	}
	return { state, verdicts };
}
const kinds = (verdicts: readonly RepairVerdict[]) => verdicts.map((one) => one.kind);

describe("T13: a planner that always sends pay{}", () => {
	const { verdicts } = play([1, 2, 3, 4, 5].map((turn) => refused(turn)));

	test("is told twice, then that this is the end, and then the run ends", () =>
		expect(kinds(verdicts)).toEqual(["repair", "repair", "give_up", "stop", "stop"]));
	test("the first time gets the errors as they are", () =>
		expect(verdicts[0]).toEqual({ kind: "repair", attempt: 1, errors: [missing("/to")] }));
	test("the second identical failure says so, names the field and keeps the errors", () => {
		const second = verdicts[1];
		if (second?.kind !== "repair") throw new Error("no repair");
		expect(second.errors).toHaveLength(2);
		expect(second.errors[0]?.error).toContain("exactly the same way");
		expect(second.errors[0]?.expected).toContain("`/to`");
		expect(second.errors[0]?.hint).toContain("1 more attempt,");
		expect(second.errors[1]).toEqual(missing("/to"));
	});
	test("the third is a plain limit", () => {
		expect(verdicts[2]).toMatchObject({ kind: "give_up", reason: "budget_exhausted" });
		expect(JSON.stringify(verdicts[2])).toContain("tell the user plainly");
	});
	test("the run ends with a reason", () =>
		expect(verdicts[3]).toMatchObject({ kind: "stop", code: "repair_limit", message: /4 calls of `pay` in a row/ }));
});

describe("V4", () => {
	test("the declared fallback is offered at the limit, by the name the planner knows; never the tool itself", () => {
		const at = (fallback: string) => JSON.stringify(play([1, 2, 3].map((n) => refused(n, { fallback }))).verdicts[2]);
		expect(at("pay_later")).toContain("call `pay_later` instead");
		expect(at("pay")).toContain("do not call it again");
	});
	test("a valid call begins anew, also after the limit", () => {
		for (const n of [1, 2, 3, 4]) {
			const { state } = play(Array.from({ length: n }, (_, turn) => refused(turn)));
			expect(kinds(play([refused(9)], validCall(state, "pay")).verdicts)).toEqual(["repair"]);
		}
	});
	test("each tool has its own count", () => {
		const calls = [1, 2, 3, 4].map((turn) => refused(turn, { function_name: turn % 2 === 0 ? "pay" : "find" }));
		expect(kinds(play(calls).verdicts)).toEqual(["repair", "repair", "repair", "repair"]);
		expect(validCall(play(calls).state, "other")).toEqual(play(calls).state);
	});
	test("another failure is counted, and not called identical", () => {
		const { verdicts } = play([refused(1), refused(2, { errors: [missing("/amount")] })]);
		expect(verdicts[1]).toEqual({ kind: "repair", attempt: 2, errors: [missing("/amount")] });
	});
	test("a blocked call is counted, and no attempt at another form is invited (V3)", () => {
		const { verdicts } = play([1, 2, 3, 4].map((turn) => refused(turn, { reason: "security_blocked" })));
		expect(kinds(verdicts)).toEqual(["repair", "repair", "give_up", "stop"]);
		expect(JSON.stringify(verdicts[1])).toContain("do not try it in another form");
		expect(JSON.stringify(verdicts[1])).not.toContain("more attempt");
	});
	test("parallel calls of one turn count once: none of them saw an answer", () => {
		const { verdicts } = play([1, 1, 1, 1, 2, 2, 3].map((turn) => refused(turn)));
		expect(kinds(verdicts)).toEqual([...Array(6).fill("repair"), "give_up"]);
	});
	test("what is not the planner's mistake is not counted", () => {
		const counted = REFUSAL_REASONS.filter(
			(reason) =>
				play([refused(1, { reason })]).state !== EMPTY_REPAIR_GUARD &&
				play([refused(1, { reason })]).state.tools.length > 0,
		);
		expect(counted).toEqual([
			"unknown_tool",
			"arguments_not_json",
			"integer_out_of_range",
			"validation_failed",
			"semantic_failed",
			"security_blocked",
			"truncated_output",
		]);
		expect(kinds(play([1, 2, 3, 4, 5].map((turn) => refused(turn, { reason: "policy_denied" }))).verdicts)).toEqual(
			Array(5).fill("repair"),
		);
	});
});

test("nothing of what was sent is kept or echoed", () => {
	const secret = { ...missing("/to"), error: "got `hunter2`" };
	const { state, verdicts } = play([1, 2, 3, 4].map((turn) => refused(turn, { errors: [secret] })));
	expect(JSON.stringify(state)).not.toContain("hunter2");
	expect(JSON.stringify(verdicts.slice(2))).not.toContain("hunter2");
});

test("property: never more than three refusals in a row without an end, and a bounded state", () => {
	for (let seed = 1; seed <= 200; seed++) {
		const random = seeded(seed);
		let state = EMPTY_REPAIR_GUARD;
		const row = new Map<string, number>();
		for (let turn = 1; turn <= 80; turn++) {
			const function_name = `tool_${Math.floor(random() * 6)}`;
			if (random() < 0.3) {
				state = validCall(state, function_name);
				row.set(function_name, 0);
				continue;
			}
			const before = row.get(function_name) ?? 0;
			const next = refusedCall(state, refused(turn, { function_name }));
			state = next.state;
			row.set(function_name, before + 1);
			expect(next.verdict.kind).toBe(before < 2 ? "repair" : before === 2 ? "give_up" : "stop");
		}
	}
	let state = EMPTY_REPAIR_GUARD;
	const errors = Array.from({ length: 50 }, (_, n) => missing(`/${"f".repeat(100)}${n}`));
	for (let n = 0; n < 300; n++) state = refusedCall(state, refused(n, { function_name: `t${n}`, errors })).state;
	expect(state.tools).toHaveLength(32);
	expect(JSON.stringify(state).length).toBeLessThan(32_768);
});
