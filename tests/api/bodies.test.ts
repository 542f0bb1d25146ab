/** What is malformed, too large or of the wrong shape is said so by status and field, never with a 500 (acceptance 10). */
import { beforeAll, describe, expect, it } from "vitest";
import { BODY_MAX_BYTES, JSON_DEPTH_MAX } from "#core/limits.ts";
import type { FieldError } from "#core/refusal.ts";
import { type Answer, call, seedTenant, send, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});

const post = (body: unknown, headers: Record<string, string> = {}) =>
	call("POST", "/v1/runs", body, tenant.operator, headers);
const problemOf = (answer: { status: number; body: { code: string } }) => [answer.status, answer.body.code];

describe("a body that cannot be read", () => {
	it.each([
		["empty", ""],
		["half an object", '{"goal": "x"'],
		["a trailing comma", '{"goal": "x",}'],
		["single quotes", "{'goal': 'x'}"],
		["NaN", '{"goal": NaN}'],
		["a NUL behind it", '{"goal": "x"}\u0000'],
		["two documents", '{"goal": "x"}{"goal": "y"}'],
		["not UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])],
		["an overlong encoding", new Uint8Array([0x22, 0xc0, 0xaf, 0x22])],
		["a lone surrogate in CESU-8", new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22])],
		["UTF-16", new Uint8Array([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00])],
	])("%s is 400 malformed_body", async (_what, body) => {
		const answer = await post(body);
		expect(problemOf(answer)).toEqual([400, "malformed_body"]);
		expect(answer.headers.get("content-type")).toBe("application/problem+json");
		expect(answer.body).toMatchObject({
			type: "/docs#problem-malformed_body",
			status: 400,
			trace_id: answer.headers.get("trace-id"),
		});
	});

	it.each([
		"text/plain",
		"application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x",
		"application/jsonp",
		"",
	])("content-type `%s` is 415", async (type) => {
		expect(problemOf(await post('{"goal":"x"}', { "content-type": type }))).toEqual([415, "unsupported_media_type"]);
	});

	it("takes parameters and +json types", async () => {
		for (const type of ["application/json; charset=utf-8", "Application/JSON", "application/vnd.x+json"]) {
			expect(problemOf(await post("{}", { "content-type": type }))).toEqual([422, "invalid_request"]);
		}
	});
});

describe("a body that is too large", () => {
	const large = `{"goal":"${"x".repeat(BODY_MAX_BYTES)}"}`;

	it("is 413 by its declared length", async () => {
		expect(problemOf(await post(large))).toEqual([413, "body_too_large"]);
	});

	it("is 413 when it comes in chunks and declares nothing, and is not read to its end", async () => {
		let pulled = 0;
		const chunk = new TextEncoder().encode("x".repeat(65_536));
		const body = new ReadableStream<Uint8Array>({
			pull(controller) {
				pulled += chunk.byteLength;
				if (pulled > 64 * BODY_MAX_BYTES) controller.close();
				else controller.enqueue(chunk);
			},
		});
		const request = new Request("https://belay.test/v1/runs", {
			method: "POST",
			headers: { authorization: `Bearer ${tenant.operator}`, "content-type": "application/json" },
			body,
			duplex: "half",
		} as RequestInit);
		expect(request.headers.get("content-length")).toBeNull();
		expect(problemOf(await send(request))).toEqual([413, "body_too_large"]);
		expect(pulled).toBeLessThan(8 * BODY_MAX_BYTES);
	});

	it("of exactly the limit is read", async () => {
		const frame = '{"nope":""}';
		const answer = await post(`{"nope":"${"x".repeat(BODY_MAX_BYTES - frame.length)}"}`);
		expect(problemOf(answer)).toEqual([422, "invalid_request"]);
	});
});

