import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { D1Audit } from "#adapters/d1/d1-audit.ts";
import { D1AuthorityStore } from "#adapters/d1/d1-authority-store.ts";
import { D1Channels } from "#adapters/d1/d1-channels.ts";
import { D1KeyStore } from "#adapters/d1/d1-key-store.ts";
import { D1Secrets } from "#adapters/d1/d1-secrets.ts";
import { D1Sessions } from "#adapters/d1/d1-sessions.ts";
import { D1ToolCatalog, type NewToolVersion } from "#adapters/d1/d1-tool-catalog.ts";
import { D1Unavailable } from "#adapters/d1/d1-unavailable.ts";
import { toolDescriptor } from "#core/registry/descriptor.ts";
import { AT, at, auditRow } from "./rows.ts";

const tool = (tool_id: string, version = "1.0.0", definition_hash = `${tool_id}@${version}`): NewToolVersion => ({
	definition_hash,
	created_at: AT,
	descriptor: toolDescriptor.parse({
		tool_id,
		name: "echo",
		version,
		description: `does "${tool_id}"; it's \\u0000 fine`,
		category: "compute",
		input_schema: { type: "object" },
		implementation: { kind: "builtin", name: "echo" },
	}),
});

describe("D1ToolCatalog", () => {
	const catalog = () => new D1ToolCatalog(env.DB);
	const online = async (tenant: string) =>
		(await catalog().listOnline(tenant)).map(({ descriptor }) => `${descriptor.tool_id}@${descriptor.version}`);

	it("shows the newest online version of each tool, by version and not by arrival or by text", async () => {
		const outcomes = await catalog().publish("c1", [
			tool("b", "1.10.0"),
			tool("b", "1.9.0"),
			tool("a"),
			tool("b", "1.2.0"),
		]);
		expect(outcomes.map((one) => one.outcome)).toEqual(["created", "created", "created", "created"]);
		expect(outcomes[0]?.stored).toEqual({ ...tool("b", "1.10.0"), status: "online", offline_since: null });
		expect(await online("c1")).toEqual(["a@1.0.0", "b@1.10.0"]);
		expect((await catalog().versions("c1", "b")).map((one) => one.descriptor.version)).toEqual([
			"1.10.0",
			"1.9.0",
			"1.2.0",
		]);
		expect((await catalog().get("c1", "b"))?.descriptor.version).toBe("1.10.0");
		expect((await catalog().get("c1", "b", "1.2.0"))?.definition_hash).toBe("b@1.2.0");
		expect(await catalog().get("c1", "b", "3.0.0")).toBeUndefined();
		expect(await online("c2")).toEqual([]);
	});

	it("tells the same content from other content of a version, and changes nothing", async () => {
		await catalog().publish("c3", [tool("a")]);
		expect((await catalog().publish("c3", [tool("a")]))[0]?.outcome).toBe("same");
		const [conflict] = await catalog().publish("c3", [tool("a", "1.0.0", "other")]);
		expect(conflict).toMatchObject({ outcome: "conflict", stored: { definition_hash: "a@1.0.0" } });
		expect((await catalog().get("c3", "a"))?.definition_hash).toBe("a@1.0.0");
	});

	it("lets one of two that arrive together win", async () => {
		const both = await Promise.all([
			catalog().publish("c4", [tool("a", "1.0.0", "one")]),
			catalog().publish("c4", [tool("a", "1.0.0", "two")]),
		]);
		expect(both.map(([one]) => one?.outcome).sort()).toEqual(["conflict", "created"]);
		expect(both[0]?.[0]?.stored).toEqual(both[1]?.[0]?.stored);
	});

	it("retires a tool, keeps it for the audit, and brings the same definition back", async () => {
		await catalog().publish("c5", [tool("a"), tool("a", "2.0.0"), tool("b")]);
		expect(await catalog().retire("c5", "a", at(5))).toBe(true);
		expect(await catalog().retire("c5", "a", at(6))).toBe(false);
		expect(await online("c5")).toEqual(["b@1.0.0"]);
		expect((await catalog().get("c5", "a", "2.0.0"))?.offline_since).toBe(at(5));
		expect(
			(await catalog().listAll("c5")).map((one) => [one.descriptor.tool_id, one.descriptor.version, one.status]),
		).toEqual([
			["a", "2.0.0", "offline"],
			["b", "1.0.0", "online"],
		]);
		expect((await catalog().publish("c5", [tool("a", "1.0.0", "other")]))[0]?.outcome).toBe("conflict");
		expect(await online("c5")).toEqual(["b@1.0.0"]);
		expect((await catalog().publish("c5", [tool("a")]))[0]?.outcome).toBe("same");
		expect(await online("c5")).toEqual(["a@1.0.0", "b@1.0.0"]);
	});

	it("publishes and lists 300 tools", async () => {
		const many = Array.from({ length: 300 }, (_, n) => tool(`t${n}`));
		expect((await catalog().publish("c6", many)).every((one) => one.outcome === "created")).toBe(true);
		expect(await online("c6")).toHaveLength(300);
	});

	it("answers the list from the index of newest versions", async () => {
		const plan = await env.DB.prepare(
			"EXPLAIN QUERY PLAN SELECT * FROM tool_versions WHERE tenant_id = ?1 AND is_latest = 1 ORDER BY tool_id",
		)
			.bind("c6")
			.all<{ detail: string }>();
		expect(plan.results.map((row) => row.detail).join()).toMatch(
			/^SEARCH tool_versions USING INDEX tool_versions_latest \(tenant_id=\?\)$/,
		);
	});

	it("leaves a broken row out instead of failing the tenant", async () => {
		await catalog().publish("c7", [tool("a"), tool("b"), tool("c")]);
		await env.DB.prepare("UPDATE tool_versions SET descriptor = '{' WHERE tenant_id = 'c7' AND tool_id = 'a'").run();
		// A row whose descriptor names another tool would let one tool's grant run the other's definition.
		const swapped = JSON.stringify(tool("c").descriptor);
		await env.DB.prepare("UPDATE tool_versions SET descriptor = ?1 WHERE tenant_id = 'c7' AND tool_id = 'b'")
			.bind(swapped)
			.run();
		expect(await online("c7")).toEqual(["c@1.0.0"]);
	});
});

