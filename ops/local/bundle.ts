/**
 * The Worker's bundle for local use, made by `wrangler deploy --dry-run`, so it is what a deployment would upload, with one
 * difference in the development build: `BELAY_DEV` is defined (decision 36). Kept by the digest of everything it is made
 * from, so that a restart and a second instance bundle nothing. Called by start, demo, bench and check.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type LocalPlan, PLAN_MARK } from "./plan.ts";

export const ROOT = resolve(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache/belay");
/** Bundles kept; older ones are removed when a new one is made. */
const KEPT = 6;
const ATTEMPTS = 4;
const ABANDONED_MS = 600_000;
const MADE_FROM = [
	"core",
	"adapters",
	"durable-objects",
	"workers",
	"wasm-tools",
	"migrations",
	"ops/demo-dataset",
	"ops/local",
	"wrangler.toml",
	"package-lock.json",
];

/** No metrics, no questions, no colors, nothing written outside the checkout. */
export const QUIET: Readonly<Record<string, string>> = {
	CI: "true",
	NO_COLOR: "1",
	WRANGLER_SEND_METRICS: "false",
	WRANGLER_SEND_ERROR_REPORTS: "false",
	WRANGLER_HIDE_BANNER: "true",
	WRANGLER_LOG_PATH: join(CACHE, "wrangler-logs"),
};

/** A folder with `index.js`, its modules beside it, and `plan.json`. */
export type Bundle = { readonly dir: string; readonly plan: LocalPlan; readonly report: string };

async function digest(dev: boolean): Promise<string> {
	const hash = createHash("sha256").update(dev ? "dev" : "production");
	for (const top of MADE_FROM) {
		const path = join(ROOT, top);
		if (!existsSync(path)) continue;
		const below = await readdir(path, { recursive: true, withFileTypes: true }).catch(() => undefined);
		const files =
			below === undefined
				? [path]
				: below
						.filter((entry) => entry.isFile() && !entry.name.endsWith(".test.ts"))
						.map((entry) => join(entry.parentPath, entry.name));
		for (const file of files.sort()) hash.update(`\0${file.slice(ROOT.length)}\0`).update(await readFile(file));
	}
	return hash.digest("hex").slice(0, 24);
}

/** Runs one of this checkout's programs and answers its output; throws with it when the program fails. */
export async function runTool(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
	const child = spawn(process.execPath, args, {
		cwd: ROOT,
		env: { ...process.env, ...QUIET, ...env },
		stdio: ["ignore", "pipe", "pipe"],
	});
	let output = "";
	for (const stream of [child.stdout, child.stderr])
		stream.setEncoding("utf8").on("data", (text: string) => (output += text));
	const code = await new Promise<number | null>((done, fail) => child.on("error", fail).on("close", done));
	if (code !== 0) throw new Error(`\`${args[0]?.slice(ROOT.length + 1)}\` ended with ${code}:\n${output}`);
	return output;
}

export const WRANGLER = join(ROOT, "node_modules/wrangler/bin/wrangler.js");

async function make(dir: string, dev: boolean): Promise<void> {
	const define = dev ? ["--define", "BELAY_DEV:true"] : [];
	const [report, plan] = await Promise.all([
		runTool([WRANGLER, "deploy", "--dry-run", "--minify", "--outdir", dir, ...define]),
		// The plan holds no secret; a placeholder keeps wrangler from warning that one is missing.
		runTool([join(ROOT, "ops/local/plan.ts")], { BELAY_MASTER_SECRET: "placeholder" }),
	]);
	await writeFile(join(dir, "plan.json"), plan.slice(plan.lastIndexOf(PLAN_MARK) + PLAN_MARK.length));
	await writeFile(join(dir, "report.txt"), report);
}

/** Removes old bundles, and what a killed bundling left behind. */
async function prune(): Promise<void> {
	const found = (await readdir(CACHE))
		.filter((name) => /^[0-9a-f]{24}(\.\d+)?$/.test(name))
		.map((name) => ({ name, at: statSync(join(CACHE, name)).mtimeMs }))
		.sort((a, b) => b.at - a.at);
	const old = found.filter(({ name, at }) => name.includes(".") && Date.now() - at > ABANDONED_MS);
	const extra = found.filter(({ name }) => !name.includes(".")).slice(KEPT);
	for (const { name } of [...old, ...extra]) await rm(join(CACHE, name), { recursive: true, force: true });
}

/** The bundle of the present sources; `dev` decides whether the development exemptions are compiled in. */
export async function bundleWorker(dev: boolean, attempt = 1): Promise<Bundle> {
	const made_from = await digest(dev);
	const dir = join(CACHE, made_from);
	if (!existsSync(join(dir, "plan.json"))) {
		const making = `${dir}.${process.pid}`;
		await mkdir(making, { recursive: true });
		try {
			await make(making, dev);
			// Edited meanwhile: what was bundled belongs to neither digest.
			if ((await digest(dev)) !== made_from) {
				if (attempt === ATTEMPTS) throw new Error("the sources keep changing while they are bundled; start again");
				return await bundleWorker(dev, attempt + 1);
			}
			// Another instance may have been faster: its bundle is the same.
			await rename(making, dir).catch((fault: unknown) => {
				if (!existsSync(join(dir, "plan.json"))) throw fault;
			});
			await prune();
		} finally {
			await rm(making, { recursive: true, force: true });
		}
	}
	const plan = JSON.parse(await readFile(join(dir, "plan.json"), "utf8")) as LocalPlan;
	return { dir, plan, report: await readFile(join(dir, "report.txt"), "utf8") };
}
