import { expect, test } from "vitest";
import { type Answer, call, World } from "./world.ts";

const SECRET = 'k3y/with+odd="chars"&more';
const bearer = { kind: "http", method: "GET", url: "https://api.test/x", auth: { type: "bearer", secret: "key" } };
const variants = [
	SECRET,
	encodeURIComponent(SECRET),
	Buffer.from(SECRET).toString("base64"),
	JSON.stringify(SECRET).slice(1, -1),
];

async function outcomeText(
	answer: Answer,
	implementation = bearer as Parameters<typeof call>[1]["implementation"],
	secret = SECRET,
): Promise<string> {
	const w = new World({ "api.test": answer });
	const outcome = await call(w, { implementation, secrets: { key: secret } });
	expect(JSON.stringify(w.seen)).not.toBe("[]");
	return JSON.stringify(outcome);
}

function expectClean(text: string): void {
	for (const one of variants) expect(text).not.toContain(JSON.stringify(one).slice(1, -1));
	expect(text).toContain("[secret]");
}

test("the secret goes out, and comes back from no echo of the header", async () => {
	const echo: Answer = (_, seen) =>
		Response.json({ headers: seen.headers, [`name ${SECRET}`]: 1, nested: [{ deep: SECRET }] });
	const w = new World({ "api.test": echo });
	const outcome = await call(w, { implementation: bearer, secrets: { key: SECRET } });
	expect(w.seen[0]?.headers.authorization).toBe(`Bearer ${SECRET}`);
	expectClean(JSON.stringify(outcome));
});

test("nor from an error page, a text, a header or another spelling", async () => {
	expectClean(
		await outcomeText((_, seen) => new Response(`bad token: ${seen.headers.authorization}`, { status: 401 })),
	);
	expectClean(
		await outcomeText(
			() =>
				new Response(`<p>${SECRET.replaceAll("&", "&amp;").replaceAll('"', "&quot;")}</p>`, {
					headers: { "content-type": "text/html" },
				}),
		),
	);
	expectClean(
		await outcomeText(() =>
			Response.json({}, { headers: { "x-request-id": encodeURIComponent(SECRET), etag: SECRET } }),
		),
	);
	for (const one of variants)
		expectClean(await outcomeText(() => new Response(`x ${one} y`, { headers: { "content-type": "text/plain" } })));
});

test("no half of a secret stays at the end of a cut excerpt", async () => {
	for (const before of [480, 490, 499]) {
		const text = await outcomeText(() => new Response("x".repeat(before) + SECRET, { status: 500 }));
		expect(text).not.toContain(SECRET.slice(0, 6));
	}
	const long = await outcomeText(() => new Response(SECRET.repeat(2_000), { status: 500 }));
	expect(long.replaceAll("[secret]", "")).not.toContain("k3y");
});

test("basic: neither pair, password nor header comes back; the pair is encoded once", async () => {
	const implementation = { ...bearer, auth: { type: "basic", secret: "key" } };
	const w = new World({
		"api.test": (_, seen) =>
			Response.json({ got: seen.headers.authorization, pair: "user:p4ssw0rd-x", password: "p4ssw0rd-x" }),
	});
	const outcome = await call(w, { implementation, secrets: { key: "user:p4ssw0rd-x" } });
	expect(w.seen[0]?.headers.authorization).toBe("Basic dXNlcjpwNHNzdzByZC14");
	expect(outcome).toMatchObject({
		result: { body: { got: "Basic [secret]", pair: "[secret]", password: "[secret]" } },
	});
});

test("a key in the query shows in no fact, message or result", async () => {
	const implementation = { ...bearer, auth: { type: "api_key", in: "query", name: "key", secret: "key" } };
	const w = new World({ "api.test": (request) => new Response(`cannot GET ${request.url}`, { status: 404 }) });
	const outcome = await call(w, { implementation, secrets: { key: "qs-s3cr3t value" }, args: { a: "b" } });
	expect(w.seen[0]?.url).toBe("https://api.test/x?a=b&key=qs-s3cr3t+value");
	expect(JSON.stringify(outcome)).not.toContain("qs-s3cr3t");
	const clash = await call(w, { implementation, secrets: { key: "v" }, args: { key: "mine" } });
	expect(clash).toMatchObject({ code: "security_blocked" });
});

test("a lost connection says nothing of the request", async () => {
	const w = new World({});
	const outcome = await call(w, { implementation: bearer, secrets: { key: SECRET } });
	expect(outcome).toEqual({
		kind: "failed",
		code: "connection_lost",
		message: "the connection to the upstream could not be made or was lost",
		effect: "none",
		retryable: true,
	});
});

test("bytes that hold a secret are not shown", async () => {
	const answer: Answer = () =>
		new Response(new TextEncoder().encode(`\u0000${SECRET}`), { headers: { "content-type": "image/png" } });
	expect(await outcomeText(answer)).toContain("invalid_response");
});

test("a number that is the secret is masked too", async () => {
	expect(await outcomeText(() => Response.json({ echo: 90071992 }), bearer, "90071992")).toContain('"echo":"[secret]"');
});

test("an unknown or forbidden secret, or one with a line break, sends nothing", async () => {
	for (const secrets of [{}, { key: "a\r\nX-Evil: 1" }, { key: "" }, { key: "tab\tbed" }] as Record<string, string>[]) {
		const w = new World({});
		const outcome = await call(w, { implementation: bearer, secrets });
		expect(outcome).toMatchObject({ code: "not_configured", effect: "none" });
		expect(JSON.stringify(outcome)).not.toContain("Evil");
		expect(w.seen).toEqual([]);
	}
});
