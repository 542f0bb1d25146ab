/** What the platform calls start-up: running the production bundle's top level, as `wrangler check startup` profiles it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runTool, WRANGLER } from "#ops/local/bundle.ts";

/** Active processor time of the Worker's start in workerd, ms; idle waiting is not in it. */
export async function measureStartup(): Promise<number> {
	const folder = mkdtempSync(join(tmpdir(), "belay-startup-"));
	try {
		const bundle = join(folder, "worker.bundle");
		await runTool([WRANGLER, "deploy", "--dry-run", "--minify", "--outfile", bundle]);
		const report = await runTool([
			WRANGLER,
			"check",
			"startup",
			"--worker",
			bundle,
			"--outfile",
			join(folder, "startup.cpuprofile"),
		]);
		const active = /Active:\s*([\d.]+)\s*ms/.exec(report)?.[1];
		if (active === undefined) throw new Error(`no start-up time in:\n${report}`);
		return Number(active);
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}
