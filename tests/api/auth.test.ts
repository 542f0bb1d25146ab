/** Who may call what: table-driven over the route table, so that a new route cannot be forgotten. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { routes } from "../../workers/api/app.ts";
import { call, newKey, seedTenant, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});

/** Decision 25 and the way to its page, and nothing else. */
const PUBLIC = [
	"GET /",
	"GET /healthz",
	"GET /openapi.json",
	"GET /docs",
	"GET /.well-known/jwks.json",
	"GET /a/:token",
	"POST /a/:token",
];
const named = routes.map((route) => ({ route, name: `${route.method} ${route.path}` }));
const guarded = named.filter(({ name }) => !PUBLIC.includes(name));
/** A path with something of the right form in every parameter. */
const concrete = (path: string): string =>
	path
		.replace(":run_id", `run_${"0".repeat(32)}`)
		.replace(":approval_id", `apr_${"0".repeat(32)}_${"0".repeat(32)}`)
		.replace(":tool_call_id", `call_${"0".repeat(32)}_${"0".repeat(32)}`)
		.replaceAll(/:[a-z_]+/g, "something");

describe("keys", () => {
	it("finds the routes that it is about", () => {
		expect(guarded.length).toBeGreaterThan(35);
		expect(
			named
				.filter(({ route }) => route.access.who === "public")
				.map(({ name }) => name)
				.sort(),
		).toEqual([...PUBLIC].sort());
	});

	it.each(guarded)("$name asks for a key before anything else", async ({ route }) => {
		const answer = await call(route.method, concrete(route.path), route.body === undefined ? undefined : "not json");
		expect(answer.status).toBe(401);
		// Chat completions answer in the envelope that their clients know.
		expect(answer.body.code ?? answer.body.error.code).toBe("unauthorized");
		expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer /);
	});

	it.each([
		["an unknown key", `Bearer ${newKey()}`],
		["another scheme", "Basic dXNlcjpwYXNz"],
		["a key of another form", "Bearer secret"],
		["nothing behind the scheme", "Bearer "],
		["two keys", `Bearer ${newKey()}, Bearer ${newKey()}`],
	])("turns %s away with the same answer", async (_what, authorization) => {
		const answer = await call("GET", "/v1/runs", undefined, undefined, { authorization });
		expect(answer.status).toBe(401);
		expect(answer.body.code).toBe("unauthorized");
	});

	it("does not let a revoked or expired key in, nor one of a disabled principal", async () => {
		const other = await seedTenant();
		const update = (sql: string) => env.DB.prepare(sql).bind(other.tenant_id).run();
		await update(
			"UPDATE api_keys SET revoked_at = '2020-01-01T00:00:00.000Z' WHERE tenant_id = ?1 AND principal_id = 'usr_reader'",
		);
		await update(
			"UPDATE api_keys SET expires_at = '2020-01-01T00:00:00.000Z' WHERE tenant_id = ?1 AND principal_id = 'usr_approver'",
		);
		await update(
			"UPDATE principals SET disabled_at = '2020-01-01T00:00:00.000Z' WHERE tenant_id = ?1 AND principal_id = 'agt_agent'",
		);
		for (const key of [other.reader, other.approver, other.agent])
			expect((await call("GET", "/v1/runs", undefined, key)).status).toBe(401);
		expect((await call("GET", "/v1/runs", undefined, other.operator)).status).toBe(200);
	});

	it("works for a new key in an isolate that has just refused it", async () => {
		const made = await call(
			"POST",
			"/v1/keys",
			{ principal_id: "agt_late", kind: "agent", name: "late", roles: ["agent_limited"] },
			tenant.operator,
		);
		expect(made.status).toBe(201);
		expect((await call("GET", "/v1/runs", undefined, made.body.key)).status).toBe(200);
	});
});

