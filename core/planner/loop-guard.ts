/**
 * Stops a run that goes round in circles (L4, O01): the same call with the same result again and again, alone or in turns
 * with others. It looks at what came back, not only at what was asked, so polling goes on for as long as anything changes.
 * Small plain data that the run stores with itself; it invokes nothing and ends nothing, it only says so.
 * Called by core/run for every call that has its final state.
 */

/** One final call: what was asked, and what came of it. */
export type ObservedCall = {
	readonly turn: number;
	readonly tool_id: string;
	/** Of the frozen call: the order of keys and the spelling of numbers make no difference. */
	readonly input_hash: string;
	/** SHA-256 of final state and result or error, without ids, times and evidence. */
	readonly result_digest: string;
};

/** The latest calls, oldest first: `n` is the turn, `q` what was asked, `r` what came of it, both shortened. */
export type LoopGuardState = {
	readonly v: 1;
	readonly seen: readonly { readonly n: number; readonly t: string; readonly q: string; readonly r: string }[];
};
export type LoopVerdict =
	| { readonly stop: null }
	| {
			readonly stop: "repeated_call" | "oscillation";
			/** In the order of the circle; one for `repeated_call` of a single call. */
			readonly tools: readonly string[];
			/** For the user and the planner: plain, without arguments or results. */
			readonly message: string;
	  };

export const EMPTY_LOOP_GUARD: LoopGuardState = { v: 1, seen: [] };

/** Calls looked back on: three rounds of a circle of eight fit, and the state stays below 8 KB (some 2 KB with short names). */
const WINDOW_CALLS = 24;
/** The same call and result, while nothing else happens but other repetitions: O01 stops well before a cap of 20 turns. */
const REPEATS_MAX = 3;
/** The same call and result within the window, whatever else happens: a model that varies something pointless in between. */
const REPEATS_ANYHOW_MAX = 6;
/** 64 bits of each digest: chance never meets, and the hash is salted, so nobody can aim. */
const DIGEST_CHARS = 16;
const TOOL_CHARS = 200;

type Seen = LoopGuardState["seen"][number];

export function observe(
	state: LoopGuardState,
	call: ObservedCall,
): { readonly state: LoopGuardState; readonly verdict: LoopVerdict } {
	const latest: Seen = {
		n: call.turn,
		t: call.tool_id.slice(0, TOOL_CHARS),
		q: call.input_hash.slice(0, DIGEST_CHARS),
		r: call.result_digest.slice(0, DIGEST_CHARS),
	};
	// Made side by side, neither saw the other's answer: a doubled call is no circle.
	if (state.seen.some((one) => one.n === latest.n && same(one, latest))) return { state, verdict: { stop: null } };
	const seen = [...state.seen, latest].slice(-WINDOW_CALLS);
	return { state: { v: 1, seen }, verdict: judge(seen, latest) };
}

function judge(seen: readonly Seen[], latest: Seen): LoopVerdict {
	const at = sinceChange(seen, latest);
	const from = at.at(-REPEATS_MAX);
	if (from === undefined) return { stop: null };
	const stretch = seen.slice(from);
	const stuck = stretch.every((one) => stretch.filter((other) => same(one, other)).length > 1);
	if (!stuck && at.length < REPEATS_ANYHOW_MAX) return { stop: null };
	// One round of the circle: what happened between the last two times.
	const circle = stuck ? distinct(seen.slice(at.at(-2) ?? 0, -1)) : [latest];
	const tools = [...new Set(circle.map((one) => one.t))];
	const times = at.length;
	if (circle.length === 1) {
		const message = `the run was stopped: \`${latest.t}\` was called ${times} times with the same input and gave the same result each time`;
		return { stop: "repeated_call", tools, message };
	}
	const named = tools.map((tool) => `\`${tool}\``).join(", ");
	const what = tools.length === 1 ? `${circle.length} calls of ${named}` : `calls of ${named}`;
	return {
		stop: "oscillation",
		tools,
		message: `the run was stopped: ${what} went round ${times} times with the same inputs and the same results`,
	};
}

/** Where this very call stands with this very result, since it last gave another one: a poll that moves starts anew. */
function sinceChange(seen: readonly Seen[], latest: Seen): number[] {
	const at: number[] = [];
	for (const [index, one] of seen.entries()) {
		if (one.t !== latest.t || one.q !== latest.q) continue;
		if (one.r === latest.r) at.push(index);
		else at.length = 0;
	}
	return at;
}

const same = (one: Seen, other: Seen): boolean => one.t === other.t && one.q === other.q && one.r === other.r;
const distinct = (list: readonly Seen[]): Seen[] =>
	list.filter((one, index) => list.findIndex((other) => same(one, other)) === index);
