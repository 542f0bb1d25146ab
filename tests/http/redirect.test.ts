import { expect, test } from "vitest";
import { call, ok, redirect, World } from "./world.ts";

const SECRET = "s3cr3t-value-123";
const read = (url: string) => ({ kind: "http", method: "GET", url });
const withKey = (url: string) => ({
	...read(url),
	auth: { type: "api_key", in: "header", name: "X-Api-Key", secret: "key" },
	headers: { "X-Client": "c" },
});
const post = (url: string) => ({ kind: "http", method: "POST", url });

test("a public redirect is followed and counted", async () => {
	const w = new World({ "api.test": () => redirect(302, "https://cdn.test/y"), "cdn.test": ok });
	const outcome = await call(w, { implementation: read("https://api.test/x") });
	expect(outcome).toMatchObject({ kind: "success", facts: ["HTTP 200 from cdn.test", "1 redirect followed"] });
});

test("a redirect to any inside address is refused at its hop, in the same words", async () => {
	const inside = [
		"http://127.0.0.1/",
		"http://10.0.0.1/",
		"http://169.254.169.254/latest/meta-data/",
		"http://[::1]/",
		"http://[::ffff:7f00:1]/",
		"http://2130706433/",
		"http://0x7f000001/",
		"http://localhost./",
		"http://user@api.test/",
		"http://127.0.0.1:4010/",
		"https://belay.test/v1/approvals",
		"//127.0.0.1/",
		"/\\127.0.0.1/",
		"file:///etc/passwd",
		"http://",
	];
	const messages = new Set<string>();
	for (const target of inside) {
		const w = new World({ "api.test": () => redirect(302, target), "127.0.0.1:4010": ok, "belay.test": ok });
		const outcome = await call(w, { implementation: read("https://api.test/x") });
		expect(outcome, target).toMatchObject({
			kind: "failed",
			code: "redirect_refused",
			effect: "none",
			retryable: false,
		});
		expect(w.seen, target).toHaveLength(1);
		if (outcome.kind === "failed") messages.add(outcome.message);
	}
	expect([...messages]).toEqual(["the upstream redirected to where tools may not follow"]);
});

test("the development exemption is never reached by redirect, not even from itself", async () => {
	const w = new World({
		"127.0.0.1:4010": (request) => (request.url.endsWith("/a") ? redirect(302, "/b") : Response.json({})),
	});
	expect(await call(w, { implementation: read("http://127.0.0.1:4010/a") })).toMatchObject({
		code: "redirect_refused",
	});
	expect(w.seen).toHaveLength(1);
});

test("every hop is judged, not only the last or the first", async () => {
	const w = new World({
		"api.test": () => redirect(302, "https://two.test/"),
		"two.test": () => redirect(307, "http://192.168.0.1/"),
	});
	expect(await call(w, { implementation: read("https://api.test/x") })).toMatchObject({ code: "redirect_refused" });
	expect(w.seen).toHaveLength(2);
});

test("hops are bounded", async () => {
	const w = new World({
		"api.test": (request) => redirect(302, `/x?n=${Number(new URL(request.url).searchParams.get("n")) + 1}`),
	});
	expect(await call(w, { implementation: read("https://api.test/x") })).toMatchObject({ code: "redirect_refused" });
	expect(w.seen).toHaveLength(6);
});

test("credentials and custom headers stay with their origin and do not come back", async () => {
	const w = new World({
		"api.test": (request) => (request.url.endsWith("/end") ? Response.json({}) : redirect(302, "https://other.test/")),
		"other.test": () => redirect(302, "https://api.test/end"),
	});
	const outcome = await call(w, {
		implementation: withKey("https://api.test/x"),
		secrets: { key: SECRET },
		invocation: { idempotency_key: "k1" },
	});
	expect(outcome.kind).toBe("success");
	expect(
		w.seen.map((one) => [one.headers["x-api-key"], one.headers["x-client"], one.headers["idempotency-key"]]),
	).toEqual([
		[SECRET, "c", "k1"],
		[undefined, undefined, undefined],
		[undefined, undefined, undefined],
	]);
	expect(w.seen[1]?.headers.traceparent).toBeDefined();
});

test("another port, another scheme and a subdomain are other origins", async () => {
	for (const target of ["https://api.test:8443/", "http://api.test/", "https://sub.api.test/"]) {
		const w = new World({
			"api.test": (request) => (request.url === "https://api.test/x" ? redirect(302, target) : Response.json({})),
			"api.test:8443": ok,
			"sub.api.test": ok,
		});
		await call(w, { implementation: withKey("https://api.test/x"), secrets: { key: SECRET } });
		expect(w.seen[1]?.headers["x-api-key"], target).toBeUndefined();
	}
});

test("a redirect within the origin keeps the credential", async () => {
	const w = new World({
		"api.test": (request) => (request.url.endsWith("/x") ? redirect(308, "/y") : Response.json({})),
	});
	await call(w, { implementation: withKey("https://api.test/x"), secrets: { key: SECRET } });
	expect(w.seen[1]?.headers["x-api-key"]).toBe(SECRET);
});

test("a Location that carries the key to another host is refused", async () => {
	const w = new World({
		"api.test": (request) => redirect(302, `https://evil.test/${new URL(request.url).search}`),
		"evil.test": ok,
	});
	const implementation = {
		...read("https://api.test/x"),
		auth: { type: "api_key", in: "query", name: "key", secret: "key" },
	};
	expect(await call(w, { implementation, secrets: { key: SECRET } })).toMatchObject({ code: "redirect_refused" });
	expect(w.seen).toHaveLength(1);
});

test("301, 302 and 303 turn POST into GET without body; 307 and 308 keep it within the origin", async () => {
	for (const status of [301, 302, 303]) {
		const w = new World({
			"api.test": (request) => (request.url.endsWith("/x") ? redirect(status, "/y") : Response.json({})),
		});
		await call(w, { implementation: post("https://api.test/x"), args: { a: 1 }, effect: "write" });
		expect([w.seen[1]?.method, w.seen[1]?.body, w.seen[1]?.headers["content-type"]]).toEqual(["GET", "", undefined]);
	}
	for (const status of [307, 308]) {
		const w = new World({
			"api.test": (request) => (request.url.endsWith("/x") ? redirect(status, "/y") : Response.json({})),
		});
		await call(w, { implementation: post("https://api.test/x"), args: { a: 1 }, effect: "write" });
		expect([w.seen[1]?.method, w.seen[1]?.body]).toEqual(["POST", '{"a":1}']);
	}
});

test("a write is not carried to another origin: it was approved towards this one", async () => {
	const w = new World({ "api.test": () => redirect(307, "https://other.test/"), "other.test": ok });
	expect(await call(w, { implementation: post("https://api.test/x"), effect: "write" })).toMatchObject({
		code: "redirect_refused",
		effect: "none",
	});
	expect(w.seen).toHaveLength(1);
});

test("what follows a write's 303 cannot say that nothing happened", async () => {
	const notFound = new World({
		"api.test": (request) => (request.method === "POST" ? redirect(303, "/gone") : new Response("no", { status: 404 })),
	});
	expect(await call(notFound, { implementation: post("https://api.test/x"), effect: "write" })).toMatchObject({
		code: "http_error",
		http_status: 404,
		effect: "possible",
	});
	const inside = new World({ "api.test": () => redirect(303, "http://10.0.0.1/") });
	expect(await call(inside, { implementation: post("https://api.test/x"), effect: "write" })).toMatchObject({
		code: "redirect_refused",
		effect: "possible",
	});
});
