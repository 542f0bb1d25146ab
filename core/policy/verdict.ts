/** What a judgement says: never a bare boolean. Policy, approval and their callers combine verdicts by the most restrictive. */
export type Verdict = {
	readonly decision: "allow" | "ask" | "deny";
	/** In words, for the evidence; a caller may never see it (decision 20). */
	readonly reason: string;
	readonly rule_ids: readonly string[];
	readonly obligations: readonly string[];
};

const STRICTNESS = { allow: 0, ask: 1, deny: 2 } as const;

export const allow = (reason: string, rule_ids: readonly string[] = []): Verdict => ({
	decision: "allow",
	reason,
	rule_ids,
	obligations: [],
});
export const ask = (reason: string, rule_ids: readonly string[]): Verdict => ({
	decision: "ask",
	reason,
	rule_ids,
	obligations: [],
});
export const deny = (reason: string, rule_ids: readonly string[]): Verdict => ({
	decision: "deny",
	reason,
	rule_ids,
	obligations: [],
});

/**
 * The strictest decision with the reasons and rule ids of those that made it; obligations of all add up. No verdict at
 * all is a deny: nothing is allowed by silence.
 */
export function mostRestrictive(...verdicts: readonly Verdict[]): Verdict {
	if (verdicts.length === 0) return deny("nothing was judged", ["policy:nothing_judged"]);
	let worst = 0;
	for (const { decision } of verdicts) {
		if (!Object.hasOwn(STRICTNESS, decision)) return deny("a judgement said nothing known", ["policy:unknown_verdict"]);
		if (STRICTNESS[decision] > worst) worst = STRICTNESS[decision];
	}
	const deciding = verdicts.filter((verdict) => STRICTNESS[verdict.decision] === worst);
	return {
		decision: (deciding[0] as Verdict).decision,
		reason: deciding.map((verdict) => verdict.reason).join("; "),
		rule_ids: distinct(deciding, "rule_ids"),
		obligations: distinct(verdicts, "obligations"),
	};
}

function distinct(verdicts: readonly Verdict[], member: "rule_ids" | "obligations"): readonly string[] {
	const all: string[] = [];
	for (const verdict of verdicts) for (const one of verdict[member]) if (!all.includes(one)) all.push(one);
	return all;
}
