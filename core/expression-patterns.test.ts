import { describe, expect, it } from "vitest";
import { lintPattern } from "./expression-patterns.ts";

/** Each of these holds a backtracking engine for long on a short text, or cannot be bounded. */
const REFUSED = [
	"^(a+)+$",
	"^(a*)*$",
	"(a|a)*b",
	"(a|ab)*(b|c)*",
	"^(\\w+\\s?)+$",
	"(.*)*x",
	"(a?){30}a{30}",
	"^(?:a+){2,}$",
	"(x+x+)+y",
	".*.*=.*",
	"([a-z]+)*@",
	"^(([a-z])+.)+[A-Z]([a-z])+$",
	"(?:(?:a|b)+)+",
	"(a|[ab])+",
	"(\\d|\\w)+",
	"(?=a+)a",
	"(?<!a+)b",
	"(a)\\1",
	"(?<n>a+)\\k<n>",
	"a{2000}",
	"(a{1000}b){1000}",
	"(|a)+",
	"[",
	"a".repeat(600),
	"\\p{L}+\\p{L}+\\d+\\d+",
	"^(?:\\u{61}|a)+$",
	"^[^b]{3,}(?:(a{1,3}){2,5}(ab?)){2,5}$",
	"^(a{1,3}){1,20}$",
	"^a?a?a?a?a?a?a?a?aaaaaaaa$",
];

const ACCEPTED: [string, number][] = [
	["^[a-z][a-z0-9_]{0,63}$", Number.POSITIVE_INFINITY],
	["^\\d{4}-\\d{2}-\\d{2}$", Number.POSITIVE_INFINITY],
	["^[A-Z]{2}\\d+$", Number.POSITIVE_INFINITY],
	["^(?:GET|PUT)$", Number.POSITIVE_INFINITY],
	["^[^@]+@example\\.com$", Number.POSITIVE_INFINITY],
	["^(?:\\d{1,3}\\.){3}\\d{1,3}$", Number.POSITIVE_INFINITY],
	["^[a-z]+(?:-[a-z]+)*$", Number.POSITIVE_INFINITY],
	["^(ab|cd)+$", Number.POSITIVE_INFINITY],
	["^\\+?[0-9 ]{6,20}$", Number.POSITIVE_INFINITY],
	["^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$", 16_384],
	["a|b|c", Number.POSITIVE_INFINITY],
	["[a-z]+\\d", 16_384],
	["^\\d+\\d+$", 16_384],
	["", Number.POSITIVE_INFINITY],
];

describe("lintPattern", () => {
	it.each(REFUSED)("refuses %s", (pattern) => {
		expect(lintPattern(pattern).ok).toBe(false);
	});
	it.each(ACCEPTED)("accepts %s up to %d characters", (pattern, max_chars) => {
		expect(lintPattern(pattern)).toEqual({ ok: true, max_chars });
	});
	it("says what is wrong in words, without a stop", () => {
		expect(lintPattern("^(a+)+$")).toEqual({
			ok: false,
			message: "pattern repeats a group that can match the same text in two ways",
		});
	});

	/** Counts the steps of a plain backtracking matcher, so that a bad pattern fails the test and not the machine. */
	it("accepts nothing that a backtracking matcher cannot finish: 4,000 random patterns on hostile text", () => {
		let seed = 20261130;
		const next = (n: number): number => {
			seed = (seed * 1103515245 + 12345) % 2147483648;
			return Math.floor((seed / 2147483648) * n);
		};
		const atoms = ["a", "b", "[ab]", ".", "(a|b)", "(a+)", "(ab?)", "(?:a|ab)", "(b*)", "[^b]", "(a{1,3})", "(ab)"];
		const repeats = ["", "", "*", "+", "?", "{2,5}", "{3,}", "{2}"];
		let accepted = 0;
		for (let i = 0; i < 4_000; i += 1) {
			let pattern = "^";
			for (let part = 1 + next(5); part > 0; part -= 1) {
				const inner = `${atoms[next(atoms.length)]}${repeats[next(repeats.length)]}`;
				pattern += next(3) === 0 ? `(?:${inner}${atoms[next(atoms.length)]})${repeats[next(repeats.length)]}` : inner;
			}
			pattern += "$";
			if (!lintPattern(pattern).ok) continue;
			accepted += 1;
			for (const text of [`${"a".repeat(60)}!`, `${"ab".repeat(30)}!`, `${"aab".repeat(20)}!`]) {
				expect(backtrackingSteps(pattern, text, 2_000_000), pattern).toBeLessThan(2_000_000);
			}
		}
		expect(accepted).toBeGreaterThan(300);
	});
});

/** A matcher of its own for the subset that the random patterns use. */
function backtrackingSteps(pattern: string, text: string, most: number): number {
	type Next = (at: number) => boolean;
	type Match = (at: number, next: Next) => boolean;
	let i = 0;
	let steps = 0;
	const choice = (): Match => {
		const parts = [sequence()];
		while (pattern[i] === "|") {
			i += 1;
			parts.push(sequence());
		}
		return (at, next) => parts.some((part) => part(at, next));
	};
	const sequence = (): Match => {
		const parts: Match[] = [];
		while (i < pattern.length && pattern[i] !== "|" && pattern[i] !== ")") parts.push(repeated());
		return (at, next) => {
			const from = (k: number, here: number): boolean =>
				k === parts.length ? next(here) : (parts[k] as Match)(here, (to) => from(k + 1, to));
			return from(0, at);
		};
	};
	const repeated = (): Match => {
		const body = atom();
		const found = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})/.exec(pattern.slice(i));
		if (found === null) return body;
		i += found[0].length;
		const sign = found[0][0];
		const min = sign === "*" || sign === "?" ? 0 : sign === "+" ? 1 : Number(found[1]);
		const max =
			sign === "?" ? 1 : sign !== "{" ? 1e9 : found[2] === "" ? min : found[3] === "" ? 1e9 : Number(found[3]);
		const loop = (n: number, at: number, next: Next): boolean =>
			(n < max && body(at, (to) => to > at && loop(n + 1, to, next))) || (n >= min && next(at));
		return (at, next) => loop(0, at, next);
	};
	const atom = (): Match => {
		const char = pattern[i] as string;
		i += 1;
		if (char === "(") {
			if (pattern.startsWith("?:", i)) i += 2;
			const inside = choice();
			i += 1;
			return inside;
		}
		if (char === "^") return (at, next) => at === 0 && next(at);
		if (char === "$") return (at, next) => at === text.length && next(at);
		let fits = (found: string): boolean => char === "." || found === char;
		if (char === "[") {
			const body = pattern.slice(i, pattern.indexOf("]", i));
			i += body.length + 1;
			fits = (found) => (body.startsWith("^") ? !body.slice(1).includes(found) : body.includes(found));
		}
		return (at, next) => {
			steps += 1;
			if (steps >= most) return true;
			return at < text.length && fits(text[at] as string) && next(at + 1);
		};
	};
	choice()(0, () => true);
	return steps;
}
