/**
 * What a measurement runs against: the production bundle in workerd with D1 and Durable Objects on disk, the bare object in
 * the same workerd, a development tenant, and two tools that do nothing but pass through every stage.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleWorker } from "#ops/local/bundle.ts";
import { type DevelopmentKeys, seedWithFreshKeys } from "#ops/local/development-keys.ts";
import { migrate, serve } from "#ops/local/serve.ts";
import { freePort } from "#ops/local/state.ts";
import { Client } from "./load.ts";

export type World = {
	readonly belay: string;
	readonly bare: string;
	readonly keys: DevelopmentKeys["keys"];
	readonly bundle_gzip_kib: number;
	/** From the start of workerd to the first answered health check. */
	readonly started_ms: number;
	readonly end: () => Promise<void>;
};

/** `echo` itself, and the same behind an approval. */
export const ASKING_TOOL = {
	tool_id: "bench_ask",
	name: "bench_ask",
	version: "1.0.0",
	description: "Returns its arguments once a person has agreed. It does nothing else.",
	category: "interface",
	input_schema: { type: "object", properties: { message: { type: "string" } }, additionalProperties: false },
	implementation: { kind: "builtin", name: "echo" },
	effect: "read",
	risk: "low",
	approval: { mode: "always" },
};

export async function openWorld(): Promise<World> {
	const bundle = await bundleWorker(false);
	const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));
	const port = await freePort(0);
	const barePort = await freePort(0);
	const belay = `http://127.0.0.1:${port}`;
	const bare = {
		name: "bare",
		modules: true,
		script: stripTypeScriptTypes(readFileSync(join(import.meta.dirname, "bare-worker.ts"), "utf8")),
		compatibilityDate: bundle.plan.options.compatibilityDate,
		durableObjects: { BARE: { className: "BareObject", useSQLite: true } },
		unsafeDirectSockets: [{ host: "127.0.0.1", port: barePort }],
	};
	const began = performance.now();
	const served = await serve({
		bundle,
		port,
		state: join(folder, "data"),
		vars: { BELAY_MASTER_SECRET: randomBytes(32).toString("base64"), BELAY_PUBLIC_URL: belay },
		onLog: (level, message) => void (level === "error" && console.error(message)),
		extra: [bare],
	});
	const end = async (): Promise<void> => {
		await served.stop();
		rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
	};
	try {
		const client = new Client(belay, 1);
		await client.expect(200, { method: "GET", path: "/healthz" });
		const started_ms = performance.now() - began;
		for (const [binding, migrations] of Object.entries(bundle.plan.migrations))
			await migrate(await served.database(binding), migrations);
		const { keys } = await seedWithFreshKeys(await served.database("DB"));
		await client.expect(201, {
			method: "PUT",
			path: `/v1/tools/${ASKING_TOOL.tool_id}`,
			headers: { authorization: `Bearer ${keys.operator}` },
			body: ASKING_TOOL,
		});
		client.close();
		const bundle_gzip_kib = Number(/gzip:\s*([\d.]+)\s*KiB/.exec(bundle.report)?.[1]);
		return { belay, bare: `http://127.0.0.1:${barePort}`, keys, bundle_gzip_kib, started_ms, end };
	} catch (fault) {
		await end();
		throw fault;
	}
}
