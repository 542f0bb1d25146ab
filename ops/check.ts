/**
 * `npm run check`: the one gate, the same here and in CI. Format and lint, lint with type information, types, unused code,
 * drift of what is generated, the bundle's size, tests. Prints each step with its time and stops at the first that fails,
 * with its output. `--without-tests` leaves the last step to whoever has run it already (.ci/run).
 */
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleWorker, ROOT, runTool, WRANGLER } from "./local/bundle.ts";

/** Far under what the platform takes, and near enough to what Belay is to notice a library that came in by accident. */
const BUNDLE_MAX_GZIP_KIB = 900;

const bin = (path: string): string => join(ROOT, "node_modules", path);
const tool =
	(path: string, ...args: string[]) =>
	(): Promise<string> =>
		runTool([bin(path), ...args]);

async function migrationsDrift(): Promise<string> {
	const out = await mkdtemp(join(tmpdir(), "belay-migrations-"));
	try {
		await cp(join(ROOT, "migrations"), out, { recursive: true });
		const before = (await readdir(out)).length;
		const output = await runTool([
			bin("drizzle-kit/bin.cjs"),
			"generate",
			"--dialect=sqlite",
			`--schema=${join(ROOT, "adapters/d1/schema.ts")}`,
			`--out=${out}`,
		]);
		const after = await readdir(out);
		if (after.length !== before)
			throw new Error(`adapters/d1/schema.ts and migrations/ differ; run \`npm run db:generate\`\n${output}`);
		return `${after.filter((name) => name.endsWith(".sql")).length} migrations`;
	} finally {
		await rm(out, { recursive: true, force: true });
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
		break;
	}
}
