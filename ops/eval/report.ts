/**
 * What an evaluation adds up to (V5): how many first tries are valid, how many are after one, two and three repairs, and
 * what was wrong with the rest. Numbers and lines of text, nothing of what planners sent. Called by `npm run eval`.
 */
import type { Issue } from "#core/refusal.ts";
import type { Played } from "./play.ts";

/** The published classes of bad first calls, by the first issue of the first refusal. */
const CLASSES: readonly { readonly name: string; readonly published: number; readonly issues: readonly Issue[] }[] = [
	{ name: "type", published: 0.45, issues: ["type_mismatch"] },
	{ name: "missing", published: 0.3, issues: ["required_field_missing"] },
	{ name: "enum", published: 0.15, issues: ["enum_out_of_range"] },
	{ name: "semantic", published: 0.1, issues: ["semantic_violation"] },
];
export const REPAIRS = [0, 1, 2, 3] as const;

export type Report = {
	/** Recordings, each as often as it stands for. */
	readonly total: number;
	/** Share valid after at most 0, 1, 2 and 3 repairs. */
	readonly valid: readonly number[];
	readonly classes: readonly { readonly name: string; readonly count: number; readonly share: number }[];
	/** Every issue of every refusal, most frequent first. */
	readonly issues: readonly { readonly issue: string; readonly count: number }[];
	/** Recordings that did not come out as they say they would. */
	readonly unexpected: readonly string[];
};

export function report(played: readonly Played[]): Report {
	const sum = (list: readonly Played[]): number => list.reduce((all, one) => all + one.recording.times, 0);
	const total = sum(played);
	const share = (part: number, whole: number): number => (whole === 0 ? 0 : part / whole);
	const bad = played.filter((one) => one.valid_after !== 0);
	const named = new Set<string | undefined>(CLASSES.flatMap((one) => one.issues));
	const classes = [
		...CLASSES.map(({ name, issues }) => ({
			name,
			list: bad.filter((one) => issues.some((issue) => issue === firstIssue(one))),
		})),
		{ name: "other", list: bad.filter((one) => !named.has(firstIssue(one))) },
	];
	const counts = new Map<string, number>();
	for (const one of played)
		for (const { issue } of one.tries.flatMap((each) => each.refused).flatMap((each) => each.errors))
			counts.set(issue, (counts.get(issue) ?? 0) + one.recording.times);
	return {
		total,
		valid: REPAIRS.map((n) => share(sum(played.filter(({ valid_after: at }) => at !== null && at <= n)), total)),
		classes: classes.map(({ name, list }) => ({ name, count: sum(list), share: share(sum(list), sum(bad)) })),
		issues: [...counts].map(([issue, count]) => ({ issue, count })).sort((a, b) => b.count - a.count),
		unexpected: played.flatMap(unexpected),
	};
}

export function printed(one: Report): string {
	const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
	const published = new Map(CLASSES.map((each) => [each.name, ` (published ${percent(each.published)})`]));
	return [
		`${one.total} recordings`,
		`valid at the first try        ${percent(one.valid[0] ?? 0)}`,
		...REPAIRS.slice(1).map(
			(n) => `valid after ${n} ${n === 1 ? "repair " : "repairs"}         ${percent(one.valid[n] ?? 0)}`,
		),
		"bad first calls by class:",
		...one.classes.map(
			({ name, count, share }) => `  ${name.padEnd(10)}${count}, ${percent(share)}${published.get(name) ?? ""}`,
		),
		"issues of all refusals:",
		...one.issues.map(({ issue, count }) => `  ${issue.padEnd(26)}${count}`),
		...one.unexpected.map((text) => `unexpected: ${text}`),
	].join("\n");
}

const firstIssue = (one: Played): string | undefined => one.tries[0]?.refused[0]?.errors[0]?.issue;

function unexpected({ recording, valid_after, tries }: Played): string[] {
	const { expect, id } = recording;
	const issue = tries[0]?.refused[0]?.errors[0]?.issue;
	const said: string[] = [];
	if (expect?.valid_after !== undefined && expect.valid_after !== valid_after)
		said.push(`${id}: valid after ${valid_after ?? "no"} repairs, not ${expect.valid_after ?? "no"}`);
	if (expect?.issue !== undefined && expect.issue !== issue)
		said.push(`${id}: the first issue is ${issue ?? "none"}, not ${expect.issue}`);
	return said;
}
