/** S01: a public name whose owner points it inside, where a resolver over HTTPS is configured; and the hosts that a tool lists. */
import { expect, test } from "vitest";
import { Deadline } from "#adapters/http/deadline.ts";
import { type Place, resolverOf } from "#adapters/http/resolver.ts";
import type { JsonObject } from "#core/json.ts";
import { type Answer, invocationOf, invokerOf, ok, redirect, type Setup, World } from "./world.ts";

const ENDPOINT = "https://dns.test/dns-query";
type Zone = Record<string, { A?: string[]; AAAA?: string[] }>;

/** A resolver that knows this zone; every other name does not exist. */
const dns = (zone: Zone): Answer => {
	return (request) => {
		const url = new URL(request.url);
		const name = url.searchParams.get("name") ?? "";
		const type = url.searchParams.get("type") === "AAAA" ? "AAAA" : "A";
		const host = Object.hasOwn(zone, name) ? zone[name] : undefined;
		if (host === undefined) return Response.json({ Status: 3 });
		const records = (host[type] ?? []).map((data) => ({ name, type: type === "A" ? 1 : 28, TTL: 0, data }));
		return Response.json({ Status: 0, TC: false, Answer: [{ name, type: 5, data: "cdn.example." }, ...records] });
	};
};
const PUBLIC = { A: ["93.184.216.34"], AAAA: ["2606:2800:220:1::1"] };

async function fetched(world: World, setup: Setup) {
	const { invoker } = invokerOf(world, setup.secrets, { resolve: resolverOf(ENDPOINT, world.fetch) });
	return await invoker.invoke(invocationOf(setup), new AbortController().signal);
}
const read = (url: string, more: JsonObject = {}) => ({ kind: "http", method: "GET", url, ...more });
const tools = (world: World) => world.seen.map((one) => one.url).filter((url) => !url.startsWith(ENDPOINT));
const questions = (world: World) => world.seen.length - tools(world).length;

test("a name that leads to public addresses only is reached; both families are asked for", async () => {
	const world = new World({ "dns.test": dns({ "api.test": PUBLIC }), "api.test": ok });
	expect((await fetched(world, { implementation: read("https://api.test/x") })).kind).toBe("success");
	expect(world.seen.slice(0, 2).map((one) => [one.url, one.headers.accept])).toEqual([
		[`${ENDPOINT}?name=api.test&type=A`, "application/dns-json"],
		[`${ENDPOINT}?name=api.test&type=AAAA`, "application/dns-json"],
	]);
});

test.each<[string, { A?: string[]; AAAA?: string[] }]>([
	["loopback", { A: ["127.0.0.1"] }],
	["metadata", { A: ["169.254.169.254"] }],
	["one private address among public ones", { A: ["93.184.216.34", "10.0.0.7"] }],
	["private in the other family", { A: ["93.184.216.34"], AAAA: ["fd00::1"] }],
	["mapped", { AAAA: ["::ffff:127.0.0.1"] }],
	["NAT64", { AAAA: ["64:ff9b::7f00:1"] }],
	["upper case", { AAAA: ["FE80::1"] }],
	["unspecified", { A: ["0.0.0.0"] }],
	["an odd spelling", { A: ["0x7f.1"] }],
	["no address at all", { A: ["api.test"] }],
])("a name that leads inside (%s) is blocked before anything is sent", async (_, records) => {
	const world = new World({ "dns.test": dns({ "api.test": records }), "api.test": ok });
	const outcome = await fetched(world, { implementation: read("https://api.test/x"), effect: "write" });
	expect(outcome).toMatchObject({ kind: "failed", code: "security_blocked", effect: "none", retryable: false });
	expect(tools(world)).toEqual([]);
	expect(JSON.stringify(outcome)).not.toMatch(/127|169|10\.0|fd00/);
});

test("every hop is asked about: a redirect to a name that leads inside is refused there", async () => {
	const zone = { "api.test": PUBLIC, "rebind.test": { A: ["10.1.2.3"] } };
	const world = new World({
		"dns.test": dns(zone),
		"api.test": () => redirect(302, "https://rebind.test/"),
		"rebind.test": ok,
	});
	const outcome = await fetched(world, { implementation: read("https://api.test/x") });
	expect(outcome).toMatchObject({ code: "redirect_refused" });
	expect(tools(world)).toEqual(["https://api.test/x"]);
});

test("a name that leads elsewhere from one hop to the next is asked again, not remembered", async () => {
	let n = 0;
	const turning: Answer = (request, seen) =>
		dns({ "api.test": n++ < 2 ? PUBLIC : { A: ["127.0.0.1"] } })(request, seen);
	const world = new World({ "dns.test": turning, "api.test": () => redirect(302, "/next") });
	expect(await fetched(world, { implementation: read("https://api.test/x") })).toMatchObject({
		code: "redirect_refused",
	});
	expect(tools(world)).toEqual(["https://api.test/x"]);
});

