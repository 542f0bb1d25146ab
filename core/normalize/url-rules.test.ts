import { expect, test } from "vitest";
import { type HttpAuth, implementation as schema } from "../registry/descriptor.ts";
import type { AddressRules, UrlParts } from "./address-guard.ts";
import { checkHttpImplementation, type HttpImplementation } from "./url-rules.ts";
import { readUrlTemplate } from "./url-rules-template.ts";

function parseUrl(raw: string): UrlParts | undefined {
	if (!URL.canParse(raw)) return undefined;
	const { protocol, hostname, port, username, password } = new URL(raw);
	return { protocol, hostname, port, username, password, raw };
}

const RULES: AddressRules = { own_hosts: ["belay.example"], exemptions: ["127.0.0.1:4010"] };
type Over = Partial<Omit<HttpImplementation, "kind">>;
function fieldsOf(over: Over): string[] {
	const implementation = schema.parse({
		kind: "http",
		method: "GET",
		url: "https://api.example.com/x",
		...over,
	}) as HttpImplementation;
	return checkHttpImplementation(implementation, { rules: RULES, parseUrl }).map((one) => one.field);
}
const URL_FIELD = ["/implementation/url"];
const bearer: HttpAuth = { type: "bearer", secret: "key" };

test("a plain implementation has nothing wrong", () => {
	expect(
		fieldsOf({
			url: "https://api.example.com/items/{id}{?q,page*}",
			headers: { "X-Client": "belay" },
			query: { v: "1" },
		}),
	).toEqual([]);
	expect(fieldsOf({ url: "https://api.example.com/{+path}", auth: bearer })).toEqual([]);
	expect(fieldsOf({ url: "{+url}" })).toEqual([]);
	expect(fieldsOf({ url: "{+base}/items" })).toEqual([]);
	expect(fieldsOf({ url: "https://{region}.api.example.com/x" })).toEqual([]);
	expect(fieldsOf({ url: "https://api.example.com{/path*}{?q}" })).toEqual([]);
	expect(fieldsOf({ url: "https://api.example.com" })).toEqual([]);
});

test("a literal host inside a network is refused before any call (S01)", () => {
	for (const url of [
		"http://user:pw@api.example.com/",
		"http://127.0.0.1/",
		"http://10.1.2.3/{id}",
		"http://169.254.169.254/latest/{+path}",
		"http://[::1]/",
		"http://[::ffff:7f00:1]/",
		"http://2130706433/x",
		"http://0x7f000001/x",
		"http://localhost./x",
		"https://api.example.com@127.0.0.1/",
		"https://intranet/",
		"https://belay.example/v1/runs",
		"http://127.0.0.1:4011/",
		"https://127.0.0.1:4010/",
		"ftp://example.com/",
		"https:///example.com/",
		"http:\\\\127.0.0.1\\",
		"javascript:alert(1)",
		"/relative",
		"",
	]) {
		expect(fieldsOf({ url }), url).toEqual(URL_FIELD);
	}
	expect(fieldsOf({ url: "http://127.0.0.1:4010/x/{id}" })).toEqual([]);
});

test("with auth the host is literal and followed by `/` (decision 35)", () => {
	for (const url of [
		"https://api.example.com{+path}",
		"https://api.example.com{/path}",
		"https://{host}/x",
		"{+url}",
		"https://api.example.com",
		"https://api.example.com?x={y}",
		"https://{sub}.example.com/",
	]) {
		expect(fieldsOf({ url, auth: bearer }), url).toEqual(URL_FIELD);
	}
});

test("a host that only looks literal deceives its author, with or without auth", () => {
	for (const url of [
		"https://api.example.com{+path}",
		"https://api.example.com{path}",
		"https://api.example.com{.tld}",
		"https://{+sub}.example.com/",
		"{scheme}://api.example.com/",
		"https://api.example.com:{port}",
		"{url}",
		"http{s}://x.example/",
	]) {
		expect(fieldsOf({ url }), url).toEqual(URL_FIELD);
	}
});

test("a credential never travels over plain http, but to a development upstream", () => {
	expect(fieldsOf({ url: "http://api.example.com/x", auth: bearer })).toEqual(URL_FIELD);
	expect(fieldsOf({ url: "http://api.example.com/x" })).toEqual([]);
	expect(fieldsOf({ url: "http://127.0.0.1:4010/x", auth: bearer })).toEqual([]);
});

test("templates that the filling library would pass over are refused", () => {
	for (const url of [
		"https://api.example.com/{",
		"https://api.example.com/}",
		"https://api.example.com/{}",
		"https://api.example.com/{a b}",
		"https://api.example.com/{#frag}",
		"https://api.example.com/{=x}",
		"https://api.example.com/{a,}",
		"https://api.example.com/{{a}}",
	]) {
		expect(fieldsOf({ url }), url).toEqual(URL_FIELD);
	}
});