describe("a body of the wrong shape", () => {
	const fields = ({ body }: Answer) => (body.errors as FieldError[]).map(({ field, issue }) => [field, issue]);

	it.each([
		["an array", "[]"],
		["a text", '"x"'],
		["null", "null"],
		["a number", "1"],
	])("%s is 422 for the whole", async (_what, body) => {
		const answer = await post(body);
		expect(answer.status).toBe(422);
		expect(fields(answer)).toEqual([["", "type_mismatch"]]);
	});

	it("names every field by JSON Pointer, each with its issue", async () => {
		const answer = await post({
			goal: 5,
			messages: [{ role: "tool", content: "forged" }],
			planner: { kind: "magic", "a/b~c": 1 },
			limits: { turns: 0, turn_timeout_ms: "120000" },
			tools: ["a", "a"],
			extra: true,
		});
		expect(answer.status).toBe(422);
		expect(fields(answer).sort()).toEqual(
			[
				["/goal", "type_mismatch"],
				["/messages/0/role", "enum_out_of_range"],
				["/planner/kind", "enum_out_of_range"],
				["/planner/a~1b~0c", "unknown_field"],
				["/limits/turns", "out_of_range"],
				["/limits/turn_timeout_ms", "type_mismatch"],
				["/tools", "not_unique"],
				["/extra", "unknown_field"],
			].sort(),
		);
		for (const one of answer.body.errors)
			expect(Object.keys(one).sort()).toEqual(["error", "expected", "field", "hint", "issue"]);
	});

	it("says what is missing", async () => {
		expect(fields(await post({}))).toEqual([["/goal", "required_field_missing"]]);
	});

	it("keeps prototype keys as data and refuses them where they are unknown", async () => {
		expect(fields(await post('{"goal":"x","__proto__":{"tools":[]}}'))).toEqual([["/__proto__", "unknown_field"]]);
		expect(fields(await post('{"goal":"x","constructor":1}'))).toEqual([["/constructor", "unknown_field"]]);
		const kept = await post(
			'{"goal":"x","planner":{"kind":"external"},"metadata":{"__proto__":{"a":1},"constructor":2}}',
		);
		expect(kept.status).toBe(201);
		expect(kept.text).toContain('"metadata":{"__proto__":{"a":1},"constructor":2}');
		expect(({} as { a?: number }).a).toBeUndefined();
	});

	it("refuses nesting beyond the limit and integers that would be rounded", async () => {
		const deep = "[".repeat(JSON_DEPTH_MAX) + "]".repeat(JSON_DEPTH_MAX);
		expect(fields(await post(`{"goal":"x","metadata":${deep}}`))).toEqual([["", "too_deep"]]);
		expect(fields(await post(`{"goal":"x","metadata":{"d":${"[".repeat(400_000)}${"]".repeat(400_000)}}}`))).toEqual([
			["", "too_deep"],
		]);
		expect(fields(await post('{"goal":"x","metadata":{"id":2512292042121000001}}'))).toEqual([
			["/metadata/id", "integer_out_of_range"],
		]);
	});

	it("holds tool < turn < session", async () => {
		const limits = (one: object) => post({ goal: "x", planner: { kind: "external" }, limits: one });
		expect(fields(await limits({ turn_timeout_ms: 600_000, session_timeout_ms: 600_000 }))).toEqual([
			["/limits/turn_timeout_ms", "out_of_range"],
		]);
		expect(fields(await limits({ turn_timeout_ms: 700_000 }))).toEqual([["/limits/turn_timeout_ms", "out_of_range"]]);
		expect(fields(await limits({ turn_timeout_ms: 100 }))).toEqual([["/limits/turn_timeout_ms", "out_of_range"]]);
		expect((await limits({ turn_timeout_ms: 30_000, session_timeout_ms: 60_000 })).status).toBe(201);
	});

	it("takes a script for a scripted planner, and only for it", async () => {
		expect((await post({ goal: "x", planner: { kind: "scripted" } })).status).toBe(422);
		expect((await post({ goal: "x", planner: { kind: "external", script: [{ content: "done" }] } })).status).toBe(422);
	});

	it.each(["bad key", "", "x".repeat(256)])("refuses the Idempotency-Key `%s`", async (key) => {
		const answer = await post({ goal: "x", planner: { kind: "external" } }, { "idempotency-key": key });
		expect(problemOf(answer)).toEqual([422, "invalid_request"]);
	});

	it("names a query parameter", async () => {
		const answer = await call("GET", "/v1/runs?status=asleep&limit=1000", undefined, tenant.operator);
		expect(fields(answer)).toEqual([
			["query:limit", "out_of_range"],
			["query:status", "enum_out_of_range"],
		]);
		expect((await call("GET", "/v1/runs?cursor=forged", undefined, tenant.operator)).status).toBe(422);
	});
});

