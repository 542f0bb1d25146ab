/**
 * What the load test runs against: the bundle with the development exemption for one loopback upstream, in workerd with D1 and
 * Durable Objects on disk, the development tenant with its demonstration data, and tools of each class beside its own.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleWorker } from "#ops/local/bundle.ts";
import { type DevelopmentKeys, seedWithFreshKeys } from "#ops/local/development-keys.ts";
import { type Database, migrate, serve } from "#ops/local/serve.ts";
import { freePort } from "#ops/local/state.ts";
import { Client } from "./load.ts";
import { ASKING_TOOL } from "./world.ts";

export type LoadWorld = {
	readonly belay: string;
	readonly keys: DevelopmentKeys["keys"];
	readonly database: Database;
	/** Requests that the upstream got. */
	readonly upstream: () => number;
	/** Errors that the Worker logged. */
	readonly errors: readonly string[];
	/** Memory of workerd, KiB. */
	readonly rss: () => number;
	readonly end: () => Promise<void>;
};

const http = (tool_id: string, url: string, more: Record<string, unknown>) => ({
	tool_id,
	name: tool_id,
	version: "1.0.0",
	description: "Posts its arguments to the upstream of the load test. It does nothing else.",
	category: "interface",
	input_schema: { type: "object", properties: { message: { type: "string" } }, additionalProperties: false },
	implementation: { kind: "http", method: "POST", url, body: "json" },
	approval: { mode: "never" },
	...more,
});

export async function openLoadWorld(): Promise<LoadWorld> {
	let received = 0;
	const upstream = createServer((request, response) => {
		request.resume().on("end", () => {
			received += 1;
			response.setHeader("content-type", "application/json").end('{"ok":true}');
		});
	});
	await new Promise<void>((done) => upstream.listen(0, "127.0.0.1", done));
	const address = `127.0.0.1:${(upstream.address() as { port: number }).port}`;
	const folder = mkdtempSync(join(tmpdir(), "belay-load-"));
	const errors: string[] = [];
	const port = await freePort(0);
	const belay = `http://127.0.0.1:${port}`;
	const bundle = await bundleWorker(true);
	const served = await serve({
		bundle,
		port,
		state: join(folder, "data"),
		vars: {
			BELAY_MASTER_SECRET: randomBytes(32).toString("base64"),
			BELAY_PUBLIC_URL: belay,
			BELAY_DEV_UPSTREAMS: address,
		},
		onLog: (level, message) => void (level === "error" && errors.push(message)),
	});
	const pid = workerdOf(process.pid);
	const end = async (): Promise<void> => {
		await served.stop();
		upstream.closeAllConnections();
		upstream.close();
		rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
	};
	try {
		for (const [binding, migrations] of Object.entries(bundle.plan.migrations))
			await migrate(await served.database(binding), migrations);
		const database = await served.database("DB");
		const { keys } = await seedWithFreshKeys(database);
		const client = new Client(belay, 1);
		const url = `http://${address}/act`;
		const tools = [
			ASKING_TOOL,
			http("load_read", url, { effect: "read", criticality: "non_core" }),
			http("load_write", url, { effect: "write", criticality: "non_core" }),
			http("load_keyed", url, { effect: "write", criticality: "non_core", idempotency: { mode: "key" } }),
		];
		for (const body of tools)
			await client.expect(201, {
				method: "PUT",
				path: `/v1/tools/${body.tool_id}`,
				headers: { authorization: `Bearer ${keys.operator}` },
				body,
			});
		client.close();
		return { belay, keys, database, upstream: () => received, errors, rss: () => residentKib(pid), end };
	} catch (fault) {
		await end();
		throw fault;
	}
}

/** The workerd that this process started. */
function workerdOf(parent: number): number {
	for (const name of readdirSync("/proc")) {
		if (!/^\d+$/.test(name)) continue;
		try {
			const status = readFileSync(`/proc/${name}/status`, "utf8");
			if (/^Name:\s+workerd/m.test(status) && new RegExp(`^PPid:\\s+${parent}$`, "m").test(status)) return Number(name);
		} catch {
			// it ended while we looked
		}
	}
	throw new Error("no workerd among the children of this process; the load test reads its memory from /proc");
}

function residentKib(pid: number): number {
	return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}
