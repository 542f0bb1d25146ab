/**
 * The pattern linter: which regular expressions Belay runs on text that a model wrote, and on how much of it. Engines
 * backtrack: 29 characters held the thread for 20 s (decision 28). A pattern is accepted when at each character at most
 * one way forward fits, or when the exceptions cost no more than a known power of the text's length, which then gets a
 * bound. Called by schema import (`pattern`, `patternProperties`) and by the expression compiler (`matches`).
 */
import { type CharSet, overlap, type PatternNode, PatternRefused, parsePattern } from "./expression-pattern-parse.ts";

export type PatternVerdict =
	/** Safe on texts of at most `max_chars` characters. */
	{ readonly ok: true; readonly max_chars: number } | { readonly ok: false; readonly message: string };

/** Long patterns are programs; real ones for tool arguments stay far below. */
const SOURCE_MAX_CHARS = 512;
/** Character positions after writing out fixed repeats of groups. */
const POSITIONS_MAX = 400;
/** Ambiguities outside of loops double the work each. */
const FINITE_MAX = 4;
/** A text of n characters costs n to the power of the degree: both bounds stay near 10^8 steps, some 0.3 s. */
const SQUARE_MAX_CHARS = 16_384;
const CUBE_MAX_CHARS = 512;

/** Judges one pattern as it would run with the `u` flag. */
export function lintPattern(source: string): PatternVerdict {
	if (source.length > SOURCE_MAX_CHARS) return refuse(`is longer than ${SOURCE_MAX_CHARS} characters`);
	try {
		new RegExp(source, "u");
	} catch {
		return refuse("is not a valid regular expression (flag u)");
	}
	try {
		const tree = parsePattern(source);
		const anchored = source.startsWith("^") && tree.kind !== "choice";
		return judge(new Positions().enter(tree, false), anchored);
	} catch (error) {
		if (error instanceof PatternRefused) return refuse(error.message);
		throw error;
	}
}

function refuse(message: string): PatternVerdict {
	return { ok: false, message: `pattern ${message}` };
}

type Position = {
	readonly set: CharSet;
	readonly inGroupLoop: boolean;
	loops: boolean;
	readonly follow: Set<Position>;
};
type Span = { readonly first: readonly Position[]; readonly last: readonly Position[]; readonly empty: boolean };

/** The positions of a pattern and which may follow which (Glushkov's construction). */
class Positions {
	readonly all: Position[] = [];
	first: readonly Position[] = [];

	enter(tree: PatternNode, inGroupLoop: boolean): this {
		this.first = this.span(tree, inGroupLoop).first;
		return this;
	}

	span(node: PatternNode, looped: boolean): Span {
		switch (node.kind) {
			case "empty":
				return { first: [], last: [], empty: true };
			case "char": {
				if (this.all.length >= POSITIONS_MAX) throw new PatternRefused("is too large when its repeats are written out");
				const position: Position = { set: node.set, inGroupLoop: looped, loops: false, follow: new Set() };
				this.all.push(position);
				return { first: [position], last: [position], empty: false };
			}
			case "choice": {
				const spans = node.parts.map((part) => this.span(part, looped));
				return {
					first: spans.flatMap((span) => span.first),
					last: spans.flatMap((span) => span.last),
					empty: spans.some((span) => span.empty),
				};
			}
			case "sequence":
				return node.parts.map((part) => this.span(part, looped)).reduce(join, { first: [], last: [], empty: true });
			case "repeat":
				return this.repeat(node, looped);
		}
	}

	repeat(node: Extract<PatternNode, { kind: "repeat" }>, looped: boolean): Span {
		const { body, min, max } = node;
		if (max === 0) return { first: [], last: [], empty: true };
		if (max > 1_000 && max !== Number.POSITIVE_INFINITY) throw new PatternRefused("counts beyond 1000");
		if (min > 1_000) throw new PatternRefused("counts beyond 1000");
		if (max === 1) {
			const once = this.span(body, looped);
			return min === 0 ? { ...once, empty: true } : once;
		}
		if (body.kind === "char") {
			const span = this.span(body, looped);
			const [position] = span.first;
			// a fixed count leaves no choice; any other is a loop on itself
			if (min !== max && position !== undefined) {
				position.loops = true;
				position.follow.add(position);
			}
			return min === 0 ? { ...span, empty: true } : span;
		}
		if (min === max)
			return Array.from({ length: min }, () => this.span(body, looped)).reduce(join, {
				first: [],
				last: [],
				empty: true,
			});
		const span = this.span(body, true);
		if (span.empty) throw new PatternRefused("repeats something that may be empty");
		for (const last of span.last)
			for (const first of span.first) {
				// the same step, once by the inner repeat and once by the outer: `(a+)+`
				if (last.follow.has(first))
					throw new PatternRefused("repeats a group that can match the same text in two ways");
				last.follow.add(first);
			}
		return min === 0 ? { ...span, empty: true } : span;
	}
}

function join(left: Span, right: Span): Span {
	for (const last of left.last) for (const first of right.first) last.follow.add(first);
	return {
		first: left.empty ? [...left.first, ...right.first] : left.first,
		last: right.empty ? [...left.last, ...right.last] : right.last,
		empty: left.empty && right.empty,
	};
}

/** Counts where more than one way forward fits the same character. */
function judge(positions: Positions, anchored: boolean): PatternVerdict {
	const doubled = new Set<Position>();
	let finite = 0;
	const look = (from: Position | undefined, next: readonly Position[]): string | undefined => {
		for (const [i, one] of next.entries())
			for (const other of next.slice(i + 1)) {
				if (!overlap(one.set, other.set)) continue;
				if (from?.inGroupLoop || one.inGroupLoop || other.inGroupLoop)
					return "repeats a group that can match the same text in two ways";
				if (from?.loops && (one === from || other === from)) doubled.add(from);
				else finite += 1;
			}
		return undefined;
	};
	for (const [from, next] of [
		[undefined, positions.first] as const,
		...positions.all.map((at) => [at, [...at.follow]] as const),
	]) {
		const problem = look(from, next);
		if (problem !== undefined) return refuse(problem);
	}
	if (finite > FINITE_MAX) return refuse("can match the same text in too many ways");
	const loops = positions.all.some((at) => at.loops || at.inGroupLoop);
	const degree = doubled.size + (loops && !anchored ? 1 : 0) + 1;
	if (degree > 3) return refuse("has too many repeats that can match the same text");
	return {
		ok: true,
		max_chars: degree === 1 ? Number.POSITIVE_INFINITY : degree === 2 ? SQUARE_MAX_CHARS : CUBE_MAX_CHARS,
	};
}