test("headers cannot forge the request or hold a credential", () => {
	const headers = (entries: Record<string, string>) => fieldsOf({ headers: entries });
	for (const name of [
		"Host",
		"content-length",
		"Transfer-Encoding",
		"Connection",
		"CF-Connecting-IP",
		"X-Forwarded-For",
		"Idempotency-Key",
		"traceparent",
		"Proxy-Authorization",
		"bad name",
		"x:y",
		"",
		"Authorization",
		"Cookie",
		"X-Api-Key",
		"X-Auth-Token",
		"Client-Secret",
	]) {
		expect(headers({ [name]: "v" }), name).toEqual(["/implementation/headers"]);
	}
	for (const value of ["a\r\nX: y", "a\nb", "a\u0000b", "a\u2028b", "é"])
		expect(headers({ "X-A": value }), JSON.stringify(value)).toEqual(["/implementation/headers"]);
});

test("no error repeats a header's value or a credential in a url", () => {
	const implementation = schema.parse({
		kind: "http",
		method: "GET",
		url: "https://u:hunter22@api.example.com/",
		headers: { Authorization: "Bearer hunter22" },
		query: { api_key: "hunter22" },
	});
	const errors = checkHttpImplementation(implementation as HttpImplementation, { rules: RULES, parseUrl });
	expect(errors).toHaveLength(3);
	expect(JSON.stringify(errors)).not.toContain("hunter22");
});

test("auth: names, doubles and the token url", () => {
	const apiKey = (name: string): HttpAuth => ({ type: "api_key", in: "header", name, secret: "key" });
	expect(fieldsOf({ auth: apiKey("X-Api-Key") })).toEqual([]);
	for (const name of ["Host", "a b", "x\r\ny", ""])
		expect(fieldsOf({ auth: apiKey(name) }), name).toEqual(["/implementation/auth/name"]);
	expect(fieldsOf({ auth: apiKey("X-Client"), headers: { "x-client": "1" } })).toEqual(["/implementation/auth/name"]);
	const oauth = (token_url: string): HttpAuth => ({ type: "oauth2_client", token_url, client_id: "c", secret: "key" });
	expect(fieldsOf({ auth: oauth("https://auth.example.com/token") })).toEqual([]);
	for (const url of [
		"http://auth.example.com/token",
		"https://10.0.0.1/token",
		"https://{host}/token",
		"nonsense",
		"https://u:p@auth.example.com/",
	]) {
		expect(fieldsOf({ auth: oauth(url) }), url).toEqual(["/implementation/auth/token_url"]);
	}
});

test("GET and HEAD carry no body", () => {
	expect(fieldsOf({ method: "GET", body: "json" })).toEqual(["/implementation/body"]);
	expect(fieldsOf({ method: "HEAD", body: "form" })).toEqual(["/implementation/body"]);
	expect(fieldsOf({ method: "GET", body: "none" })).toEqual([]);
	expect(fieldsOf({ method: "DELETE", body: "json" })).toEqual([]);
});

test("the template says which arguments it takes and which it cannot do without", () => {
	expect(readUrlTemplate("https://h.example/{a}/{+b,c:3}{?d,e*}{&f}{/g}")).toEqual({
		names: ["a", "b", "c", "d", "e", "f", "g"],
		required: ["a", "b", "c"],
		origin: "https://h.example",
		host: "literal",
		rooted: true,
	});
});

test("hosts that a tool lists are hosts, and hold its own", () => {
	const at = (allowed_hosts: string[], url = "https://api.example.com/x") => fieldsOf({ url, allowed_hosts });
	expect(at(["api.example.com", "*.cdn.example.com", "data.example.com:8443"])).toEqual([]);
	expect(at(["*.example.com"])).toEqual([]);
	expect(at(["api.example.com:8443"], "https://api.example.com:8443/x")).toEqual([]);
	expect(at(["anything.example.com"], "{+url}")).toEqual([]);
	for (const host of [
		"*",
		"*.com",
		"https://a.example.com",
		"a.example.com/x",
		"A.example.com",
		"a b",
		"",
		"user@a.example.com",
	])
		expect(at(["api.example.com", host]), host).toEqual(["/implementation/allowed_hosts/1"]);
	// the host of its url is another one: no call of it could ever be made
	expect(at(["other.example.com"])).toEqual(["/implementation/allowed_hosts"]);
	expect(at(["api.example.com"], "https://api.example.com:8443/x")).toEqual(["/implementation/allowed_hosts"]);
});
