/**
 * `npm run check`: the one gate, the same here and in CI. Format and lint, lint with type information, types, unused code,
 * drift of what is generated, the bundle's size, tests. Prints each step with its time and stops at the first that fails,
 * with its output. `--keep-going` goes on to the next step; `--without-tests` leaves the last one to whoever
 * has run it already (.ci/run).
 */
import { cp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { bundleWorker, ROOT, runTool, WRANGLER } from "./local/bundle.ts";

/** Far under what the platform takes, and near enough to what Belay is to notice a library that came in by accident. */
const BUNDLE_MAX_GZIP_KIB = 900;

const bin = (path: string): string => join(ROOT, "node_modules", path);
const tool =
	(path: string, ...args: string[]) =>
	(): Promise<string> =>
		runTool([bin(path), ...args]);

/** drizzle-kit takes paths from its working directory and ends with 0 when it fails: only its own words count as success. */
async function migrationsDrift(): Promise<string> {
	const out = `node_modules/.cache/belay/migrations-${process.pid}`;
	try {
		await cp(join(ROOT, "migrations"), join(ROOT, out), { recursive: true });
		const output = await runTool([
			bin("drizzle-kit/bin.cjs"),
			"generate",
			"--dialect=sqlite",
			"--schema=./adapters/d1/schema.ts",
			`--out=${out}`,
		]);
		if (!output.includes("No schema changes"))
			throw new Error(`adapters/d1/schema.ts and migrations/ differ; run \`npm run db:generate\`\n${output}`);
		const files = (await readdir(join(ROOT, "migrations"))).filter((name) => name.endsWith(".sql"));
		return `${files.length} migration${files.length === 1 ? "" : "s"}`;
	} finally {
		await rm(join(ROOT, out), { recursive: true, force: true });
	}
}

async function bundleSize(): Promise<string> {
	const { report } = await bundleWorker(false);
	const gzip = Number(/gzip:\s*([\d.]+)\s*KiB/.exec(report)?.[1]);
	if (!(gzip > 0)) throw new Error(`no bundle size in\n${report}`);
	if (gzip > BUNDLE_MAX_GZIP_KIB)
		throw new Error(`the bundle has ${gzip} KiB gzip, the budget is ${BUNDLE_MAX_GZIP_KIB} KiB`);
	return `${gzip} KiB gzip of ${BUNDLE_MAX_GZIP_KIB}`;
}

/** `detail` says which of a step's answers is worth a word behind its name. */
const steps: { name: string; run: () => Promise<string>; detail?: boolean }[] = [
	{ name: "format and lint (biome)", run: tool("@biomejs/biome/bin/biome", "check", "--max-diagnostics=20", ".") },
	{ name: "lint with types (oxlint)", run: tool("oxlint/bin/oxlint", "--type-aware", "--deny-warnings") },
	{ name: "types", run: tool("typescript/bin/tsc", "-p", "tsconfig.json") },
	{ name: "types of core, without the world", run: tool("typescript/bin/tsc", "-p", "tsconfig.core.json") },
	{ name: "unused code (knip)", run: tool("knip/bin/knip.js") },
	{
		name: "generated binding types",
		run: tool(WRANGLER.slice(join(ROOT, "node_modules").length + 1), "types", "--check", ...typesArguments()),
	},
	{ name: "generated migrations", run: migrationsDrift, detail: true },
	{ name: "bundle size", run: bundleSize, detail: true },
];
if (!process.argv.includes("--without-tests"))
	steps.push({ name: "tests", run: () => runTool([join(ROOT, "ops/test.ts")]) });

function typesArguments(): string[] {
	return [
		"--env-interface",
		"Env",
		"--include-runtime",
		"false",
		"--strict-vars",
		"false",
		"worker-configuration.d.ts",
	];
}

for (const { name, run, detail } of steps) {
	const started = performance.now();
	const seconds = (): string => `${((performance.now() - started) / 1000).toFixed(1)} s`;
	try {
		const output = await run();
		console.log(`ok    ${name}  ${seconds()}${detail === true ? `  ${output}` : ""}`);
		if (name === "tests") console.log(output.trimEnd().split("\n").at(-1));
	} catch (fault) {
		console.log(`FAIL  ${name}  ${seconds()}\n${fault instanceof Error ? fault.message : String(fault)}`);
		process.exitCode = 1;
		if (!process.argv.includes("--keep-going")) break;
	}
}
