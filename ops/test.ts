/**
 * `npm test`: Vitest over all projects, and at the very end one line that a machine can read, `N passed, N failed`. A run
 * without tests, a file that does not load and an error outside any test count as failures. Arguments go to Vitest.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "..");
const RESULTS = join(ROOT, "node_modules/.cache/belay/test-results.json");

type Results = {
	numPassedTests: number;
	numFailedTests: number;
	numPendingTests: number;
	testResults: { status: string; assertionResults: unknown[] }[];
};

rmSync(RESULTS, { force: true });
const vitest = spawn(
	process.execPath,
	[
		join(ROOT, "node_modules/vitest/vitest.mjs"),
		"run",
		"--reporter=default",
		"--reporter=json",
		`--outputFile.json=${RESULTS}`,
		...process.argv.slice(2),
	],
	{ cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] },
);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => vitest.kill(signal));
const code = await new Promise<number | null>((done) => vitest.on("close", done));

const results = existsSync(RESULTS) ? (JSON.parse(readFileSync(RESULTS, "utf8")) as Results) : undefined;
const passed = results?.numPassedTests ?? 0;
const unloaded =
	results?.testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0).length ?? 0;
let failed = (results?.numFailedTests ?? 0) + unloaded;
if (failed === 0 && (code !== 0 || passed === 0)) failed = 1;
if (results !== undefined && results.numPendingTests > 0) console.log(`${results.numPendingTests} not run`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