describe("paths", () => {
	it.each([
		"/v1",
		"/v1/",
		"/v1/runs/",
		"/v1/nothing",
		"/v2/runs",
		"/console",
		"/v1/runs/run_x/nothing",
		"/%00",
		"/v1/%zz",
		"//v1/runs",
		"/../v1",
	])("%s is the one 404", async (path) => {
		const answer = await call("GET", path, undefined, tenant.operator);
		expect(problemOf(answer)).toEqual([404, "not_found"]);
		expect(answer.body.trace_id).toBe(answer.headers.get("trace-id"));
	});

	it("another method is 405 with Allow", async () => {
		for (const [method, path, allow] of [
			["DELETE", "/v1/runs", "POST, GET, HEAD"],
			["PATCH", "/v1/tools/x", "PUT, GET, DELETE, HEAD"],
			["POST", "/healthz", "GET, HEAD"],
			["OPTIONS", "/v1/runs", "POST, GET, HEAD"],
		] as const) {
			const answer = await call(method, path, undefined, tenant.operator, { origin: "https://evil.test" });
			expect(problemOf(answer)).toEqual([405, "method_not_allowed"]);
			expect(answer.headers.get("allow")).toBe(allow);
			expect(answer.headers.get("access-control-allow-origin")).toBeNull();
		}
	});

	it("a valid traceparent is taken over, any other ignored", async () => {
		const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
		const given = await call("GET", "/healthz", undefined, undefined, {
			traceparent: `00-${trace}-00f067aa0ba902b7-01`,
		});
		expect(given.headers.get("trace-id")).toBe(trace);
		const bad = await call("GET", "/healthz", undefined, undefined, {
			traceparent: `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
		});
		expect(bad.headers.get("trace-id")).toMatch(/^(?!0{32})[0-9a-f]{32}$/);
	});

	it("answers carry the headers that keep them in place", async () => {
		for (const answer of [
			await call("GET", "/v1/runs", undefined, tenant.operator),
			await call("GET", "/v1/runs"),
			await call("GET", "/nothing"),
		]) {
			expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
			expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'");
			expect(answer.headers.get("cache-control")).toBe("no-store");
		}
	});
});

describe("ids", () => {
	const hex = "0".repeat(32);
	it.each([
		`/v1/runs/run_${hex}`,
		"/v1/runs/run_x",
		"/v1/runs/../../etc",
		`/v1/runs/run_${hex.toUpperCase().replace(/0/g, "A")}`,
		`/v1/runs/run_${hex}/evidence`,
		`/v1/runs/run_${hex}/events`,
		"/v1/runs/x/events",
		`/v1/runs/${"x".repeat(5000)}`,
		`/v1/approvals/apr_${hex}_${hex}`,
		`/v1/approvals/call_${hex}_${hex}`,
		"/v1/approvals/x",
		"/v1/tools/no_such_tool",
		"/v1/tools/NO",
		"/v1/tools/no_such_tool/versions",
		"/v1/tools/no_such_tool/facts",
		"/v1/roles/nobody",
	])("%s is not found", async (path) => {
		const answer = await call("GET", path, undefined, tenant.operator);
		expect(problemOf(answer)).toEqual([404, "not_found"]);
	});

	it("another tenant's run answers like one that does not exist, on every route", async () => {
		const other = await seedTenant();
		const mine = await post({ goal: "secret goal", planner: { kind: "external" } });
		expect(mine.status).toBe(201);
		const ways: [string, string, unknown?][] = [
			["GET", ""],
			["GET", "/messages"],
			["GET", "/exposure"],
			["GET", "/evidence"],
			["GET", "/evidence/verify"],
			["GET", "/events"],
			["POST", "/cancel"],
			["POST", "/resume"],
			["POST", "/messages", { content: "x" }],
			["POST", "/decisions", { content: "x" }],
			[`POST`, `/calls/call_${hex}_${hex}/cancel`],
			[`POST`, `/calls/call_${hex}_${hex}/outcome`, { outcome: "happened", reason: "x" }],
		];
		for (const [method, rest, body] of ways) {
			const foreign = await call(method, `/v1/runs/${mine.body.run_id}${rest}`, body, other.operator);
			const absent = await call(method, `/v1/runs/run_${hex}${rest}`, body, other.operator);
			const strip = ({ status, body }: Answer) => ({ status, body: { ...body, trace_id: "" } });
			expect(strip(foreign)).toEqual(strip(absent));
			expect(foreign.status).toBe(404);
		}
		expect((await call("GET", "/v1/runs", undefined, other.operator)).text).not.toContain("secret goal");
	});
});
