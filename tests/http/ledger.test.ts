/** The invoker with workerd's own `fetch`: what the runtime does with redirects, streams, signals and lost connections. */
import { expect, test } from "vitest";
import { readMasters } from "#adapters/secrets/derive.ts";
import { SecretSealer } from "#adapters/secrets/secret-sealer.ts";
import type { JsonObject } from "#core/json.ts";
import { invocationOf, invokerOf, World } from "./world.ts";

const SECRET = "s3cr3t-in-workerd";
const key = (name: string) => `http-${name}`;

async function invoke(
	implementation: JsonObject,
	more: Partial<Parameters<typeof invocationOf>[0]> = {},
	signal = new AbortController().signal,
) {
	const { invoker } = invokerOf(new World({}), { key: SECRET }, { fetch: (request) => fetch(request) });
	return invoker.invoke(invocationOf({ implementation, ...more }), signal);
}
async function arrived(
	name: string,
): Promise<{ method: string; url: string; headers: Record<string, string>; body: string }[]> {
	return (await fetch(`https://ledger.test/_log?key=${key(name)}`)).json();
}
const get = (name: string, path: string, more: JsonObject = {}) => ({
	kind: "http",
	method: "GET",
	url: `https://ledger.test/${key(name)}/${path}`,
	...more,
});

test("a write arrives once, with key and trace", async () => {
	const implementation = { ...get("write", "ok"), method: "POST" };
	const outcome = await invoke(implementation, {
		args: { a: "ü" },
		effect: "write",
		invocation: { idempotency_key: "k-1" },
	});
	expect(outcome).toMatchObject({
		kind: "success",
		result: { status: 200, body: { ok: true, n: 1 } },
		facts: ["HTTP 200 from ledger.test"],
	});
	const [seen, ...others] = await arrived("write");
	expect(others).toEqual([]);
	expect(seen).toMatchObject({ method: "POST", body: '{"a":"ü"}' });
	expect(seen?.headers).toMatchObject({ "idempotency-key": "k-1", "content-type": "application/json" });
	expect(seen?.headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
});

test("redirects are not followed by the runtime: an inside target is refused, credentials stay behind", async () => {
	const inside = await invoke(get("inside", "redirect?to=http://169.254.169.254/latest/"));
	expect(inside).toMatchObject({ kind: "failed", code: "redirect_refused" });
	const auth = { type: "bearer", secret: "key" };
	const other = `https://other.ledger.test/${key("other")}/echo`;
	const outcome = await invoke(get("cross", `redirect?to=${encodeURIComponent(other)}`, { auth }));
	expect(outcome).toMatchObject({ kind: "success", facts: ["HTTP 200 from other.ledger.test", "1 redirect followed"] });
	expect((await arrived("cross"))[0]?.headers.authorization).toBe(`Bearer ${SECRET}`);
	expect((await arrived("other"))[0]?.headers.authorization).toBeUndefined();
});

test("an echoed credential is masked", async () => {
	const outcome = await invoke(get("echo", "echo", { auth: { type: "bearer", secret: "key" } }));
	expect((await arrived("echo"))[0]?.headers.authorization).toContain(SECRET);
	expect(outcome).toMatchObject({ result: { body: { headers: { authorization: "Bearer [secret]" } } } });
});

test("a slow upstream is a time-out, a write's effect possible", async () => {
	const implementation = { ...get("slow", "slow?ms=1500"), method: "POST" };
	const outcome = await invoke(implementation, { effect: "write", invocation: { timeout_ms: 100 } });
	expect(outcome).toEqual({ kind: "timeout", phase: "headers", effect: "possible" });
	expect(await arrived("slow")).toHaveLength(1); // O07: it did arrive, and the invoker itself repeats nothing
});

test("a cancelled call ends at once", async () => {
	const controller = new AbortController();
	const pending = invoke(get("cancel", "slow?ms=1500"), {}, controller.signal);
	setTimeout(() => controller.abort(), 50);
	expect(await pending).toMatchObject({ code: "interrupted", effect: "none" });
});

test("big integers keep their digits: the reviver's source is there", async () => {
	expect(await invoke(get("big", "bigint"))).toMatchObject({
		result: { body: { id: "2512292042121000001" } },
		notes: [expect.stringContaining("/id")],
	});
});

test("statuses", async () => {
	const post = (status: number) =>
		invoke({ ...get("status", `status/${status}`), method: "POST" }, { effect: "write" });
	expect(await post(404)).toMatchObject({
		code: "http_error",
		effect: "none",
		retryable: false,
		detail: { excerpt: '{"error":"as asked"}' },
	});
	expect(await post(503)).toMatchObject({ code: "http_error", effect: "possible", retryable: true });
});

test("sealing and deriving work on this runtime", async () => {
	const sealer = new SecretSealer(readMasters(Buffer.alloc(32, 6).toString("base64")));
	const place = { tenant_id: "ten_a", name: "n", version: 1 };
	expect(await sealer.open(place, await sealer.seal(place, SECRET))).toBe(SECRET);
});
