import { expect, test } from "vitest";
import { HTTP_BODY_MAX_BYTES } from "#core/limits.ts";
import { type Answer, call, NOW, ok, World } from "./world.ts";

const read = { kind: "http", method: "GET", url: "https://api.test/x" };
const write = { kind: "http", method: "POST", url: "https://api.test/x" };
const at = (answer: Answer) => new World({ "api.test": answer });
const text =
	(body: BodyInit | null, type: string, status = 200) =>
	() =>
		new Response(body, { status, headers: type === "" ? {} : { "content-type": type } });

test("JSON is parsed, few headers are shown", async () => {
	const outcome = await call(
		at(() => Response.json({ a: 1 }, { headers: { etag: '"1"', "set-cookie": "sid=1", server: "x" } })),
		{ implementation: read },
	);
	expect(outcome).toEqual({
		kind: "success",
		result: { status: 200, headers: { "content-type": "application/json", etag: '"1"' }, body: { a: 1 } },
		facts: ["HTTP 200 from api.test"],
		notes: [],
		http_status: 200,
	});
});

test("big integers keep their digits and are named", async () => {
	const outcome = await call(at(text('{"id":2512292042121000001,"l":[9007199254740993]}', "application/json")), {
		implementation: read,
	});
	expect(outcome).toMatchObject({
		result: { body: { id: "2512292042121000001", l: ["9007199254740993"] } },
		notes: ["integers too large for a JSON number are given as strings: /id, /l/0"],
	});
});

test("text, nothing, broken JSON, deep JSON, bytes and odd encodings each have their form", async () => {
	const body = async (answer: Answer) => {
		const outcome = await call(at(answer), { implementation: read });
		return outcome.kind === "success" ? [(outcome.result as { body: unknown }).body, outcome.notes.length] : outcome;
	};
	expect(await body(text("héllo", "text/plain; charset=utf-8"))).toEqual(["héllo", 0]);
	expect(await body(text(null, "", 204))).toEqual([null, 0]);
	expect(await body(text("{oops", "application/json"))).toEqual(["{oops", 1]);
	expect(await body(text(`${"[".repeat(100)}${"]".repeat(100)}`, "application/json"))).toEqual([
		`${"[".repeat(100)}${"]".repeat(100)}`,
		1,
	]);
	expect(await body(text("[".repeat(200_000), "application/json"))).toEqual(["[".repeat(200_000), 1]);
	expect(await body(text(new Uint8Array([0xff, 0xfe, 0x41]), "text/plain"))).toEqual(["\ufffd\ufffdA", 0]);
	expect(await body(text(new Uint8Array([0xe9]), "text/plain; charset=iso-8859-1"))).toEqual(["é", 0]);
	expect(await body(text("x", "text/plain; charset=nonsense"))).toEqual(["x", 0]);
	expect(await body(text('"\\ud800"', "application/json"))).toEqual(["\ufffd", 0]);
	expect(await body(text(new Uint8Array([1, 2, 3]), "image/png"))).toEqual([
		{ encoding: "base64", content_type: "image/png", bytes: 3, data: "AQID" },
		0,
	]);
	expect(await body(text('{"__proto__":{"x":1}}', "application/problem+json"))).toEqual([
		JSON.parse('{"__proto__":{"x":1}}'),
		0,
	]);
});

test("a body over the cap is refused as it streams, and a write may have happened", async () => {
	let sent = 0;
	const endless = () =>
		new Response(
			new ReadableStream({
				pull(controller) {
					sent += 65_536;
					controller.enqueue(new Uint8Array(65_536));
				},
			}),
		);
	expect(await call(at(endless), { implementation: read })).toMatchObject({
		code: "response_too_large",
		effect: "none",
		retryable: false,
	});
	expect(sent).toBeLessThan(HTTP_BODY_MAX_BYTES + 4 * 65_536);
	expect(await call(at(endless), { implementation: write, effect: "write" })).toMatchObject({
		code: "response_too_large",
		effect: "possible",
	});
});

test("statuses: what may have acted, what may be tried again, when", async () => {
	const table: [number, "read" | "write", string, string, boolean][] = [
		[400, "write", "http_error", "none", false],
		[404, "read", "http_error", "none", false],
		[409, "write", "http_error", "none", false],
		[429, "write", "rate_limited", "none", true],
		[500, "write", "http_error", "possible", true],
		[502, "read", "http_error", "none", true],
		[503, "write", "http_error", "possible", true],
	];
	for (const [status, effect, code, possible, retryable] of table) {
		const implementation = effect === "read" ? read : write;
		const outcome = await call(at(text("why not", "text/plain", status)), { implementation, effect });
		expect(outcome, String(status)).toEqual({
			kind: "failed",
			code,
			message: `the upstream answered ${status}`,
			detail: { excerpt: "why not" },
			effect: possible,
			retryable,
			http_status: status,
		});
	}
});

