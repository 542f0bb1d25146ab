import { expect, test } from "vitest";
import { fillRequest } from "#adapters/http/fill-request.ts";
import type { JsonObject } from "#core/json.ts";
import { CALL, call, ok, TRACE, World } from "./world.ts";

const world = () => new World({ "api.test": ok, "evil.test": ok, "127.0.0.1:4010": ok });
const get = (url: string, more: JsonObject = {}) => ({ kind: "http", method: "GET", url, ...more });

test("GET: template from arguments, the rest to the query, fixed values beside them", async () => {
	const w = world();
	const args = { id: "a/b c", tags: ["x", "y"], page: 2, deep: { a: 1 }, none: null, flag: false };
	const outcome = await call(w, {
		implementation: get("https://api.test/items/{id}", { query: { v: "1" }, headers: { "X-Client": "belay" } }),
		args,
	});
	expect(outcome.kind).toBe("success");
	expect(w.seen[0]?.url).toBe(
		"https://api.test/items/a%2Fb%20c?tags=x&tags=y&page=2&deep=%7B%22a%22%3A1%7D&flag=false&v=1",
	);
	expect(w.seen[0]?.headers["x-client"]).toBe("belay");
	expect(w.seen[0]?.body).toBe("");
});

test("POST: the rest as JSON, or as a form, or in the query when there is no body", async () => {
	const w = world();
	const args = { id: "7", name: "Zoë", n: 1 };
	const post = { kind: "http", method: "POST", url: "https://api.test/items/{id}" };
	await call(w, { implementation: post, args });
	await call(w, { implementation: { ...post, body: "form" }, args });
	await call(w, { implementation: { ...post, body: "none" }, args });
	await call(w, {
		implementation: { ...post, headers: { "Content-Type": "application/vnd.api+json" } },
		args: { id: "7" },
	});
	expect(w.seen.map((one) => [one.url.slice(16), one.headers["content-type"] ?? null, one.body])).toEqual([
		["/items/7", "application/json", '{"name":"Zoë","n":1}'],
		["/items/7", "application/x-www-form-urlencoded", "name=Zo%C3%AB&n=1"],
		["/items/7?name=Zo%C3%AB&n=1", null, ""],
		["/items/7", "application/vnd.api+json", "{}"],
	]);
});

test("DELETE sends its arguments in the query unless a body is declared", async () => {
	const w = world();
	const implementation = { kind: "http", method: "DELETE", url: "https://api.test/items" };
	await call(w, { implementation, args: { id: 1 } });
	await call(w, { implementation: { ...implementation, body: "json" }, args: { id: 1 } });
	expect(w.seen.map((one) => [one.url, one.body])).toEqual([
		["https://api.test/items?id=1", ""],
		["https://api.test/items", '{"id":1}'],
	]);
});

test("trace and idempotency key travel with the request", async () => {
	const w = world();
	await call(w, {
		implementation: { kind: "http", method: "POST", url: "https://api.test/x" },
		effect: "write",
		invocation: { idempotency_key: CALL },
	});
	expect(w.seen[0]?.headers.traceparent).toBe(`00-${TRACE}-${"b".repeat(16)}-01`);
	expect(w.seen[0]?.headers["idempotency-key"]).toBe(CALL);
	await call(w, { implementation: get("https://api.test/x") });
	expect(w.seen[1]?.headers["idempotency-key"]).toBeUndefined();
});

test("a whole-URL argument is judged as it was written", async () => {
	const w = world();
	const fetchTool = get("{+url}");
	for (const url of ["https://api.test/a?b=c", "HTTPS://API.test/x"]) {
		expect((await call(w, { implementation: fetchTool, args: { url } })).kind, url).toBe("success");
	}
	expect(w.seen).toHaveLength(2);
	for (const url of [
		"http://127.0.0.1/",
		"http://10.0.0.1:80/",
		"http://169.254.169.254/latest/meta-data/",
		"http://[::1]/",
		"http://[::ffff:7f00:1]/",
		"http://2130706433/",
		"http://0x7f000001/",
		"http://localhost./",
		"http://user:pw@api.test/",
		"http://127.0.0.1:80\\@api.test/",
		"http:\\\\127.0.0.1/",
		"http://127.0.0.1.nip.io/",
		"https://belay.test/v1/approvals",
		"file:///etc/passwd",
		"/relative",
		"https://api.test/\r\nHost: x",
		"",
	]) {
		const outcome = await call(w, { implementation: fetchTool, args: { url } });
		expect(outcome, url).toMatchObject({ kind: "failed", effect: "none" });
	}
	expect(w.seen).toHaveLength(2);
});

