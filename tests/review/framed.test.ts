/** Every kind of answer carries its trace id and the security headers; what one request broke says nothing to the next. */
import { beforeAll, describe, expect, it } from "vitest";
import { externalRun, ledgerTool, PAY, READ, turn } from "../acceptance/tools.ts";
import { call, seedTenant, type TestTenant, worker } from "../support/client.ts";

const NAMES = [
	"content-security-policy",
	"cache-control",
	"x-content-type-options",
	"x-frame-options",
	"referrer-policy",
	"strict-transport-security",
	"cross-origin-resource-policy",
	"cross-origin-opener-policy",
];
let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	await ledgerTool(tenant, "pay", PAY);
	await ledgerTool(tenant, "big", { ...READ, implementation: { kind: "builtin", name: "echo" } });
});

/** Status, which headers are missing, and whether the trace is the one that was asked under. */
async function framed(method: string, path: string, body?: unknown, key: string | null = tenant.operator) {
	const trace = crypto.randomUUID().replaceAll("-", "");
	const headers = new Headers({ traceparent: `00-${trace}-00f067aa0ba902b7-01` });
	if (key !== null) headers.set("authorization", `Bearer ${key}`);
	if (body !== undefined) headers.set("content-type", "application/json");
	const text = typeof body === "string" ? body : JSON.stringify(body);
	const init = { method, headers, ...(body === undefined ? {} : { body: text }), redirect: "manual" } as const;
	const answer = await worker.fetch(new Request(`https://belay.test${path}`, init));
	await answer.body?.cancel();
	const missing = NAMES.filter((name) => !answer.headers.has(name));
	return [answer.status, missing, answer.headers.get("trace-id") === trace];
}

describe("an answer", () => {
	it.each([
		[200, "GET", "/healthz"],
		[200, "HEAD", "/healthz"],
		[200, "GET", "/openapi.json"],
		[200, "GET", "/docs"],
		[422, "GET", "/.well-known/jwks.json"],
		[404, "GET", "/nowhere"],
		[404, "GET", "/%E0%A4%A"],
		[405, "PATCH", "/v1/runs"],
		[404, "GET", "/a/nolink"],
		[404, "HEAD", "/a/nolink"],
		[401, "GET", "/v1/runs"],
	])("of %i to %s %s is framed", async (status, method, path) => {
		expect(await framed(method, path, undefined, null)).toEqual([status, [], true]);
	});

	it("of a run is framed, whatever is asked of it", async () => {
		const { run_id } = await externalRun(tenant);
		const path = `/v1/runs/${run_id}`;
		const text = "x".repeat(200_000);
		for (const [status, method, where, body] of [
			[201, "POST", "/v1/runs", { goal: "x", planner: { kind: "external" } }],
			[422, "POST", "/v1/runs", {}],
			[400, "POST", "/v1/runs", "{"],
			[200, "GET", path],
			[200, "HEAD", path],
			[200, "GET", `${path}/events`],
			[200, "HEAD", `${path}/events`],
			[200, "POST", `${path}/decisions`, turn(["big", "c1", { text }], ["pay", "c2", { to: "A" }])],
			[409, "POST", `${path}/decisions`, turn(["big", "c1", {}])],
			[404, "POST", "/v1/runs/run_x/decisions", turn(["big", "c1", {}])],
			[404, "GET", `/v1/artifacts/art_${"0".repeat(32)}`],
			[422, "POST", "/v1/chat/completions", {}],
			[200, "POST", `${path}/cancel`, {}],
		] as const)
			expect([where, await framed(method, where, body)]).toEqual([where, [status, [], true]]);
		const answer = await call("GET", path, undefined, tenant.operator);
		const [big] = answer.body.calls;
		if (typeof big.result?.reference === "string") {
			expect(await framed("GET", big.result.reference)).toEqual([200, [], true]);
			expect(await framed("HEAD", big.result.reference)).toEqual([200, [], true]);
		} else expect.fail(`no artifact: ${JSON.stringify(big).slice(0, 200)}`);
	});
});

describe("bytes that were no text", () => {
	const post = (bytes: number[]) => call("POST", "/v1/runs", new Uint8Array(bytes), tenant.operator);
	const GOOD = [...new TextEncoder().encode('{"goal":"é","planner":{"kind":"external"}}')];
	const BOM = [0xef, 0xbb, 0xbf];
	it("leave nothing to the bodies after them: no half character, no swallowed mark", async () => {
		for (const bad of [[0x7b, 0xff], [0xe2, 0x82], [0xf0, 0x9f, 0x98], BOM.slice(0, 2), [...BOM, 0xff], [0xc3]]) {
			expect((await post(bad)).status).toBe(400);
			expect((await post(GOOD)).body.goal).toBe("é");
			expect((await post(bad)).status).toBe(400);
			expect((await post([...BOM, ...GOOD])).body.goal).toBe("é");
			expect((await post([...BOM, ...GOOD])).body.goal).toBe("é");
		}
		expect((await post([...BOM, ...BOM, ...GOOD])).status).toBe(400);
		// What would complete a character that an earlier body began.
		expect((await post([0xe2, 0x82])).status).toBe(400);
		expect((await post([0xac, ...GOOD])).status).toBe(400);
	});
});
