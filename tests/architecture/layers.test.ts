/** The rooms and their direction: workers -> durable-objects -> adapters -> core, and the stages in their order. */
import { describe, expect, it } from "vitest";
import { PIPELINE } from "#core/pipeline.ts";
import { importsOf, isTest, repositoryFiles, roomOf, type Source, target, typescript } from "./sources.ts";

const sources = typescript(repositoryFiles());
/** Ground first: a room imports itself and what stands before it. */
const LAYERS = ["core", "adapters", "durable-objects", "workers"] as const;
/** Folders of core that are no stage: the machine that walks them, and what it needs. */
const MACHINERY = ["run", "chain", "planner", "sandbox", "data"];
/** The wire vocabulary of a run: shapes and literals without behavior, so it counts as ground although it lives with the machine. */
const VOCABULARY = "core/run/view.ts";
/** Pure libraries that core may use (docs/ARCHITECTURE.md). */
const PURE = new Set([
	"zod",
	"canonicalize",
	"@cfworker/json-schema",
	"@marcbachmann/cel-js",
	"ipaddr.js",
	"sqlite3-parser",
	"url-template",
]);

const rank = (room: string): number => LAYERS.indexOf(room as (typeof LAYERS)[number]);
const inRoom = (room: string): Source[] => sources.filter((source) => roomOf(source.path) === room);
const edges = (files: readonly Source[]): { from: string; as: string; to: string | undefined }[] =>
	files.flatMap((source) => importsOf(source).map((as) => ({ from: source.path, as, to: target(source.path, as) })));
const show = (edge: { from: string; as: string }): string => `${edge.from} -> ${edge.as}`;

describe("rooms", () => {
	it("finds files in every room and reads what they import", () => {
		for (const room of LAYERS) expect(inRoom(room).length, room).toBeGreaterThan(3);
		expect(edges(inRoom("core")).length).toBeGreaterThan(20);
	});

	it("reads every form of import", () => {
		const text =
			'import a from "./a.ts";\nimport type { B } from "#core/b.ts";\nimport "./c.ts";\nexport { d } from "./d.ts";\nconst e = await import("./e.ts");\nimport {\n\tf,\n\ttype F,\n} from "./f.ts";\n/* import g from "./g.ts" */\n';
		expect(importsOf({ path: "x.ts", text }).sort()).toEqual([
			"#core/b.ts",
			"./a.ts",
			"./c.ts",
			"./d.ts",
			"./e.ts",
			"./f.ts",
		]);
	});

	it("look downward only", () => {
		const upward = edges(LAYERS.flatMap(inRoom).filter(({ path }) => !isTest(path))).filter(({ from, to }) => {
			if (to === undefined) return false;
			const below = rank(roomOf(to));
			return roomOf(to) !== roomOf(from) && roomOf(to) !== "wasm-tools" && (below === -1 || below > rank(roomOf(from)));
		});
		expect(upward.map(show)).toEqual([]);
	});

	// Code only: binary modules and test data are named by their path, which what bundles them reads itself.
	it("reach each other by alias, never by a relative path", () => {
		const aliased = ["core", "adapters", "durable-objects", "wasm-tools"];
		const crossing = edges(sources).filter(
			({ from, as, to }) =>
				as.startsWith(".") &&
				to !== undefined &&
				/\.tsx?$/.test(to) &&
				roomOf(from) !== roomOf(to) &&
				(aliased.includes(roomOf(to)) || rank(roomOf(from)) >= 0),
		);
		expect(crossing.map(show)).toEqual([]);
	});

	it("leave untrusted modules to the adapters", () => {
		const importers = edges(sources.filter(({ path }) => !isTest(path))).filter(
			({ from, to }) => to !== undefined && roomOf(to) === "wasm-tools" && roomOf(from) !== "wasm-tools",
		);
		expect(importers.filter(({ from }) => !from.startsWith("adapters/")).map(show)).toEqual([]);
	});

	it("name files with their ending", () => {
		const bare = edges(sources).filter(
			({ to }) => to !== undefined && !/\.(ts|tsx|json|wasm|sql|md|py|js|mjs|html|css|txt)$/.test(to),
		);
		expect(bare.map(show)).toEqual([]);
	});
});

describe("core", () => {
	const files = inRoom("core").filter(({ path }) => !isTest(path));

	it("uses pure libraries only", () => {
		const worldly = edges(files).filter(({ as, to }) => to === undefined && !PURE.has(as));
		expect(worldly.map(show)).toEqual([]);
	});

	it("has a folder with code for each stage, and no folder that is neither stage nor machinery", () => {
		const folders = new Set(
			files.filter(({ path }) => path.split("/").length > 2).map(({ path }) => path.split("/")[1] ?? ""),
		);
		expect(PIPELINE.filter((stage) => !folders.has(stage))).toEqual([]);
		expect(
			[...folders].filter((folder) => !(PIPELINE as readonly string[]).includes(folder) && !MACHINERY.includes(folder)),
		).toEqual([]);
	});

	it("lets a stage see the ground and earlier stages only", () => {
		const order = PIPELINE as readonly string[];
		const stages = files.filter(({ path }) => order.includes(path.split("/")[1] ?? ""));
		expect(stages.length).toBeGreaterThan(PIPELINE.length);
		const late = edges(stages).filter(({ from, to }) => {
			if (to === undefined) return false;
			const [room, folder = "", deeper] = to.split("/");
			const ground = to === VOCABULARY || (room === "core" && deeper === undefined);
			const at = order.indexOf(folder);
			return !ground && (room !== "core" || at === -1 || at > order.indexOf(from.split("/")[1] ?? ""));
		});
		expect(late.map(show)).toEqual([]);
	});
});

it("takes zod in one form, the one that bundles small", () => {
	const lines = sources.flatMap(({ path, text }) =>
		text
			.split("\n")
			.flatMap((line) =>
				/\bfrom "zod(?:\/[^"]*)?"/.test(line) && !path.startsWith("tests/architecture/")
					? [`${path}: ${line.trim()}`]
					: [],
			),
	);
	expect(lines.length).toBeGreaterThan(3);
	expect(lines.filter((line) => !/: import (?:type )?\* as z from "zod";$/.test(line))).toEqual([]);
});
