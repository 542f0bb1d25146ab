/** Keys and roles over the API: what is shown once, what is stored, and what is not taken. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { call, pluck, seedTenant, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});

const as = (key: string) => (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
	call(method, path, body, key, headers);
const operator = (...args: Parameters<ReturnType<typeof as>>) => as(tenant.operator)(...args);

describe("keys and roles", () => {
	it("a key is shown once and stored as a hash", async () => {
		const made = await operator("POST", "/v1/keys", {
			principal_id: "agt_new",
			kind: "agent",
			name: "new",
			roles: ["agent_limited"],
		});
		expect(made.body.key).toMatch(/^belay_live_[A-Za-z0-9_-]{43}$/);
		const rows = JSON.stringify((await env.DB.prepare("SELECT * FROM api_keys").all()).results);
		expect(rows).not.toContain(made.body.key.slice("belay_live_".length, -4));
		const listed = await operator("GET", "/v1/keys");
		expect(listed.text).not.toContain(made.body.key);
		expect(pluck(listed.body.data, "key_id")).toContain(made.body.key_id);
	});

	it("a repeated Idempotency-Key makes one key, for one principal", async () => {
		const make = (principal_id: string) =>
			operator("POST", "/v1/keys", { principal_id, kind: "agent", name: "n" }, { "idempotency-key": "k1" });
		const [first, second, other] = [await make("agt_once"), await make("agt_once"), await make("agt_twice")];
		expect(second.body.key).toBe(first.body.key);
		expect(other.status).toBe(409);
	});

	it("an existing principal is named as it is, and a disabled one gets no key", async () => {
		const make = (more: object) => operator("POST", "/v1/keys", { principal_id: "usr_reader", ...more });
		expect((await make({})).status).toBe(201);
		expect((await make({ kind: "user", name: "reader@example.com", roles: ["agent_reader"] })).status).toBe(201);
		expect((await make({ roles: ["agent_operator"] })).body.errors[0].field).toBe("/roles");
		expect((await make({ kind: "agent" })).status).toBe(409);
		expect((await make({ email: "thief@evil.test" })).status).toBe(409);
		expect((await make({ expires_at: "2020-01-01T00:00:00Z" })).body.errors[0].field).toBe("/expires_at");
		const disable =
			"UPDATE principals SET disabled_at = '2026-01-01T00:00:00.000Z' WHERE tenant_id = ?1 AND principal_id = 'usr_reader'";
		await env.DB.prepare(disable).bind(tenant.tenant_id).run();
		expect((await make({})).status).toBe(403);
	});

	it("a role in use is not deleted, and a malformed permission is not stored", async () => {
		expect((await operator("DELETE", "/v1/roles/agent_reader")).body.code).toBe("in_use");
		const bad = await operator("PUT", "/v1/roles/typo", { name: "typo", permissions: ["finance:query", "a b"] });
		expect(pluck(bad.body.errors, "field")).toEqual(["/permissions/1"]);
		expect((await operator("PUT", "/v1/roles/other", { name: "typo" })).status).toBe(422);
		expect((await operator("PUT", "/v1/roles/spare", { name: "spare", permissions: ["finance:query"] })).status).toBe(
			200,
		);
		expect((await operator("DELETE", "/v1/roles/spare")).status).toBe(204);
		expect((await operator("GET", "/v1/roles/spare")).status).toBe(404);
	});
});