test("credentials and token endpoints are asked about as well: no secret leaves for a name that leads inside", async () => {
	const auth = { type: "oauth2_client", token_url: "https://auth.test/token", client_id: "c", secret: "key" };
	const world = new World({
		"dns.test": dns({ "api.test": PUBLIC, "auth.test": { A: ["192.168.0.1"] } }),
		"auth.test": ok,
		"api.test": ok,
	});
	const implementation = read("https://api.test/x", { auth });
	const outcome = await fetched(world, { implementation, secrets: { key: "s3cr3t-value" } });
	expect(outcome).toMatchObject({ kind: "failed", code: "security_blocked" });
	expect(tools(world)).toEqual([]);
	expect(JSON.stringify(world.seen)).not.toContain("s3cr3t");
});

test("address literals and development upstreams ask nobody", async () => {
	const world = new World({ "93.184.216.34": ok, "[2606:2800:220:1::1]": ok, "127.0.0.1:4010": ok });
	for (const url of ["https://93.184.216.34/", "https://[2606:2800:220:1::1]/", "http://127.0.0.1:4010/"])
		expect((await fetched(world, { implementation: read(url) })).kind, url).toBe("success");
	expect(questions(world)).toBe(0);
});

const json = (body: unknown, status = 200): Answer => {
	return () => Response.json(body, { status });
};
const answered = (data: unknown) => ({ Status: 0, Answer: [{ type: 1, data }] });
test.each<[string, Answer]>([
	["does not exist", json({ Status: 3 })],
	["fails", json(answered("93.184.216.34"), 500)],
	["redirects", () => redirect(302, "https://other.test/")],
	["says no JSON", () => new Response("<html>")],
	["says another shape", json([1, 2])],
	["says a refused status", json({ Status: 5, Answer: answered("93.184.216.34").Answer })],
	["has no address", json({ Status: 0 })],
	["cuts its answer", json({ ...answered("93.184.216.34"), TC: true })],
	["says too much", () => new Response(`{"Status":0,"x":"${"a".repeat(70_000)}"}`)],
	[
		"says too many records",
		json({ Status: 0, Answer: Array.from({ length: 300 }, () => answered("1.1.1.1").Answer[0]) }),
	],
	["is away", () => Promise.reject(new Error("Network connection lost."))],
])("where the resolver %s nothing is sent, and the call may be tried again", async (_, answer) => {
	const world = new World({ "dns.test": answer, "api.test": ok });
	const outcome = await fetched(world, { implementation: read("https://api.test/x"), effect: "write" });
	expect(outcome).toMatchObject({ kind: "failed", code: "connection_lost", effect: "none", retryable: true });
	expect(tools(world)).toEqual([]);
});

test("a resolver that is none never switches the check off; an empty one asks nothing", async () => {
	const deadline = new Deadline(1_000, new AbortController().signal);
	const said: (Place | undefined)[] = [];
	for (const endpoint of ["http://dns.test/", "dns.test", "https://", "https://dns.test/?x=1"])
		said.push(await resolverOf(endpoint, async () => Response.json(answered("93.184.216.34")))?.("api.test", deadline));
	deadline.dispose();
	expect(said).toEqual(["unknown", "unknown", "unknown", "unknown"]);
	expect([resolverOf("", fetch), resolverOf(undefined, fetch)]).toEqual([undefined, undefined]);
});

test("a slow resolver costs the call's own time, and no more", async () => {
	const world = new World({ "dns.test": () => new Promise<Response>(() => undefined), "api.test": ok });
	const setup = { implementation: read("https://api.test/x"), invocation: { timeout_ms: 50 } };
	expect(await fetched(world, setup)).toMatchObject({ kind: "timeout", effect: "none" });
});

const LISTED = ["api.test", "*.cdn.test"];
const anywhere = (url: string): Setup => ({
	implementation: read("{+url}", { allowed_hosts: LISTED }),
	args: { url },
});

test("a tool that lists its hosts reaches those alone, and asks nobody about others", async () => {
	const zone = { "api.test": PUBLIC, "a.cdn.test": PUBLIC, "evil.test": PUBLIC };
	const hosts = { "dns.test": dns(zone), "api.test": ok, "a.cdn.test": ok, "evil.test": ok };
	for (const url of ["https://api.test/x", "https://a.cdn.test/y"])
		expect((await fetched(new World(hosts), anywhere(url))).kind, url).toBe("success");
	const others = ["https://evil.test/", "https://api.test:8443/", "https://cdn.test/", "https://api.test.evil.test/"];
	for (const url of [...others, "https://evilcdn.test/", "https://API.TEST.:444/", "https://evil.test/#api.test"]) {
		const world = new World(hosts);
		expect(await fetched(world, anywhere(url)), url).toMatchObject({ code: "security_blocked", effect: "none" });
		expect(world.seen, url).toEqual([]);
	}
});

test("a redirect off the list is refused, and one along it followed", async () => {
	const to = (target: string) =>
		new World({
			"dns.test": dns({ "api.test": PUBLIC, "evil.test": PUBLIC, "a.cdn.test": PUBLIC }),
			"api.test": () => redirect(302, target),
			"evil.test": ok,
			"a.cdn.test": ok,
		});
	const away = to("https://evil.test/");
	expect(await fetched(away, anywhere("https://api.test/x"))).toMatchObject({ code: "redirect_refused" });
	expect(tools(away)).toEqual(["https://api.test/x"]);
	expect((await fetched(to("https://a.cdn.test/y"), anywhere("https://api.test/x"))).kind).toBe("success");
});