describe("administration", () => {
	const administrative = named.filter(({ route }) => route.access.administrative);

	it("knows every write that is no run's", () => {
		const expected = guarded
			.filter(({ route }) => route.method !== "GET" && !/^\/v1\/(runs|approvals|chat)/.test(route.path))
			.map(({ name }) => name);
		expect(administrative.map(({ name }) => name).sort()).toEqual(expected.sort());
		expect(expected.length).toBeGreaterThanOrEqual(10);
	});

	it.each(administrative)(
		"$name refuses an agent whatever its roles, with a good and a bad body alike",
		async ({ route }) => {
			for (const body of [undefined, "not json"]) {
				const answer = await call(route.method, concrete(route.path), body, tenant.agent);
				expect(answer.status).toBe(403);
				expect(answer.body.code).toBe("forbidden");
			}
		},
	);

	it.each(administrative)("$name refuses a reader", async ({ route }) => {
		const answer = await call(route.method, concrete(route.path), undefined, tenant.reader);
		expect(answer.status).toBe(403);
	});

	it.each(["decision", "edit", "links"])(
		"an agent's %s of an approval is refused before anybody looks for it",
		async (verb) => {
			const answer = await call(
				"POST",
				`/v1/approvals/apr_${"0".repeat(32)}_${"0".repeat(32)}/${verb}`,
				{},
				tenant.agent,
			);
			expect(answer.status).toBe(403);
		},
	);

	it("an agent states no outcome", async () => {
		const answer = await call(
			"POST",
			`/v1/runs/run_${"0".repeat(32)}/calls/x/outcome`,
			{ outcome: "happened", reason: "x" },
			tenant.agent,
		);
		expect(answer.status).toBe(403);
	});
});

describe("granting", () => {
	async function keyOf(kind: string, permissions: string[]): Promise<string> {
		const id = crypto.randomUUID().slice(0, 8);
		const name = `r_${id.replaceAll("-", "_")}`;
		expect((await call("PUT", `/v1/roles/${name}`, { name, permissions }, tenant.operator)).status).toBe(200);
		const made = await call(
			"POST",
			"/v1/keys",
			{ principal_id: `p_${id}`, kind, name: id, roles: [name] },
			tenant.operator,
		);
		expect(made.status).toBe(201);
		return made.body.key;
	}

	it("nobody grants more than they hold, by key, role or binding", async () => {
		const clerk = await keyOf("user", ["keys:manage:*", "roles:manage:*", "finance:read:*"]);
		const attempts = [
			await call(
				"POST",
				"/v1/keys",
				{ principal_id: "p_new", kind: "user", name: "x", roles: ["agent_operator"] },
				clerk,
			),
			await call("POST", "/v1/keys", { principal_id: "usr_operator" }, clerk),
			await call("PUT", "/v1/roles/mine", { name: "mine", permissions: ["*:*:*"] }, clerk),
			await call("PUT", "/v1/roles/mine", { name: "mine", tools: ["refund"] }, clerk),
			await call("PUT", "/v1/roles/mine", { name: "mine", data_scope: "all" }, clerk),
			await call("PUT", "/v1/role-bindings/usr_reader/agent_operator", undefined, clerk),
		];
		expect(attempts.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403, 403]);
		expect((await call("PUT", "/v1/roles/mine", { name: "mine", permissions: ["finance:read:*"] }, clerk)).status).toBe(
			200,
		);
	});

	it("a service makes no key for a person, who could then approve for it", async () => {
		const service = await keyOf("service", ["*:*:*"]);
		expect(
			(await call("POST", "/v1/keys", { principal_id: "p_person", kind: "user", name: "x" }, service)).status,
		).toBe(403);
		expect((await call("POST", "/v1/keys", { principal_id: "usr_approver" }, service)).status).toBe(403);
		expect((await call("POST", "/v1/keys", { principal_id: "p_bot", kind: "agent", name: "x" }, service)).status).toBe(
			201,
		);
		expect(
			(await call("POST", `/v1/approvals/apr_${"0".repeat(32)}_${"0".repeat(32)}/decision`, {}, service)).status,
		).toBe(403);
	});

	it("a change of roles counts at once, and so does a revocation", async () => {
		const { key, key_id } = (
			await call("POST", "/v1/keys", { principal_id: "p_shift", kind: "user", name: "s" }, tenant.operator)
		).body;
		expect((await call("GET", "/v1/secrets", undefined, key)).status).toBe(403);
		expect((await call("PUT", "/v1/role-bindings/p_shift/agent_operator", undefined, tenant.operator)).status).toBe(
			200,
		);
		expect((await call("GET", "/v1/secrets", undefined, key)).status).toBe(200);
		expect((await call("DELETE", "/v1/role-bindings/p_shift/agent_operator", undefined, tenant.operator)).status).toBe(
			204,
		);
		expect((await call("GET", "/v1/secrets", undefined, key)).status).toBe(403);
		expect((await call("DELETE", `/v1/keys/${key_id}`, undefined, tenant.operator)).status).toBe(204);
		expect((await call("GET", "/v1/runs", undefined, key)).status).toBe(401);
	});
});