test("an argument cannot change the host, climb the path, end the path early or override what is fixed", async () => {
	const w = world();
	const attacks: [string, JsonObject, string][] = [
		["https://api.test{+path}", { path: "@evil.test/x" }, "security_blocked"],
		["https://api.test{+path}", { path: ".evil.test/x" }, "security_blocked"],
		["https://api.test{+path}", { path: ":8443/x" }, "security_blocked"],
		["https://api.test/users/{id}", { id: ".." }, "security_blocked"],
		["https://api.test/users/{id}/x", { id: "..%2f..%2fadmin" }, "security_blocked"],
		["https://api.test/users/{id}/x", { id: "../../admin" }, "security_blocked"],
		["https://api.test/users/{+id}", { id: "a/../../admin" }, "security_blocked"],
		["https://api.test/users/{+id}", { id: "%2e%2e/admin" }, "security_blocked"],
		["https://api.test/users/{+id}", { id: "%252e%252e/admin" }, "security_blocked"],
		["https://api.test/users/{+id}", { id: "1?v=9" }, "security_blocked"],
		["https://api.test/users/{id}", { id: "" }, "invalid_arguments"],
		["https://api.test/users/{id}", {}, "invalid_arguments"],
		["https://api.test/users/{id}", { id: { a: { b: 1 } } }, "invalid_arguments"],
		["https://api.test/users/{constructor}", {}, "invalid_arguments"],
		["https://api.test/users/{id:1}", { id: "😀" }, "invalid_arguments"],
		["https://api.test/users", { v: "9" }, "security_blocked"],
	];
	for (const [url, args, code] of attacks) {
		const outcome = await call(w, { implementation: get(url, { query: { v: "1" } }), args });
		expect(outcome, `${url} ${JSON.stringify(args)}`).toMatchObject({ kind: "failed", code, effect: "none" });
	}
	expect(w.seen).toEqual([]);
});

test("a host that an argument names openly is judged at each call", async () => {
	const w = world();
	expect(await call(w, { implementation: get("https://{host}/x"), args: { host: "127.0.0.1" } })).toMatchObject({
		code: "security_blocked",
	});
	expect(await call(w, { implementation: get("https://{host}/x"), args: { host: "evil.test/@" } })).toMatchObject({
		code: "security_blocked",
	});
	expect((await call(w, { implementation: get("https://{host}/x"), args: { host: "api.test" } })).kind).toBe("success");
	expect(
		(await call(w, { implementation: get("https://api.test{/parts*}{?q}"), args: { parts: ["a", "@evil.test"] } }))
			.kind,
	).toBe("success");
	expect(w.seen.map((one) => one.url)).toEqual(["https://api.test/x", "https://api.test/a/%40evil.test"]);
});

test("the filling itself refuses a host that only looks literal, whatever registration let through", () => {
	for (const path of ["@evil.test/x", ".evil.test/x"]) {
		const implementation = { kind: "http" as const, method: "GET" as const, url: "https://api.test{+path}" };
		expect(fillRequest(implementation, { path }, { own_hosts: [], exemptions: [] })).toMatchObject({
			ok: false,
			code: "security_blocked",
		});
	}
});

test("inherited names fill nothing", async () => {
	const w = world();
	await call(w, { implementation: get("https://api.test/x{?constructor,toString,__proto__}"), args: {} });
	expect(w.seen[0]?.url).toBe("https://api.test/x");
});

test("ordinary dots, fragments and plain reserved paths pass", async () => {
	const w = world();
	await call(w, { implementation: get("https://api.test/files/{+path}"), args: { path: "a..b/.hidden/v1..2#frag" } });
	await call(w, { implementation: get("https://api.test/search{?q,page}"), args: { q: "a&b=c#d", extra: "e" } });
	expect(w.seen.map((one) => one.url)).toEqual([
		"https://api.test/files/a..b/.hidden/v1..2",
		"https://api.test/search?q=a%26b%3Dc%23d&extra=e",
	]);
});

test("lone surrogates never leave the process", async () => {
	const w = world();
	await call(w, { implementation: get("https://api.test/{id}"), args: { id: "a\ud800", q: "\udc00b" } });
	await call(w, { implementation: { kind: "http", method: "POST", url: "https://api.test/x" }, args: { t: "\ud83d" } });
	expect(w.seen[0]?.url).toBe("https://api.test/a%EF%BF%BD?q=%EF%BF%BDb");
	expect(w.seen[1]?.body).toBe('{"t":"\ufffd"}');
});

test("`__proto__` and `constructor` are plain names in a body", async () => {
	const w = world();
	const args = JSON.parse('{"__proto__":{"admin":true},"constructor":1}') as JsonObject;
	await call(w, { implementation: { kind: "http", method: "POST", url: "https://api.test/x" }, args });
	expect(w.seen[0]?.body).toBe('{"__proto__":{"admin":true},"constructor":1}');
});

test("a private upstream is reached only through the literal development exemption", async () => {
	const w = world();
	expect((await call(w, { implementation: get("http://127.0.0.1:4010/x") })).kind).toBe("success");
	expect(await call(w, { implementation: get("http://127.0.0.1:4011/x") })).toMatchObject({ code: "security_blocked" });
	expect(await call(w, { implementation: get("http://localhost:4010/x") })).toMatchObject({ code: "security_blocked" });
	expect(w.seen).toHaveLength(1);
});

test("a stored definition that breaks today's rules is not sent", async () => {
	const w = world();
	for (const implementation of [
		get("https://belay.test/v1/runs"),
		get("https://api.test/x", { headers: { Host: "evil.test" } }),
		get("https://api.test/x", { headers: { "X-A": "a\r\nX-B: b" } }),
		get("https://api.test/x", { headers: { "X-A": "a\u0000" } }),
		get("http://api.test/x", { auth: { type: "bearer", secret: "key" } }),
	]) {
		expect(await call(w, { implementation, secrets: { key: "s3cr3t-value" } })).toMatchObject({
			code: "security_blocked",
			effect: "none",
		});
	}
	expect(w.seen).toEqual([]);
});
