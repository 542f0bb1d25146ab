/** Sizes, leftovers and addresses: what creeps in when nobody looks. */
import { describe, expect, it } from "vitest";
import large from "./large-files.json" with { type: "json" };
import { isTest, repositoryFiles, roomOf, typescript } from "./sources.ts";

const files = repositoryFiles();
const sources = typescript(files);
const ratchet = new Map(Object.entries(large as Record<string, number>));
const LARGE_LINES = 300;
const MEDIAN_LINES = 130;
const linesOf = (text: string): number => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);

describe("sizes", () => {
	const sizes = sources.filter(({ path }) => !isTest(path)).map(({ path, text }) => ({ path, lines: linesOf(text) }));

	it(`keeps files under ${LARGE_LINES} lines; those listed in large-files.json may only shrink`, () => {
		expect(sizes.length).toBeGreaterThan(40);
		expect(sizes.filter(({ path, lines }) => lines > Math.max(LARGE_LINES, ratchet.get(path) ?? 0))).toEqual([]);
	});

	it("drops an entry of the list once its file is small, gone, or smaller than listed", () => {
		const stale = [...ratchet].filter(([path, listed]) => {
			const now = sizes.find((file) => file.path === path)?.lines ?? 0;
			return now <= LARGE_LINES || now < listed;
		});
		expect(stale).toEqual([]);
	});

	it(`keeps the median under ${MEDIAN_LINES} lines`, () => {
		const sorted = sizes.map(({ lines }) => lines).sort((a, b) => a - b);
		expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThan(MEDIAN_LINES);
	});
});

describe("leftovers", () => {
	// Spelled in pieces, so that this file does not find itself.
	const left = new RegExp(
		`\\b(?:${["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"].join("|")})\\b|\\b(?:it|test|describe|suite)(?:\\.\\w+)*\\.(?:${["sk" + "ip", "on" + "ly", "to" + "do"].join("|")})(?:If)?\\(|\\b(?:x|f)(?:it|describe)\\(["'\`]`,
	);

	it("has no test set aside and no work put off", () => {
		const found = files
			.filter(({ path }) => /\.(tsx?|sql|sh|mjs|js)$/.test(path) || path === ".ci/run")
			.flatMap(({ path, text }) =>
				text.split("\n").flatMap((line, at) => (left.test(line) ? [`${path}:${at + 1}`] : [])),
			);
		expect(found).toEqual([]);
	});

	it("would be caught", () => {
		expect(left.test("describe.sk" + 'ip("x")')).toBe(true);
		expect(left.test("// TO" + "DO later")).toBe(true);
		expect(left.test("reader.skip(4)")).toBe(false);
	});
});

describe("addresses", () => {
	const machine = new RegExp(
		["/ho" + "me/[a-z]", "/Us" + "ers/[A-Za-z]", "/ro" + "ot/", "/wo" + "rk/", "[A-Z]:\\\\Us" + "ers"].join("|"),
	);
	const registry = new RegExp(
		[
			"registry\\.np" + "mjs",
			"registry\\.ya" + "rnpkg",
			"npm" + "mirror",
			"arti" + "factory",
			'"resolved": "ht' + "tps?:",
		].join("|"),
		"i",
	);

	it("names no path of somebody's machine and no package registry", () => {
		expect(files.length).toBeGreaterThan(60);
		const found = files.flatMap(({ path, text }) =>
			text
				.split("\n")
				.flatMap((line, at) =>
					(path !== "package-lock.json" && machine.test(line)) || registry.test(line)
						? [`${path}:${at + 1} ${line.trim().slice(0, 80)}`]
						: [],
				),
		);
		expect(found).toEqual([]);
	});
});

describe("documents", () => {
	it("mention every room in docs/ARCHITECTURE.md", () => {
		const text = files.find(({ path }) => path === "docs/ARCHITECTURE.md")?.text ?? "";
		const rooms = [...new Set(files.map(({ path }) => roomOf(path)))].filter(
			(room) => room !== "" && !room.startsWith(".git"),
		);
		expect(rooms.length).toBeGreaterThan(6);
		expect(rooms.filter((room) => !text.includes(`${room}/`))).toEqual([]);
	});

	it("link only to files that exist", () => {
		const known = new Set(files.map(({ path }) => path));
		const folders = new Set(
			[...known].flatMap((path) => path.split("/").map((_, at, parts) => parts.slice(0, at).join("/"))),
		);
		const broken = files
			.filter(({ path }) => path.endsWith(".md"))
			.flatMap(({ path, text }) =>
				[...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)[^)]*\)/g)]
					.map((found) => new URL(found[1] ?? "", `file:///${path}`).pathname.slice(1).replace(/\/$/, ""))
					.filter((to) => !known.has(to) && !folders.has(to))
					.map((to) => `${path} -> ${to}`),
			);
		expect(broken).toEqual([]);
	});
});