test("no declaration makes DELETE harmless, and a declared read may POST", async () => {
	const failing = text("", "text/plain", 500);
	expect(await call(at(failing), { implementation: { ...read, method: "DELETE" }, effect: "read" })).toMatchObject({
		effect: "possible",
	});
	expect(await call(at(failing), { implementation: write, effect: "read" })).toMatchObject({ effect: "none" });
});

test("Retry-After: seconds, a date, nonsense, too long", async () => {
	const wait = async (value: string) => {
		const outcome = await call(
			at(() => new Response("", { status: 429, headers: { "retry-after": value } })),
			{ implementation: read },
		);
		return outcome.kind === "failed" ? outcome.retry_after_ms : outcome;
	};
	expect(await wait("7")).toBe(7_000);
	expect(await wait(new Date(NOW + 90_000).toUTCString())).toBe(90_000);
	expect(await wait(new Date(NOW - 90_000).toUTCString())).toBe(0);
	expect(await wait("9999999999")).toBe(86_400_000);
	for (const odd of ["-5", "1.5", "soon", "1e3", "Monday"]) expect(await wait(odd), odd).toBeUndefined();
});

test("a connection that is lost: a write is unknown, a read is not", async () => {
	const gone = new World({});
	expect(await call(gone, { implementation: read })).toMatchObject({
		code: "connection_lost",
		effect: "none",
		retryable: true,
	});
	expect(await call(gone, { implementation: write, effect: "write" })).toMatchObject({
		code: "connection_lost",
		effect: "possible",
	});
});

test("a body that breaks off is a lost connection", async () => {
	const broken = () =>
		new Response(new ReadableStream({ start: (controller) => controller.error(new Error("reset by 10.0.0.1")) }));
	const outcome = await call(at(broken), { implementation: write, effect: "external" });
	expect(outcome).toMatchObject({ code: "connection_lost", effect: "possible" });
	expect(JSON.stringify(outcome)).not.toContain("10.0.0.1");
});

test("time-outs: headers and body are told apart, even when fetch ignores its signal", async () => {
	const never = () => new Promise<Response>(() => undefined);
	const stall = () =>
		new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array([65])) }));
	const soon = { invocation: { timeout_ms: 30 } };
	expect(await call(at(never), { implementation: read, ...soon })).toEqual({
		kind: "timeout",
		phase: "headers",
		effect: "none",
	});
	expect(await call(at(never), { implementation: write, effect: "write", ...soon })).toEqual({
		kind: "timeout",
		phase: "headers",
		effect: "possible",
	});
	expect(await call(at(stall), { implementation: write, effect: "write", ...soon })).toEqual({
		kind: "timeout",
		phase: "body",
		effect: "possible",
	});
});

test("cancelled before, during headers, during the body", async () => {
	const before = at(ok);
	expect(await call(before, { implementation: write, effect: "write", signal: AbortSignal.abort() })).toMatchObject({
		code: "interrupted",
		effect: "none",
	});
	expect(before.seen).toEqual([]);
	for (const answer of [() => new Promise<Response>(() => undefined), () => new Response(new ReadableStream())]) {
		const controller = new AbortController();
		const pending = call(at(answer), { implementation: write, effect: "write", signal: controller.signal });
		setTimeout(() => controller.abort(), 20);
		expect(await pending).toMatchObject({ code: "interrupted", effect: "possible" });
	}
});

test("a deadline of the caller's is a time-out, not a cancellation", async () => {
	const outcome = await call(
		at(() => new Promise<Response>(() => undefined)),
		{ implementation: read, signal: AbortSignal.timeout(20) },
	);
	expect(outcome).toEqual({ kind: "timeout", phase: "headers", effect: "none" });
});

test("an error page whose body stalls still gives its status before the limit is over", async () => {
	const broken = () =>
		new Response(new ReadableStream({ start: (controller) => controller.error(new Error("x")) }), { status: 404 });
	expect(await call(at(broken), { implementation: write, effect: "write" })).toMatchObject({
		code: "http_error",
		http_status: 404,
		effect: "none",
	});
});
