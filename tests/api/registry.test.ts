/** Tools, secrets and channels over the API: what is stored, what is refused, and what never comes out again. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { type Answer, call, pluck, seedTenant, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});

const as = (key: string) => (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
	call(method, path, body, key, headers);
const operator = (...args: Parameters<ReturnType<typeof as>>) => as(tenant.operator)(...args);

const descriptor = (more: object = {}) => ({
	tool_id: "weather",
	name: "weather",
	version: "1.0.0",
	description: "reads the weather of a city; does not forecast",
	category: "data_retrieval",
	effect: "read",
	risk: "low",
	approval: { mode: "never" },
	input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
	implementation: { kind: "http", method: "GET", url: "https://ledger.test/weather/{city}" },
	...more,
});
const put = (body: ReturnType<typeof descriptor>) => operator("PUT", `/v1/tools/${body.tool_id}`, body);

describe("tools", () => {
	it("are registered, read, versioned, taken offline and brought back", async () => {
		const made = await put(descriptor());
		expect(made.status).toBe(201);
		expect(made.body).toMatchObject({ tool_id: "weather", status: "online", criticality: "normal", warnings: [] });
		expect(made.body.definition_hash).toMatch(/^[0-9a-f]{64}$/);
		expect((await put(descriptor())).status).toBe(200);

		const other = await put(descriptor({ description: "says something else, not the same" }));
		expect([other.status, other.body.code]).toEqual([409, "version_conflict"]);
		const stricter = {
			type: "object",
			properties: { city: { type: "string" }, zip: { type: "string" } },
			required: ["city", "zip"],
		};
		const narrowed = await put(descriptor({ version: "1.1.0", input_schema: stricter }));
		expect([narrowed.status, narrowed.body.code]).toEqual([409, "incompatible_change"]);
		expect((await put(descriptor({ version: "2.0.0", input_schema: stricter }))).status).toBe(201);

		expect((await operator("GET", "/v1/tools/weather")).body.version).toBe("2.0.0");
		const versions = await operator("GET", "/v1/tools/weather/versions");
		expect(pluck(versions.body.data, "version")).toEqual(["2.0.0", "1.0.0"]);

		const gone = await operator("DELETE", "/v1/tools/weather");
		expect([gone.status, gone.body.status]).toEqual([200, "offline"]);
		expect(gone.body.offline_since).toMatch(/^\d{4}-\d\d-\d\dT/);
		const facts = await operator("GET", "/v1/tools/weather/facts");
		expect(facts.body.registry.holds).toBe(false);
		expect(facts.body.registry.reason).toContain("offline since");
		const listed = await operator("GET", "/v1/tools?status=offline");
		expect(pluck(listed.body.data, "tool_id")).toEqual(["weather"]);
		expect((await put(descriptor({ version: "2.0.0", input_schema: stricter }))).status).toBe(200);
		expect((await operator("GET", "/v1/tools/weather/facts")).body.registry.holds).toBe(true);
	});

	it("name every error at once, by field", async () => {
		const answer = await put(
			descriptor({
				name: "Bad Name",
				timeout_ms: 5,
				input_schema: { type: "nonsense" },
				capabilities: ["weather"],
				surprise: 1,
			}) as never,
		);
		expect(answer.status).toBe(422);
		const fields = pluck(answer.body.errors, "field") as string[];
		for (const field of ["/name", "/timeout_ms", "/capabilities/0", "/surprise"]) expect(fields).toContain(field);
		expect(fields.some((field: string) => field.startsWith("/input_schema"))).toBe(true);
	});

	it.each([
		["another id than the path's", { tool_id: "weather2" }, "/tool_id"],
		[
			"a private upstream",
			{ implementation: { kind: "http", method: "GET", url: "http://169.254.169.254/latest" } },
			"/implementation/url",
		],
		[
			"Belay itself as upstream",
			{ implementation: { kind: "http", method: "GET", url: "https://belay.test/v1/runs" } },
			"/implementation/url",
		],
		[
			"a credential in a header",
			{
				implementation: {
					kind: "http",
					method: "GET",
					url: "https://ledger.test/x",
					headers: { authorization: "Bearer abc" },
				},
			},
			undefined,
		],
		[
			"a writing statement",
			{ implementation: { kind: "sql", dataset: "demo", sql: "SELECT 1; DROP TABLE x" } },
			undefined,
		],
		[
			"a member that its kind does not have",
			{ implementation: { kind: "builtin", name: "clock", url: "https://x.test" } },
			undefined,
		],
	])("are refused with %s", async (_what, more, field) => {
		const answer = await operator("PUT", "/v1/tools/weather", descriptor({ version: "3.0.0", ...more }));
		expect(answer.status).toBe(422);
		const fields = pluck(answer.body.errors, "field") as string[];
		if (field !== undefined) expect(fields).toContain(field);
		else expect(fields.every((one) => one.startsWith("/implementation"))).toBe(true);
	});

	it("of which two publish the same version with other content, one wins", async () => {
		const race = await Promise.all(
			[1, 2, 3, 4].map((n) =>
				put(descriptor({ tool_id: "raced", name: "raced", description: `number ${n}, not another` })),
			),
		);
		expect(race.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
	});

	it("are the same unknown tool to whoever may not call them (Q7)", async () => {
		const limited = as(tenant.limited);
		const all = pluck((await operator("GET", "/v1/tools")).body.data, "tool_id") as string[];
		const seen = pluck((await limited("GET", "/v1/tools")).body.data, "tool_id") as string[];
		expect(seen.sort()).toEqual(["clock_now", "echo", "text_stats"]);
		expect(all.length).toBeGreaterThan(seen.length);
		const strip = ({ status, body }: Answer) => ({ status, body: { ...body, trace_id: "" } });
		for (const path of ["", "/versions", "/facts"]) {
			const hidden = await limited("GET", `/v1/tools/weather${path}`);
			expect(hidden.status).toBe(404);
			expect(strip(hidden)).toEqual(strip(await limited("GET", `/v1/tools/no_such${path}`)));
		}
		expect((await limited("GET", "/v1/tools/echo")).status).toBe(200);
	});

	it("that are internal or legacy are hidden from agents with every permission", async () => {
		await put(descriptor({ tool_id: "primitive", name: "primitive", visibility: "internal" }));
		expect((await operator("GET", "/v1/tools/primitive")).status).toBe(200);
		expect((await as(tenant.agent)("GET", "/v1/tools/primitive")).status).toBe(404);
		expect((await as(tenant.agent)("GET", "/v1/tools")).text).not.toContain("primitive");
		expect(pluck((await operator("GET", "/v1/tools?visibility=internal")).body.data, "tool_id")).toContain("primitive");
	});

	it("of another tenant are nobody's here", async () => {
		const other = await seedTenant();
		expect((await call("GET", "/v1/tools/weather", undefined, other.operator)).status).toBe(404);
		expect((await call("DELETE", "/v1/tools/weather", undefined, other.operator)).status).toBe(404);
		expect((await operator("GET", "/v1/tools/weather")).body.status).toBe("online");
	});

	it("leave a trail: who published what", async () => {
		const { results } = await env.DB.prepare(
			"SELECT principal_id, action, tool_id, status, seq FROM audit WHERE tenant_id = ?1 AND tool_id = 'raced' ORDER BY seq, status",
		)
			.bind(tenant.tenant_id)
			.all();
		expect(results).toHaveLength(8);
		expect(results.filter(({ status }) => status === "done")).toEqual([
			{ principal_id: "usr_operator", action: "tool.publish", tool_id: "raced", status: "done", seq: 1 },
		]);
		expect(results.filter(({ status }) => status === "version_conflict")).toHaveLength(3);
	});
});

describe("secrets", () => {
	const VALUE = "sk-very-secret-0123456789";
	const body = (more: object = {}) => ({
		value: VALUE,
		allowed_hosts: ["api.example.com"],
		allowed_tools: ["weather"],
		...more,
	});

	it("go in and never come out", async () => {
		const answers = [
			await operator("PUT", "/v1/secrets/upstream", body()),
			await operator("PUT", "/v1/secrets/upstream", body()),
			await operator("GET", "/v1/secrets"),
			await operator("PUT", "/v1/secrets/upstream", body({ allowed_hosts: ["*"] })),
			await operator("PUT", "/v1/secrets/upstream", body({ value: [VALUE] })),
			await operator("PUT", "/v1/secrets/upstream", body({ [VALUE]: VALUE, value: undefined, allowed_hosts: VALUE })),
			await operator("PUT", "/v1/secrets/upstream", `{"value": "${VALUE}", broken`),
			await operator("PUT", `/v1/secrets/${"x".repeat(65)}`, body()),
			await operator("GET", "/v1/secrets/upstream"),
		];
		expect(answers.map(({ status }) => status)).toEqual([201, 200, 200, 422, 422, 422, 400, 422, 405]);
		expect(answers[1]?.body.version).toBe(2);
		for (const [at, { text }] of answers.entries()) if (at !== 5) expect(text).not.toContain(VALUE);
		const dump = JSON.stringify([
			(await env.DB.prepare("SELECT * FROM secrets").all()).results,
			(await env.DB.prepare("SELECT * FROM audit").all()).results,
		]);
		expect(dump).not.toContain(VALUE);
		expect(dump).toContain("secret.put");
	});

	it("are forgotten, and their versions are not used again", async () => {
		expect((await operator("DELETE", "/v1/secrets/upstream")).status).toBe(204);
		expect((await operator("DELETE", "/v1/secrets/upstream")).status).toBe(404);
		expect((await operator("GET", "/v1/secrets")).body.data).toEqual([]);
		expect((await operator("PUT", "/v1/secrets/upstream", body())).body.version).toBe(3);
	});
});

it("a url placeholder that no declared argument fills is refused", async () => {
	const tool = (url: string) => ({
		tool_id: "placed",
		name: "placed",
		version: "1.0.0",
		description: "Reads one thing. It does not write.",
		category: "data_retrieval",
		input_schema: { type: "object", properties: { id: { type: "string" }, q: { type: "string" } } },
		implementation: { kind: "http", method: "GET", url },
	});
	const bad = await operator("PUT", "/v1/tools/placed", tool("https://ledger.test/{id}/{nope}{?q}"));
	expect(bad.status).toBe(422);
	expect(bad.body.errors).toMatchObject([{ field: "/implementation/url", issue: "unknown_name" }]);
	expect(bad.body.errors[0].error).toContain("`{nope}`");
	expect((await operator("PUT", "/v1/tools/placed", tool("https://ledger.test/{id}{?q}"))).status).toBe(201);
});

describe("channels", () => {
	it("keep their secret and the path of their url to themselves", async () => {
		const url = "https://hooks.example.com/services/T000/B000/credential";
		const made = await operator("POST", "/v1/channels", { kind: "webhook", name: "ops", url, secret: "whsec_abc" });
		expect(made.status).toBe(201);
		const listed = await operator("GET", "/v1/channels");
		for (const { text } of [made, listed]) {
			expect(text).not.toContain("credential");
			expect(text).not.toContain("whsec_abc");
		}
		expect(made.body.url).toBe("https://hooks.example.com");
		expect((await operator("DELETE", `/v1/channels/${made.body.channel_id}`)).status).toBe(204);
		expect((await operator("DELETE", `/v1/channels/${made.body.channel_id}`)).status).toBe(404);
	});

	it.each([
		"http://hooks.example.com/x",
		"https://127.0.0.1/x",
		"https://belay.test/v1/runs",
		"file:///etc/passwd",
		"nonsense",
	])("refuse %s", async (url) => {
		const answer = await operator("POST", "/v1/channels", { kind: "webhook", name: "bad", url });
		expect([answer.status, answer.body.errors[0].field]).toEqual([422, "/url"]);
	});

	it.each([undefined, "", "nobody", "a@example.com, b", "a@example.com,"])("by mail refuse `to` %s", async (to) => {
		const answer = await operator("POST", "/v1/channels", { kind: "email", name: "mail_bad", to });
		expect([answer.status, answer.body.errors?.[0].field]).toEqual([422, "/to"]);
	});

	it("say what is wrong in words, not as the checker names it", async () => {
		const { body } = await operator("POST", "/v1/channels", { kind: "email", name: "Not This", to: "a@example.com" });
		expect(body.errors[0].expected).toMatch(/^lowercase letters/);
		const run = await operator("POST", "/v1/runs", { goal: "x", limits: { turns: 1.5 } });
		expect(run.body.errors).toMatchObject([{ field: "/limits/turns", expected: "a whole number" }]);
	});

	it("are made once per Idempotency-Key", async () => {
		const make = (name: string) =>
			operator("POST", "/v1/channels", { kind: "email", name, to: "a@example.com" }, { "idempotency-key": "once" });
		const [first, second, other] = [await make("mail"), await make("mail"), await make("post")];
		expect([first.status, second.status, other.status]).toEqual([201, 201, 409]);
		expect(second.body).toEqual(first.body);
		expect(other.body.code).toBe("idempotency_conflict");
	});
});