describe("D1AuthorityStore", () => {
	const role = (name: string, more: object) =>
		env.DB.prepare("INSERT INTO roles VALUES ('a1', ?1, ?2, ?3)").bind(name, JSON.stringify({ name, ...more }), AT);
	const principal = (id: string, disabled: string | null = null) =>
		env.DB.prepare(
			"INSERT INTO principals (tenant_id, principal_id, kind, name, created_at, disabled_at) VALUES ('a1', ?1, 'user', ?1, ?2, ?3)",
		).bind(id, AT, disabled);
	const bound = (id: string, name: string) =>
		env.DB.prepare("INSERT INTO role_bindings VALUES ('a1', ?1, ?2, ?3)").bind(id, name, AT);

	it("adds roles up, takes the widest scope, and gives the disabled and the unknown nothing", async () => {
		await env.DB.batch([
			role("reader", { permissions: ["*:read:*", "x:y:z"], data_scope: "department" }),
			role("single", { permissions: ["x:y:z"], tools: ["pay"], data_scope: "own" }),
			env.DB.prepare(
				"INSERT INTO roles VALUES ('a1', 'broken', '{\"permissions\": [\"*:*:*\"], \"extra\": 1}', ?1)",
			).bind(AT),
			env.DB.prepare(
				'INSERT INTO roles VALUES (\'a1\', \'disguised\', \'{"name": "reader", "permissions": ["*:*:*"]}\', ?1)',
			).bind(AT),
			env.DB.prepare(
				'INSERT INTO roles VALUES (\'a2\', \'admin\', \'{"name": "admin", "permissions": ["*:*:*"]}\', ?1)',
			).bind(AT),
			principal("both"),
			principal("none"),
			principal("gone", AT),
			...["reader", "single", "broken", "disguised", "missing", "admin"].map((name) => bound("both", name)),
			bound("gone", "reader"),
		]);
		const store = new D1AuthorityStore(env.DB);
		expect(await store.resolve("a1", "both", 7)).toEqual({
			policy_rev: 7,
			roles: ["reader", "single"],
			permissions: ["*:read:*", "x:y:z"],
			tools: ["pay"],
			data_scope: "department",
		});
		expect(await store.resolve("a1", "none", 7)).toEqual({
			policy_rev: 7,
			roles: [],
			permissions: [],
			tools: [],
			data_scope: "own",
		});
		expect(await store.resolve("a1", "gone", 7)).toBeUndefined();
		expect(await store.resolve("a1", "nobody", 7)).toBeUndefined();
		expect(await store.resolve("a2", "both", 7)).toBeUndefined();
	});
});

