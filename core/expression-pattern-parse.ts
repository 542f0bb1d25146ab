/**
 * Reads a regular expression (flag u) into the small tree that the pattern linter judges. Character sets are ranges of code
 * points. It refuses what backtracking cannot bound at all: look-around and back-references. Called by the linter only.
 */

/** Inclusive ranges of code points. */
export type CharSet = readonly (readonly [from: number, to: number])[];
export type PatternNode =
	| { readonly kind: "char"; readonly set: CharSet }
	| { readonly kind: "empty" }
	| { readonly kind: "sequence" | "choice"; readonly parts: readonly PatternNode[] }
	| { readonly kind: "repeat"; readonly body: PatternNode; readonly min: number; readonly max: number };

export class PatternRefused extends Error {}

const LAST = 0x10ffff;
const ANY: CharSet = [[0, LAST]];
const DIGIT: CharSet = [[0x30, 0x39]];
const WORD: CharSet = [
	[0x30, 0x39],
	[0x41, 0x5a],
	[0x5f, 0x5f],
	[0x61, 0x7a],
];
const SPACE: CharSet = [
	[9, 13],
	[0x20, 0x20],
	[0xa0, 0xa0],
	[0x1680, 0x1680],
	[0x2000, 0x200a],
	[0x2028, 0x2029],
	[0x202f, 0x202f],
	[0x205f, 0x205f],
	[0x3000, 0x3000],
	[0xfeff, 0xfeff],
];
const CONTROLS: ReadonlyMap<string, number> = new Map([
	["n", 10],
	["r", 13],
	["t", 9],
	["v", 11],
	["f", 12],
	["0", 0],
]);

/** The source must already be valid: `new RegExp(source, "u")` has accepted it. */
export function parsePattern(source: string): PatternNode {
	return new PatternReader(source).choice();
}

class PatternReader {
	at = 0;
	readonly text: string;
	constructor(text: string) {
		this.text = text;
	}

	choice(): PatternNode {
		const parts = [this.sequence()];
		while (this.text[this.at] === "|") {
			this.at += 1;
			parts.push(this.sequence());
		}
		return parts.length === 1 ? (parts[0] as PatternNode) : { kind: "choice", parts };
	}

	sequence(): PatternNode {
		const parts: PatternNode[] = [];
		while (this.at < this.text.length && this.text[this.at] !== "|" && this.text[this.at] !== ")")
			parts.push(this.repeated());
		return { kind: "sequence", parts };
	}

	repeated(): PatternNode {
		const body = this.atom();
		const found = /^(?:([*+?])|\{(\d+)(,(\d*))?\})\??/.exec(this.text.slice(this.at));
		if (found === null) return body;
		this.at += found[0].length;
		const [, sign, low, comma, high] = found;
		if (sign !== undefined)
			return { kind: "repeat", body, min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : Number.POSITIVE_INFINITY };
		const min = Number(low);
		const max = comma === undefined ? min : high === "" ? Number.POSITIVE_INFINITY : Number(high);
		return { kind: "repeat", body, min, max };
	}

	atom(): PatternNode {
		const char = this.take();
		if (char === "(") return this.group();
		if (char === "[") return { kind: "char", set: this.charClass() };
		if (char === "^" || char === "$") return { kind: "empty" };
		if (char === ".") return { kind: "char", set: ANY };
		if (char === "\\") {
			if (/[bB]/.test(this.text[this.at] ?? "")) {
				this.at += 1;
				return { kind: "empty" };
			}
			if (/[1-9k]/.test(this.text[this.at] ?? "")) throw new PatternRefused("uses a back-reference");
			return { kind: "char", set: this.escape() };
		}
		return { kind: "char", set: point(char) };
	}

	group(): PatternNode {
		const head = /^\?(?::|<[^=!>]+>)/.exec(this.text.slice(this.at));
		if (head !== null) this.at += head[0].length;
		else if (this.text[this.at] === "?") throw new PatternRefused("uses look-around or flags in a group");
		const inside = this.choice();
		this.at += 1;
		return inside;
	}

	charClass(): CharSet {
		const negated = this.text[this.at] === "^";
		if (negated) this.at += 1;
		const set: (readonly [number, number])[] = [];
		while (this.text[this.at] !== "]") {
			const from = this.classAtom();
			const ranged = this.text[this.at] === "-" && this.text[this.at + 1] !== "]";
			if (!ranged) set.push(...from);
			else {
				this.at += 1;
				const to = this.classAtom();
				set.push([from[0]?.[0] ?? 0, to.at(-1)?.[1] ?? LAST]);
			}
		}
		this.at += 1;
		return negated ? complement(set) : set;
	}

	classAtom(): CharSet {
		const char = this.take();
		if (char !== "\\") return point(char);
		if (this.text[this.at] === "b") {
			this.at += 1;
			return [[8, 8]];
		}
		return this.escape();
	}

	escape(): CharSet {
		const char = this.take();
		if (char === "d" || char === "D") return char === "d" ? DIGIT : complement(DIGIT);
		if (char === "w" || char === "W") return char === "w" ? WORD : complement(WORD);
		if (char === "s" || char === "S") return char === "s" ? SPACE : complement(SPACE);
		if (char === "p" || char === "P") {
			this.at = this.text.indexOf("}", this.at) + 1;
			return ANY;
		}
		if (char === "u" || char === "x") {
			const found = /^(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{4})|([0-9a-fA-F]{2}))/.exec(
				this.text.slice(this.at, this.at + (char === "x" ? 2 : 12)),
			);
			this.at += found?.[0].length ?? 0;
			const code = Number.parseInt(found?.[1] ?? found?.[2] ?? found?.[3] ?? "0", 16);
			// half of a surrogate pair written as two escapes stands for more than itself
			return code >= 0xd800 && code <= 0xdfff ? ANY : [[code, code]];
		}
		if (char === "c") return [[this.take().charCodeAt(0) % 32, 31]];
		const control = CONTROLS.get(char);
		return control === undefined ? point(char) : [[control, control]];
	}

	take(): string {
		const char = String.fromCodePoint(this.text.codePointAt(this.at) ?? 0);
		this.at += char.length;
		return char;
	}
}

const point = (char: string): CharSet => [[char.codePointAt(0) ?? 0, char.codePointAt(0) ?? 0]];

function complement(set: CharSet): CharSet {
	const gaps: [number, number][] = [];
	let next = 0;
	for (const [from, to] of [...set].sort((one, other) => one[0] - other[0])) {
		if (from > next) gaps.push([next, from - 1]);
		next = Math.max(next, to + 1);
	}
	if (next <= LAST) gaps.push([next, LAST]);
	return gaps;
}

export function overlap(one: CharSet, other: CharSet): boolean {
	return one.some(([from, to]) => other.some(([low, high]) => from <= high && low <= to));
}
