/** `npm run tenant`: the SQL it writes lets exactly the shown key in, and a deployed build serves its owner. */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { unstable_splitSqlQuery } from "wrangler";
import { bundleWorker, ROOT } from "#ops/local/bundle.ts";
import { type Database, migrate, type Served, serve } from "#ops/local/serve.ts";
import { freePort } from "#ops/local/state.ts";
import { emailFault, nameFault } from "#ops/seed/new-tenant.ts";
import { endAll, stateFolder } from "./instance.ts";

let served: Served;
let database: Database;
let base: string;
beforeAll(async () => {
	const bundle = await bundleWorker(false);
	const port = await freePort(0);
	base = `http://127.0.0.1:${port}`;
	const vars = { BELAY_MASTER_SECRET: randomBytes(32).toString("base64"), BELAY_PUBLIC_URL: "https://b.example.com" };
	served = await serve({ bundle, port, state: stateFolder(), vars, onLog: () => undefined });
	database = await served.database("DB");
	await migrate(database, bundle.plan.migrations.DB ?? []);
});
afterAll(async () => {
	await served?.stop();
	await endAll();
});

function tenant(...args: string[]): { status: number | null; stdout: string; stderr: string } {
	return spawnSync(process.execPath, [join(ROOT, "ops/tenant.ts"), ...args], { encoding: "utf8", cwd: ROOT });
}
async function ask(key: string, method: string, path: string, body?: unknown) {
	const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
	const answer = await fetch(`${base}${path}`, {
		method,
		headers,
		body: body === undefined ? null : JSON.stringify(body),
	});
	return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}
/** Makes a tenant in the database of the instance and answers its key. */
async function made(name: string): Promise<{ key: string; sql: string }> {
	const { status, stdout, stderr } = tenant("--name", name, "--email", "owner@example.com", "--print-sql");
	expect(status, stderr).toBe(0);
	await database.batch(unstable_splitSqlQuery(stdout).map((query) => database.prepare(query)));
	return { key: /belay_live_[A-Za-z0-9_-]{43}/.exec(stderr)?.[0] ?? "", sql: stdout };
}

it("lets its owner in, who may register, run, decide and make keys, and nobody else's things", async () => {
	const { key, sql } = await made("Acme; it's 'ours' ?1");
	expect(sql).not.toContain(key);
	expect(sql).not.toContain(key.slice("belay_live_".length));
	const { results } = await database.prepare("SELECT name FROM tenants").all();
	expect(results).toEqual([{ name: "Acme; it's 'ours' ?1" }]);
	const tool = {
		tool_id: "echoing",
		name: "echoing",
		version: "1.0.0",
		description: "Returns what it is given. It does nothing else.",
		category: "interface",
		input_schema: { type: "object", properties: {}, additionalProperties: false },
		implementation: { kind: "builtin", name: "echo" },
	};
	expect(await ask(key, "PUT", "/v1/tools/echoing", tool)).toMatchObject({ status: 201 });
	expect(await ask(key, "POST", "/v1/runs", { goal: "x", planner: { kind: "external" } })).toMatchObject({
		status: 201,
	});
	expect(await ask(key, "GET", "/v1/approvals")).toMatchObject({ status: 200 });
	const agent = { principal_id: "agt_one", kind: "agent", name: "one", roles: ["agent_reader"] };
	expect(await ask(key, "POST", "/v1/keys", agent)).toMatchObject({ status: 201 });
	const listed = await ask(key, "GET", "/v1/keys");
	expect(listed.body.data).toMatchObject([
		{ prefix: "belay_live_", last4: key.slice(-4), principal_id: "usr_owner", expires_at: null, revoked_at: null },
		{ principal_id: "agt_one" },
	]);

	const other = await made("Other");
	expect((await ask(other.key, "GET", "/v1/runs")).body.data).toEqual([]);
	expect(await ask(other.key, "GET", "/v1/tools/echoing")).toMatchObject({ status: 404 });
	expect((await ask(`${key.slice(0, -1)}${key.endsWith("A") ? "E" : "A"}`, "GET", "/v1/runs")).status).toBe(401);
});

it("refuses what it cannot make, says how it is asked for, and shows no key", () => {
	for (const name of ["", " ", " Acme", "two\nlines", "hidden\u202etext", "\ud800", "x".repeat(101)])
		expect(nameFault(name), JSON.stringify(name)).toContain('for example --name "Acme"');
	for (const name of ["Acme", "甲公司", 'O\'Neil; "Sons" ?1', "x".repeat(100)]) expect(nameFault(name)).toBeNull();
	for (const email of ["nobody", "a@b", "a b@c.de", `${"x".repeat(320)}@c.de`])
		expect(emailFault(email)).toContain("--email owner@example.com");
	const refused = [["--print-sql"], ["--name", "Acme"], ["--name", "two\nlines", "--local"]].map((args) => ({
		args,
		...tenant(...args),
	}));
	for (const { args, status, stdout, stderr } of refused) {
		expect([status, stdout], args.join(" ")).toEqual([1, ""]);
		expect(stderr).toMatch(/^no tenant was made: .*\n\nnpm run tenant -- --name "Acme"/s);
		expect(stderr).not.toContain("belay_live_");
	}
});