describe("D1KeyStore", () => {
	it("knows a key by its hash, while it lasts and its owner may", async () => {
		const keys = new D1KeyStore(env.DB);
		const key = {
			key_id: "key_1",
			key_hash: "c".repeat(64),
			prefix: "belay_dev",
			last4: "wxyz",
			principal_id: "p1",
			created_at: AT,
			expires_at: at(100),
		};
		await env.DB.prepare(
			"INSERT INTO principals (tenant_id, principal_id, kind, name, created_at) VALUES ('k1', 'p1', 'agent', 'P', ?1)",
		)
			.bind(AT)
			.run();
		expect(await keys.insert("k1", key)).toBe(true);
		expect(await keys.insert("k2", { ...key, key_id: "key_2" })).toBe(false);
		const owner = { tenant_id: "k1", principal_id: "p1", kind: "agent", name: "P" };
		expect(await keys.find(key.key_hash, AT)).toEqual({
			ok: true,
			principal: owner,
			key_id: "key_1",
			expires_at: at(100),
		});
		expect(await keys.find(key.key_hash, at(100))).toEqual({ ok: false, reason: "expired" });
		expect(await keys.find("d".repeat(64), AT)).toEqual({ ok: false, reason: "unknown_key" });
		expect(await keys.find("' OR 1=1 --", AT)).toEqual({ ok: false, reason: "unknown_key" });
		expect(JSON.stringify(await keys.list("k1"))).not.toContain(key.key_hash);
		expect(await keys.revoke("k2", "key_1", AT)).toBe(false);
		await env.DB.prepare("UPDATE principals SET disabled_at = ?1 WHERE tenant_id = 'k1'").bind(AT).run();
		expect(await keys.find(key.key_hash, AT)).toEqual({ ok: false, reason: "principal_disabled" });
		expect(await keys.revoke("k1", "key_1", at(1))).toBe(true);
		await keys.revoke("k1", "key_1", at(2));
		expect((await keys.list("k1"))[0]?.revoked_at).toBe(at(1));
		expect(await keys.find(key.key_hash, AT)).toEqual({ ok: false, reason: "revoked" });
	});
});

describe("D1Sessions", () => {
	it("belong to their first user, in their tenant, also when two come at once", async () => {
		const sessions = new D1Sessions(env.DB);
		expect(await sessions.bind("s1", "sess_a", "p1", AT)).toBe("bound");
		expect(await sessions.bind("s1", "sess_a", "p1", at(1))).toBe("bound");
		expect(await sessions.bind("s1", "sess_a", "p2", at(2))).toBe("taken");
		expect(await sessions.bind("s2", "sess_a", "p2", at(3))).toBe("bound");
		const race = await Promise.all(["p1", "p2", "p3"].map((one) => sessions.bind("s1", "sess_b", one, AT)));
		expect(race.filter((answer) => answer === "bound")).toHaveLength(1);
	});
});

describe("D1Secrets", () => {
	it("stores the next version only, lists no value and never uses a version again", async () => {
		const secrets = new D1Secrets(env.DB);
		const sealed = (version: number, ciphertext: string) => ({
			name: "token",
			version,
			ciphertext,
			allowed_hosts: ["api.test"],
			allowed_tools: ["pay"],
		});
		expect(await secrets.nextVersion("v1", "token")).toBe(1);
		expect(await secrets.put("v1", sealed(1, "v1.k.i.one"), AT)).toBe(true);
		expect(await secrets.put("v1", sealed(1, "v1.k.i.replayed"), AT)).toBe(false);
		expect(await secrets.put("v1", sealed(3, "v1.k.i.ahead"), AT)).toBe(false);
		expect(await secrets.put("v1", sealed(2, "v1.k.i.two"), at(1))).toBe(true);
		expect(await secrets.get("v1", "token")).toEqual({ ...sealed(2, "v1.k.i.two"), created_at: AT, updated_at: at(1) });
		expect(JSON.stringify(await secrets.list("v1"))).not.toContain("v1.k.i");
		expect(await secrets.get("v2", "token")).toBeUndefined();
		expect(await secrets.delete("v1", "token", at(2))).toBe(true);
		expect(await secrets.delete("v1", "token", at(2))).toBe(false);
		expect(await secrets.get("v1", "token")).toBeUndefined();
		expect(await secrets.list("v1")).toEqual([]);
		expect(await secrets.nextVersion("v1", "token")).toBe(3);
		const gone = await env.DB.prepare("SELECT ciphertext FROM secrets WHERE tenant_id = 'v1'").first("ciphertext");
		expect(gone).toBeNull();
	});
});

