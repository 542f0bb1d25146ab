/**
 * Serves a bundle in workerd on a loopback port of its own, with D1 and Durable Objects on disk. Requests go straight to the
 * Worker's socket: the proxy of `wrangler dev` would add 4 ms to each, and its control routes are not for anybody
 * who can reach the port. Called by start and bench; never used in a deployment.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
	convertV4MiniflareOptions,
	Log,
	LogLevel,
	Miniflare,
	type V4MiniflareOptions,
	type WorkerdStructuredLog,
} from "miniflare";
import type { Bundle } from "./bundle.ts";
import { leashed } from "./leash.ts";
import type { Migration } from "./plan.ts";

export type ServeOptions = {
	readonly bundle: Bundle;
	readonly port: number;
	/** Where databases and objects live; it is created. */
	readonly state: string;
	/** Text bindings beside and over those of wrangler.toml: secrets, the public URL, development settings. */
	readonly vars: Readonly<Record<string, string>>;
	readonly onLog: (level: string, message: string) => void;
	/** Further Workers in the same workerd, and sockets to them (bench). */
	readonly extra?: readonly Record<string, unknown>[];
};

export type Served = {
	readonly miniflare: Miniflare;
	readonly database: (binding: string) => Promise<Database>;
	readonly stop: () => Promise<void>;
};
export type Database = Awaited<ReturnType<Miniflare["getD1Database"]>>;

const MODULE_TYPES: Readonly<Record<string, string>> = {
	js: "ESModule",
	mjs: "ESModule",
	wasm: "CompiledWasm",
	txt: "Text",
	sql: "Text",
	html: "Text",
	py: "Text",
	bin: "Data",
};

/** Every module of the bundle; the entry comes first. */
function modulesOf(dir: string): { type: string; path: string }[] {
	return readdirSync(dir, { recursive: true, encoding: "utf8" })
		.flatMap((name) => {
			const type = MODULE_TYPES[name.split(".").pop() ?? ""];
			return type === undefined || name === "report.txt" ? [] : [{ type, path: join(dir, name) }];
		})
		.sort((a, b) => Number(b.path.endsWith("/index.js")) - Number(a.path.endsWith("/index.js")));
}

/** Starts workerd and waits until its sockets listen. Throws when the port is taken or the Worker does not load. */
export async function serve(options: ServeOptions): Promise<Served> {
	const { bundle } = options;
	const worker = {
		...bundle.plan.options,
		name: bundle.plan.name,
		rootPath: bundle.dir,
		modulesRoot: bundle.dir,
		modules: modulesOf(bundle.dir),
		bindings: { ...(bundle.plan.options.bindings as object), ...options.vars },
		unsafeDirectSockets: [{ host: "127.0.0.1", port: options.port }],
	};
	const settings = {
		host: "127.0.0.1",
		// Miniflare's own entry, which nobody uses: any free port.
		port: 0,
		cf: false,
		logRequests: false,
		log: new Log(LogLevel.WARN),
		resourcePersistencePath: options.state,
		handleStructuredLogs: (log: WorkerdStructuredLog) => options.onLog(log.level, log.message),
		workers: [worker, ...(options.extra ?? [])],
	} as unknown as V4MiniflareOptions;
	const { value: miniflare, stop } = await leashed(
		async () => {
			const made = new Miniflare(convertV4MiniflareOptions(settings));
			await made.ready;
			return made;
		},
		(child) => child.spawnfile.includes("workerd"),
	);
	return {
		miniflare,
		database: (binding) => miniflare.getD1Database(binding, bundle.plan.name),
		stop: async () => {
			stop();
			await miniflare.dispose();
		},
	};
}

/**
 * Applies what is not applied yet, in order, each migration with its own record in one transaction. The record is
 * wrangler's (`d1_migrations`), so that a database of either kind can be read by the other. Answers the names applied.
 */
export async function migrate(database: Database, migrations: readonly Migration[]): Promise<string[]> {
	await database
		.prepare(
			"CREATE TABLE IF NOT EXISTS d1_migrations(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)",
		)
		.run();
	const { results } = await database.prepare("SELECT name FROM d1_migrations").all<{ name: string }>();
	const done = new Set(results.map((row) => row.name));
	const missing = migrations.filter(({ name }) => !done.has(name));
	for (const { name, queries } of missing) {
		const record = database.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name);
		await database.batch([...queries.map((query) => database.prepare(query)), record]);
	}
	return missing.map(({ name }) => name);
}
