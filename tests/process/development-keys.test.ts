/** Keys of the development tenant over restarts: one that still lets its principal in is kept, and every other is replaced. */
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bundleWorker } from "#ops/local/bundle.ts";
import { seedWithKeys } from "#ops/local/development-keys.ts";
import { type Database, migrate } from "#ops/local/serve.ts";

let miniflare: Miniflare;
let database: Database;
beforeAll(async () => {
	miniflare = new Miniflare(
		convertV4MiniflareOptions({
			workers: [{ name: "empty", modules: true, script: "export default {}", d1Databases: { DB: "db" } }],
		}),
	);
	database = await miniflare.getD1Database("DB", "empty");
	await migrate(database, (await bundleWorker(true)).plan.migrations.DB ?? []);
});
afterAll(() => miniflare.dispose());

const live = async (): Promise<unknown> => database.prepare("SELECT count(*) AS n FROM api_keys").first("n");

it("keeps the keys that are valid, and makes those that are missing, expired, revoked, foreign or another's", async () => {
	const { keys } = await seedWithKeys(database);
	expect((await seedWithKeys(database, keys)).keys).toEqual(keys);
	expect(await live()).toBe(5);

	const change = (principal_id: string, column: string, value: string): Promise<unknown> =>
		database.prepare(`UPDATE api_keys SET ${column} = ?1 WHERE principal_id = ?2`).bind(value, principal_id).run();
	await change("usr_reader", "expires_at", new Date(Date.now() - 1).toISOString());
	await change("usr_approver", "revoked_at", new Date().toISOString());
	const { keys: later } = await seedWithKeys(database, { ...keys, agent: keys.operator, limited: "belay_dev_foreign" });
	expect(later.operator).toBe(keys.operator);
	expect(new Set([...Object.values(keys), ...Object.values(later)]).size).toBe(9);
	expect(await live()).toBe(5);
	expect((await seedWithKeys(database, later)).keys).toEqual(later);

	const { operator: _, ...others } = later;
	const { keys: last } = await seedWithKeys(database, { ...others, agent: 5 } as never);
	expect(last).toMatchObject({ reader: later.reader, approver: later.approver, limited: later.limited });
	expect([last.operator, last.agent]).not.toContain(later.operator);
	expect(await live()).toBe(5);
});
