/** What core must not touch, and the one step of a run that must not be interleaved. */
import { describe, expect, it } from "vitest";
import { codeOf, isTest, repositoryFiles, typescript } from "./sources.ts";

const sources = typescript(repositoryFiles()).filter(({ path }) => !isTest(path));
const core = sources.filter(({ path }) => path.startsWith("core/"));

/** Clock, randomness, network, process, output: whatever makes one input give two answers, or leaves a trace. */
const BANNED: readonly [string, RegExp][] = [
	["Date.now", /\bDate\s*\.\s*now\b/],
	["new Date()", /\bnew\s+Date\s*\(\s*\)/],
	["Date()", /(?<!new\s)(?<![\w.])Date\s*\(/],
	["Math.random", /\bMath\s*\.\s*random\b/],
	["performance", /(?<![\w.])performance\s*\./],
	["crypto", /(?<![\w.])crypto\s*\./],
	["fetch", /(?<![\w.])fetch\s*\(/],
	["process", /(?<![\w.])process\s*\./],
	["console", /(?<![\w.])console\s*\./],
	["globalThis", /\bglobalThis\b/],
	["setTimeout", /\bset(?:Timeout|Interval)\s*\(/],
	["eval", /(?<![\w.])eval\s*\(|\bnew\s+Function\b/],
];

describe("core", () => {
	it("is found", () => {
		expect(core.length).toBeGreaterThan(20);
	});

	it("has no clock, no randomness and no world", () => {
		const found = core.flatMap(({ path, text }) =>
			codeOf(text)
				.split("\n")
				.flatMap((line, at) =>
					BANNED.filter(([, pattern]) => pattern.test(line)).map(([name]) => `${path}:${at + 1} ${name}`),
				),
		);
		expect(found).toEqual([]);
	});

	it("would be caught", () => {
		const sample =
			'const a = Date.now();\nconst b = `${Math.random()}`;\n// console.log in a comment\nconst c = "fetch(in a string)";\nconst d = new Date(0);\n';
		const lines = codeOf(sample).split("\n");
		const hits = lines.map((line) => BANNED.some(([, pattern]) => pattern.test(line)));
		expect(hits).toEqual([true, true, false, false, false, false]);
	});
});

/** The bodies of every function, method or arrow named `apply`, by counting braces in code without strings. */
function bodiesOfApply(text: string): string[] {
	const code = codeOf(text);
	const starts = [
		...code.matchAll(
			/(?:\bfunction\s+|#|^\s*(?:(?:private|protected|public|override|async)\s+)*)apply\s*(?:<[^>]*>)?\s*\(|\bapply\s*=\s*(?:async\s*)?\(/gm,
		),
	];
	return starts.flatMap((found) => {
		let parens = 0;
		let at = (found.index ?? 0) + found[0].length - 1;
		for (; at < code.length; at++) {
			if (code[at] === "(") parens++;
			if (code[at] === ")" && --parens === 0) break;
		}
		// A call ends in `;`, a declaration goes on to its block.
		const block = /^[^;{]*(?:\{[^{}\n]*\}[^;{\n]*)?(?:=>\s*)?\{\s*\n/.exec(code.slice(at + 1));
		if (block === null) return [];
		const begin = at + block[0].trimEnd().length;
		let braces = 0;
		for (let end = begin; end < code.length; end++) {
			if (code[end] === "{") braces++;
			if (code[end] === "}" && --braces === 0) return [`${found[0]} ${code.slice(begin, end + 1)}`];
		}
		return [];
	});
}

/** Decision 1: an await inside `apply()` lets two events take the same parent in the log. */
describe("apply()", () => {
	const LATER = /\bawait\b|\basync\b|\.\s*then\s*\(|\bsetTimeout\s*\(|\bwaitUntil\s*\(/;

	it("is one synchronous step wherever a Durable Object has it", () => {
		const objects = sources.filter(({ path }) => path.startsWith("durable-objects/agent-run/"));
		expect(objects.length).toBeGreaterThan(1);
		const bodies = objects.flatMap(({ path, text }) => bodiesOfApply(text).map((body) => ({ path, body })));
		expect(bodies.length, "no function named `apply` found").toBeGreaterThan(0);
		expect(bodies.filter(({ body }) => LATER.test(body)).map(({ path }) => path)).toEqual([]);
	});

	it("would be caught", () => {
		const good =
			"class A {\n\tapply(event: Event): Done {\n\t\tif (event) {\n\t\t\treturn this.x(event);\n\t\t}\n\t\treturn none;\n\t}\n\tasync other() {\n\t\tawait 1;\n\t}\n}\n";
		expect(bodiesOfApply(good).map((body) => LATER.test(body))).toEqual([false]);
		expect(bodiesOfApply(good.replace("return none", "return await none")).map((body) => LATER.test(body))).toEqual([
			true,
		]);
		expect(bodiesOfApply(good.replace("\tapply(", "\tasync apply(")).map((body) => LATER.test(body))).toEqual([true]);
		expect(bodiesOfApply("const done = this.apply(event);\n")).toEqual([]);
	});
});
