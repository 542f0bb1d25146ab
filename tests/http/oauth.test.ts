import { expect, test } from "vitest";
import { type Answer, call, invocationOf, invokerOf, NOW, ok, redirect, World } from "./world.ts";

const SECRET = "cl1ent:s3cret/+x";
const implementation = {
	kind: "http",
	method: "GET",
	url: "https://api.test/x",
	auth: {
		type: "oauth2_client",
		token_url: "https://auth.test/token",
		client_id: "the client",
		scope: "read all",
		secret: "key",
	},
};
const tokens = (expires_in?: number): Answer => {
	let n = 0;
	return () =>
		Response.json({
			access_token: `t0ken-number-${++n}`,
			token_type: "Bearer",
			...(expires_in === undefined ? {} : { expires_in }),
		});
};
const setup = { implementation, secrets: { key: SECRET } };
const signal = () => new AbortController().signal;

test("client credentials: basic authentication, form body, bearer to the API", async () => {
	const w = new World({ "auth.test": tokens(3600), "api.test": ok });
	expect((await call(w, setup)).kind).toBe("success");
	expect(w.seen[0]).toMatchObject({
		method: "POST",
		url: "https://auth.test/token",
		body: "grant_type=client_credentials&scope=read+all",
	});
	const basic = w.seen[0]?.headers.authorization?.slice(6) ?? "";
	expect(Buffer.from(basic, "base64").toString()).toBe("the+client:cl1ent%3As3cret%2F%2Bx");
	expect(w.seen[1]?.headers.authorization).toBe("Bearer t0ken-number-1");
});

test("a token is kept until shortly before its end, per tenant", async () => {
	const w = new World({ "auth.test": tokens(3600), "api.test": ok });
	let now = NOW;
	const { invoker, uses } = invokerOf(w, setup.secrets, { clock: () => now });
	const once = (tenant_id = "ten_a") =>
		invoker.invoke(invocationOf({ implementation, invocation: { tenant_id } }), signal());
	const asked = () => w.seen.filter((one) => one.url.startsWith("https://auth.test")).length;
	await once();
	await once();
	expect(asked()).toBe(1);
	await once("ten_b");
	expect(asked()).toBe(2);
	now += 3_571_000;
	await once();
	expect(asked()).toBe(3);
	expect(new Set(uses.map((one) => one.host))).toEqual(new Set(["api.test", "auth.test"]));
});

test("a token without a stated end is kept a minute, one that ends at once is not kept", async () => {
	for (const [expires, after, count] of [
		[undefined, 59_000, 1],
		[undefined, 61_000, 2],
		[20, 0, 2],
	] as const) {
		const w = new World({ "auth.test": tokens(expires), "api.test": ok });
		let now = NOW;
		const { invoker } = invokerOf(w, setup.secrets, { clock: () => now });
		await invoker.invoke(invocationOf({ implementation }), signal());
		now += after;
		await invoker.invoke(invocationOf({ implementation }), signal());
		expect(w.seen.filter((one) => one.url.startsWith("https://auth.test"))).toHaveLength(count);
	}
});

test("a token that the API rejects is not tried again", async () => {
	const w = new World({ "auth.test": tokens(3600), "api.test": () => new Response("", { status: 401 }) });
	const { invoker } = invokerOf(w, setup.secrets);
	await invoker.invoke(invocationOf({ implementation }), signal());
	await invoker.invoke(invocationOf({ implementation }), signal());
	expect(w.seen.map((one) => one.headers.authorization).filter((one) => one?.startsWith("Bearer"))).toEqual([
		"Bearer t0ken-number-1",
		"Bearer t0ken-number-2",
	]);
});

test("neither the client secret nor the token comes back", async () => {
	const w = new World({
		"auth.test": tokens(3600),
		"api.test": (_, seen) => Response.json({ ...seen.headers, SECRET }),
	});
	const text = JSON.stringify(await call(w, setup));
	expect(text).not.toContain("t0ken-number");
	expect(text).not.toContain("s3cret/+x");
});

test("a token endpoint that refuses, redirects, lies or is away leaves the write without effect", async () => {
	const cases: [Answer | undefined, object][] = [
		[
			() => new Response(SECRET, { status: 401 }),
			{ code: "http_error", message: "the token endpoint answered 401", retryable: false },
		],
		[() => new Response("", { status: 503 }), { code: "http_error", retryable: true }],
		[
			() => new Response("", { status: 429, headers: { "retry-after": "3" } }),
			{ code: "rate_limited", retry_after_ms: 3_000 },
		],
		[() => redirect(307, "https://evil.test/"), { code: "redirect_refused" }],
		[() => redirect(302, "http://10.0.0.1/"), { code: "redirect_refused" }],
		[() => Response.json({ access_token: "a\r\nX-Evil: 1" }), { code: "invalid_response" }],
		[() => Response.json({ token: "x" }), { code: "invalid_response" }],
		[() => new Response("[".repeat(100_000)), { code: "invalid_response" }],
		[undefined, { code: "connection_lost" }],
	];
	for (const [answer, expected] of cases) {
		const w = new World({ ...(answer === undefined ? {} : { "auth.test": answer }), "api.test": ok, "evil.test": ok });
		const outcome = await call(w, { ...setup, implementation: { ...implementation, method: "POST" }, effect: "write" });
		expect(outcome).toMatchObject({ kind: "failed", effect: "none", ...expected });
		expect(JSON.stringify(outcome)).not.toContain("s3cret");
		expect(w.seen).toHaveLength(1);
	}
});

test("a token endpoint that stalls is a time-out without effect", async () => {
	const w = new World({ "auth.test": () => new Promise<Response>(() => undefined) });
	const outcome = await call(w, {
		...setup,
		implementation: { ...implementation, method: "POST" },
		effect: "write",
		invocation: { timeout_ms: 30 },
	});
	expect(outcome).toEqual({ kind: "timeout", phase: "headers", effect: "none" });
});