describe("D1Channels", () => {
	it("are found by id or name, in their tenant, and listed without secrets", async () => {
		const channels = new D1Channels(env.DB);
		const one = {
			channel_id: "ch_1",
			kind: "slack" as const,
			name: "owner",
			url: "https://hooks.test/x",
			to: null,
			secret: "v1.sealed",
			locale: null,
			created_at: AT,
		};
		expect(await channels.insert("n1", one)).toBe(true);
		expect(await channels.insert("n1", { ...one, channel_id: "ch_2" })).toBe(false);
		expect(await channels.find("n1", "owner")).toEqual(one);
		expect(await channels.find("n1", "ch_1")).toEqual(one);
		expect(await channels.find("n2", "owner")).toBeUndefined();
		expect(JSON.stringify(await channels.list("n1"))).not.toContain("sealed");
		await expect(channels.insert("n1", { ...one, channel_id: "ch_3", name: "ch_1" })).rejects.toThrow();
		expect(await channels.delete("n2", "ch_1")).toBe(false);
		expect(await channels.delete("n1", "ch_1")).toBe(true);
		expect(await channels.find("n1", "owner")).toBeUndefined();
	});
});

describe("D1Audit", () => {
	it("keeps administrative actions once, and pages through rows of one moment", async () => {
		const audit = new D1Audit(env.DB);
		const action = auditRow({
			run_id: null,
			action: "tool.registered",
			input_params: { tool_id: "pay" },
			security_flags: ["none"],
		});
		await audit.append("u1", "adm_1", action);
		await audit.append("u1", "adm_1", action);
		await audit.append("u1", "adm_2", { ...action, trace_id: "2".repeat(32), principal_id: "usr_2" });
		await audit.append("u1", "adm_2", { ...action, seq: 2, trace_id: "2".repeat(32), principal_id: "usr_2" });
		const seen: string[] = [];
		let cursor: string | undefined;
		do {
			const page = await audit.list("u1", { limit: 1, cursor });
			if (!page.ok) throw new Error(page.reason);
			seen.push(...page.data.map((row) => `${row.stream_id}:${row.seq}`));
			cursor = page.next_cursor ?? undefined;
		} while (cursor !== undefined);
		expect(seen).toEqual(["adm_2:2", "adm_2:1", "adm_1:1"]);
		const mine = await audit.list("u1", { principal_id: "usr_1", from: AT, to: at(1) });
		expect(mine.ok && mine.data).toEqual([{ ...action, stream_id: "adm_1" }]);
		expect(await audit.list("u1", { to: AT })).toMatchObject({ data: [] });
		expect(await audit.list("u2", {})).toMatchObject({ data: [] });
	});

	it("says so when an entry cannot be kept", async () => {
		const huge = auditRow({ run_id: null, input_params: { text: "x".repeat(100_000) } });
		await expect(new D1Audit(env.DB).append("u3", "adm_1", huge)).rejects.toBeInstanceOf(D1Unavailable);
	});
});

describe("a D1 that fails", () => {
	it("is told in words that hold neither SQL nor values", async () => {
		const broken = {
			prepare: () => {
				throw new Error("SELECT s3cret FROM t");
			},
		} as unknown as D1Database;
		for (const work of [
			() => new D1KeyStore(broken).find("s3cret", AT),
			() => new D1ToolCatalog(broken).listOnline("s3cret"),
			() => new D1Sessions(broken).bind("t", "s3cret", "p", AT),
			() => new D1AuthorityStore(broken).resolve("s3cret", "p", 1),
		]) {
			const error = await work().catch((thrown: unknown) => thrown);
			expect(error).toBeInstanceOf(D1Unavailable);
			expect(`${(error as Error).message} ${(error as Error).stack}`).not.toMatch(/s3cret|SELECT/);
			expect((error as Error).cause).toBeUndefined();
		}
	});

	it("is read again after a lost connection", async () => {
		let calls = 0;
		const flaky = {
			prepare: (sql: string) => {
				if (++calls === 1) throw new Error("D1_ERROR: Network connection lost.");
				return env.DB.prepare(sql);
			},
		} as unknown as D1Database;
		expect(await new D1ToolCatalog(flaky).listOnline("nobody")).toEqual([]);
		expect(calls).toBe(2);
	});
});
