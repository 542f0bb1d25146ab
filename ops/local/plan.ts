/**
 * What a local Worker is made of, apart from its code: bindings as wrangler.toml declares them and the migrations of each
 * of its databases, as JSON on standard output. A process of its own because loading wrangler takes a second, which
 * `bundle.ts` spends beside the bundling and only when something changed. Reads no secrets: the caller adds them.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { unstable_getMiniflareWorkerOptions, unstable_readConfig, unstable_splitSqlQuery } from "wrangler";

/** One migration, split into statements as `wrangler d1 migrations apply` splits it. */
export type Migration = { readonly name: string; readonly queries: readonly string[] };
/** `options` are Miniflare's Worker options without modules; `migrations` go by the name of the D1 binding. */
export type LocalPlan = {
	readonly name: string;
	readonly options: Record<string, unknown>;
	readonly migrations: Readonly<Record<string, readonly Migration[]>>;
};

/** The marker before the JSON: wrangler may print warnings of its own first. */
export const PLAN_MARK = "local-plan:";

function readMigrations(folder: string): Migration[] {
	return readdirSync(folder)
		.filter((name) => /^\d+.*\.sql$/.test(name))
		.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10) || (a < b ? -1 : 1))
		.map((name) => ({ name, queries: unstable_splitSqlQuery(readFileSync(join(folder, name), "utf8")) }));
}

if (import.meta.main) {
	const config = unstable_readConfig({ config: "wrangler.toml" });
	const { workerOptions } = unstable_getMiniflareWorkerOptions("wrangler.toml", undefined, { envFiles: [] } as object);
	// Workers AI is never local: with its binding, a start would depend on a login and a network.
	const { ai: _remote, ...local } = workerOptions as Record<string, unknown>;
	const migrations = Object.fromEntries(
		(config.d1_databases as readonly { binding: string; migrations_dir?: string }[]).map((database) => [
			database.binding,
			readMigrations(database.migrations_dir ?? "migrations"),
		]),
	);
	const plan: LocalPlan = {
		name: config.name ?? "belay",
		options: local,
		migrations,
	};
	process.stdout.write(`${PLAN_MARK}${JSON.stringify(plan)}\n`);
}
