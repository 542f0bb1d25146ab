import { describe, expect, test } from "vitest";
import { canonicalJson, type JsonObject } from "../json.ts";
import { cheapDigest, seeded } from "../run/sample-run.ts";
import { EMPTY_LOOP_GUARD, type LoopGuardState, type LoopVerdict, observe } from "./loop-guard.ts";

const call = (tool_id: string, input: JsonObject, result: unknown) => ({
	tool_id,
	input_hash: cheapDigest(canonicalJson(input)),
	result_digest: cheapDigest(canonicalJson(result)),
});
type Call = ReturnType<typeof call>;

/** Plays calls until one stops the run; through storage after every call, as a run that sleeps in between does. */
function play(calls: readonly (Call & { turn?: number })[]): {
	at: number;
	verdict: LoopVerdict;
	state: LoopGuardState;
} {
	let state = EMPTY_LOOP_GUARD;
	for (const [index, one] of calls.entries()) {
		const next = observe(JSON.parse(JSON.stringify(state)) as LoopGuardState, { turn: index, ...one });
		state = next.state;
		if (next.verdict.stop !== null) return { at: index + 1, verdict: next.verdict, state };
	}
	return { at: 0, verdict: { stop: null }, state };
}
const cycle = (n: number, of: readonly Call[]) => Array.from({ length: n }, (_, at) => of[at % of.length] as Call);
const a = call("find", { q: "x" }, []);
const b = call("get", { id: 7 }, { name: "n" });
const c = call("list", {}, ["a"]);

describe("O01", () => {
	test("the same call with the same result stops at the third time", () => {
		const { at, verdict } = play(cycle(20, [a]));
		expect(at).toBe(3);
		expect(verdict).toEqual({
			stop: "repeated_call",
			tools: ["find"],
			message: "the run was stopped: `find` was called 3 times with the same input and gave the same result each time",
		});
	});
	test("the order of keys makes no difference", () => {
		const one = call("find", { q: "x", limit: 5 }, []);
		const other = call("find", { limit: 5, q: "x" }, []);
		expect(play(cycle(20, [one, other])).at).toBe(3);
	});
	test("a/b/a/b is stopped and named with both", () => {
		const { at, verdict } = play(cycle(20, [a, b]));
		expect(at).toBe(5);
		expect(verdict).toMatchObject({ stop: "oscillation", tools: ["find", "get"] });
		expect(verdict.stop === null ? "" : verdict.message).toMatch(/`find`, `get` went round 3 times/);
	});
	test("circles of three, and of one tool with two inputs", () => {
		expect(play(cycle(20, [a, b, c]))).toMatchObject({ at: 7, verdict: { tools: ["find", "get", "list"] } });
		const two = [a, call("find", { q: "y" }, [])];
		expect(play(cycle(20, two))).toMatchObject({ at: 5, verdict: { stop: "oscillation", tools: ["find"] } });
	});
	test("a poll whose result changes goes on for ever, also when it comes back to an old one", () => {
		expect(play(Array.from({ length: 200 }, (_, n) => call("poll", { id: 1 }, { progress: n }))).at).toBe(0);
		expect(play(cycle(200, [call("poll", {}, "up"), call("poll", {}, "down")])).at).toBe(0);
		const steps = Array.from({ length: 60 }, (_, n) => call("poll", {}, { progress: Math.floor(n / 2) }));
		expect(play(steps).at).toBe(0);
	});
	test("a poll in turns with a call that never changes is still a poll", () => {
		const mixed = Array.from({ length: 5 }, (_, n) => [a, call("poll", {}, { progress: n })]).flat();
		expect(play(mixed).at).toBe(0);
	});
	test("the same tool with other inputs is work, not a loop", () => {
		expect(play(Array.from({ length: 200 }, (_, n) => call("find", { q: n }, []))).at).toBe(0);
	});
	test("reading the same again after something new is no loop; six times is, whatever is varied in between", () => {
		const work = (n: number) => Array.from({ length: n }, (_, at) => [a, call("set", { at }, "ok")]).flat();
		expect(play(work(5)).at).toBe(0);
		expect(play(work(20))).toMatchObject({ at: 11, verdict: { stop: "repeated_call", tools: ["find"] } });
	});
	test("a resumed run that does it once more is stopped at once", () => {
		const { state } = play(cycle(20, [a]));
		expect(observe(state, { turn: 99, ...a }).verdict.stop).toBe("repeated_call");
		expect(observe(state, { turn: 99, ...b }).verdict.stop).toBeNull();
	});
	test("doubled calls of one turn count once, and pairs in every turn are a circle", () => {
		const doubled = Array.from({ length: 8 }, () => ({ ...a, turn: 1 }));
		expect(play(doubled).at).toBe(0);
		const pairs = cycle(20, [a, b]).map((one, at) => ({ ...one, turn: Math.floor(at / 2) }));
		expect(play(pairs)).toMatchObject({ at: 5, verdict: { stop: "oscillation", tools: ["find", "get"] } });
	});
	test("tools called `constructor` and the like are names as any other", () => {
		expect(play(cycle(20, [call("__proto__", {}, null)]))).toMatchObject({ at: 3, verdict: { tools: ["__proto__"] } });
	});
});

describe("properties", () => {
	test("any circle of up to eight calls is stopped within three rounds", () => {
		for (let length = 1; length <= 8; length++) {
			const circle = Array.from({ length }, (_, n) => call(`tool_${n}`, { n }, n));
			const { at, verdict } = play(cycle(100, circle));
			expect(at).toBe(2 * length + 1);
			expect(verdict).toMatchObject({ tools: circle.map((one) => one.tool_id) });
		}
	});
	test("a loop is found behind any history, within its third round", () => {
		for (let seed = 1; seed <= 100; seed++) {
			const random = seeded(seed);
			const noise = Array.from({ length: Math.floor(random() * 40) }, (_, n) =>
				call(`tool_${Math.floor(random() * 3)}`, { n }, n),
			);
			const { at } = play([...noise, ...cycle(20, [a, b])]);
			expect(at, `seed ${seed}`).toBe(noise.length + 5);
		}
	});
	test("calls that never repeat their result are never stopped", () => {
		for (let seed = 1; seed <= 100; seed++) {
			const random = seeded(seed);
			const calls = Array.from({ length: 100 }, (_, n) => call(`t${Math.floor(random() * 2)}`, {}, n));
			expect(play(calls).at, `seed ${seed}`).toBe(0);
		}
	});
	test("the state stays small however long the run and the names", () => {
		let state = EMPTY_LOOP_GUARD;
		for (let n = 0; n < 500; n++) state = observe(state, { turn: n, ...call("t".repeat(256), { n }, n) }).state;
		expect(state.seen).toHaveLength(24);
		expect(JSON.stringify(state).length).toBeLessThan(8_192);
	});
});
