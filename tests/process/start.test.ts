/** `npm start` as a person meets it: files, keys, ports, orderly and disorderly ends. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endAll, Instance, isListening, npm, stateFolder, until } from "./instance.ts";

let first: Instance;
beforeAll(async () => {
	first = await Instance.start(stateFolder());
});
afterAll(endAll);

describe("npm start", () => {
	it("has written complete credentials, for its owner alone, before it says ready", () => {
		expect(Object.keys(first.credentials).sort()).toEqual([
			"agent_key",
			"approver_key",
			"base_url",
			"limited_key",
			"operator_key",
			"reader_key",
			"tenant_id",
		]);
		expect(new Set(Object.values(first.credentials)).size).toBe(7);
		for (const name of ["dev-credentials.json", "master-secret"])
			expect(statSync(join(first.folder, name)).mode & 0o777, name).toBe(0o600);
		const shown = first.process.output();
		for (const value of Object.values(first.credentials)) expect(shown).toContain(value);
	});

	it("serves, and asks for a key", async () => {
		expect((await fetch(`${first.credentials.base_url}/healthz`)).status).toBe(200);
		expect((await fetch(`${first.credentials.base_url}/v1/runs`)).status).toBe(401);
		for (const key of ["operator_key", "reader_key", "agent_key"] as const)
			await first.expect(200, key, "GET", "/v1/runs");
	});

	it("refuses a port that is taken, and says so", async () => {
		const second = npm("start", { BELAY_STATE_DIR: stateFolder(), PORT: String(first.port) });
		expect(await second.ended).not.toBe(0);
		expect(second.output()).toContain(`port ${first.port} is in use`);
	});

	it("refuses a state directory that a running instance holds", async () => {
		const second = npm("start", { BELAY_STATE_DIR: first.folder, PORT: "0" });
		expect(await second.ended).not.toBe(0);
		expect(second.output()).toContain("is in use by process");
		await first.expect(200, "operator_key", "GET", "/v1/runs");
	});

	it("runs twice side by side, and neither takes the other's keys", async () => {
		const second = await Instance.start(stateFolder());
		expect(second.port).not.toBe(first.port);
		const crossed = await fetch(`${first.credentials.base_url}/v1/runs`, {
			headers: { authorization: `Bearer ${second.credentials.operator_key}` },
		});
		expect(crossed.status).toBe(401);
		await second.expect(200, "operator_key", "GET", "/v1/runs");
		await first.expect(200, "operator_key", "GET", "/v1/runs");
		await second.kill();
	});

	it("does not outlive an npm that was killed", async () => {
		const orphan = await Instance.start(stateFolder());
		orphan.process.child.kill("SIGKILL");
		await until("port free", 15_000, async () => ((await isListening(orphan.port)) ? undefined : true));
	});

	it("ends on SIGTERM with nothing left, and starts again with the same secret and keys that still work", async () => {
		const before = await Instance.start(stateFolder());
		const secret = readFileSync(join(before.folder, "master-secret"), "utf8");
		process.kill(-(before.process.child.pid ?? 0), "SIGTERM");
		await before.process.ended;
		await until("port free", 15_000, async () => ((await isListening(before.port)) ? undefined : true));
		expect(existsSync(join(before.folder, "instance.json"))).toBe(false);
		const after = await Instance.start(before.folder);
		expect(readFileSync(join(after.folder, "master-secret"), "utf8")).toBe(secret);
		expect(after.credentials).toEqual({ ...before.credentials, base_url: `http://127.0.0.1:${after.port}` });
		for (const key of ["operator_key", "approver_key", "reader_key", "agent_key"] as const)
			await after.expect(200, key, "GET", "/v1/runs");
		await after.kill();
	});
});
