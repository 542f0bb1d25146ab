/** Migrations of local databases: each once, in order, whole or not at all, on databases of an earlier version too. */
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { afterAll, beforeAll, expect, it } from "vitest";
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
});
afterAll(() => miniflare.dispose());

const first = { name: "0000_first.sql", queries: ["CREATE TABLE a (x TEXT)", "INSERT INTO a VALUES ('kept')"] };
const second = { name: "0001_second.sql", queries: ["ALTER TABLE a ADD COLUMN y TEXT DEFAULT 'new'"] };
const broken = {
	name: "0002_broken.sql",
	queries: ["INSERT INTO a (x) VALUES ('half')", "INSERT INTO nowhere VALUES (1)"],
};

it("applies what is missing, and nothing twice", async () => {
	expect(await migrate(database, [first])).toEqual(["0000_first.sql"]);
	expect(await migrate(database, [first])).toEqual([]);
	expect(await migrate(database, [first, second])).toEqual(["0001_second.sql"]);
	expect(await migrate(database, [first, second])).toEqual([]);
	expect((await database.prepare("SELECT x, y FROM a").all()).results).toEqual([{ x: "kept", y: "new" }]);
});

it("leaves no half of a migration that fails, and tries it again the next time", async () => {
	await expect(migrate(database, [first, second, broken])).rejects.toThrow(/nowhere/);
	expect((await database.prepare("SELECT x FROM a").all()).results).toEqual([{ x: "kept" }]);
	const mended = { ...broken, queries: broken.queries.slice(0, 1) };
	expect(await migrate(database, [first, second, mended])).toEqual(["0002_broken.sql"]);
});
