/**
 * Fills an `http` implementation from a call's arguments: URL template, query, body, fixed headers. It sends nothing and
 * knows no credential. What it refuses: an argument that changes the host, climbs out of the declared path, addresses
 * another resource by being empty, or overrides what the definition fixes. Called by the http invoker.
 */
import { parseTemplate } from "url-template";
import { isJsonObject, type Json, type JsonObject, own, put, wellFormed } from "#core/json.ts";
import { type AddressRules, judgeUrl } from "#core/normalize/address-guard.ts";
import type { HttpImplementation } from "#core/normalize/url-rules.ts";
import { readUrlTemplate, type UrlTemplate } from "#core/normalize/url-rules-template.ts";
import { parseUrl } from "./url.ts";

export type FilledRequest = { readonly url: URL; readonly headers: Headers; readonly body: string | undefined };
export type Filled =
	| { readonly ok: true; readonly request: FilledRequest }
	| { readonly ok: false; readonly code: "security_blocked" | "invalid_arguments"; readonly message: string };

/** `reserved_query`: names that auth will set; an argument of that name is refused, not overridden in silence. */
export function fillRequest(
	implementation: HttpImplementation,
	args: JsonObject,
	rules: AddressRules,
	reserved_query: readonly string[] = [],
): Filled {
	const template = readUrlTemplate(implementation.url);
	if (template === undefined || template.host === "blurred")
		return blocked("the url template of this tool is malformed");
	const missing = template.required.find((name) => isEmpty(own(args, name)));
	if (missing !== undefined) return misfit(`argument \`${missing}\` is part of the url and must not be empty`);
	const text = expand(implementation.url, template, args);
	if (text === undefined) return misfit("the arguments do not fit the url template");
	const parts = parseUrl(text);
	if (parts === undefined || !judgeUrl(parts, rules).ok) return blocked("the url is not one that tools may reach");
	const url = new URL(text);
	if (template.origin !== undefined) {
		// `https://api.example.com{+path}` filled with `@evil.test/x` goes to evil.test: parse again, compare.
		if (url.origin !== new URL(template.origin).origin) return blocked("an argument changes the host of the url");
		if (climbs(text.slice(template.origin.length))) return blocked("an argument climbs out of the path of the url");
	}
	const fixed = [...Object.keys(implementation.query ?? {}), ...reserved_query];
	const rest = leftovers(args, template.names);
	const taken = fixed.find((name) => url.searchParams.has(name) || Object.hasOwn(rest, name));
	if (taken !== undefined) return blocked(`an argument sets the query parameter \`${taken}\`, which this tool fixes`);

	const headers = new Headers({ accept: "application/json, text/plain;q=0.9, */*;q=0.5", "user-agent": "belay" });
	for (const [name, value] of Object.entries(implementation.headers ?? {})) headers.set(name, value);
	const mode = bodyMode(implementation);
	const pairs = Object.entries(implementation.query ?? {});
	if (mode === "none") pairs.unshift(...toPairs(rest));
	addQuery(url, pairs);
	url.hash = "";
	const body = mode === "none" ? undefined : encodeBody(mode, rest, headers);
	return { ok: true, request: { url, headers, body } };
}

/** Appends without rewriting what is there: a template's own encoding is kept. */
export function addQuery(url: URL, pairs: readonly (readonly [string, string])[]): void {
	if (pairs.length === 0) return;
	const added = new URLSearchParams(pairs.map(([name, value]) => [wellFormed(name), wellFormed(value)])).toString();
	url.search = url.search === "" ? added : `${url.search}&${added}`;
}

function bodyMode(implementation: HttpImplementation): "json" | "form" | "none" {
	if (implementation.method === "GET" || implementation.method === "HEAD") return "none";
	return implementation.body ?? (implementation.method === "DELETE" ? "none" : "json");
}

function encodeBody(mode: "json" | "form", rest: JsonObject, headers: Headers): string {
	if (!headers.has("content-type")) {
		headers.set("content-type", mode === "json" ? "application/json" : "application/x-www-form-urlencoded");
	}
	if (mode === "form")
		return new URLSearchParams(toPairs(rest).map(([name, value]) => [wellFormed(name), wellFormed(value)])).toString();
	return JSON.stringify(rest, (_, value: Json) => (typeof value === "string" ? wellFormed(value) : value));
}

function leftovers(args: JsonObject, used: readonly string[]): JsonObject {
	const rest: JsonObject = {};
	for (const [name, value] of Object.entries(args)) if (!used.includes(name)) put(rest, name, value);
	return rest;
}

/** Lists repeat their name, null is left out, objects travel as JSON text. */
function toPairs(values: JsonObject): [string, string][] {
	return Object.entries(values).flatMap(([name, value]) =>
		(Array.isArray(value) ? value : [value])
			.filter((item) => item !== null)
			.map((item): [string, string] => [name, typeof item === "object" ? JSON.stringify(item) : String(item)]),
	);
}

/** Own, plain values only: the library walks prototypes (`{constructor}`) and prints nested objects as `[object Object]`. */
function expand(url: string, template: UrlTemplate, args: JsonObject): string | undefined {
	const context: Record<string, never> = Object.create(null);
	for (const name of template.names) {
		const value = own(args, name);
		if (value === undefined || value === null) continue;
		const plain = clean(value);
		if (plain === undefined) return undefined;
		context[name] = plain as never;
	}
	// A template that is one whole URL takes it as written, so that the guard sees what the planner wrote.
	const whole = /^\{\+([^{},:*]+)\}$/.exec(url)?.[1];
	if (whole !== undefined) return typeof context[whole] === "string" ? context[whole] : undefined;
	try {
		return parseTemplate(url).expand(context);
	} catch {
		return undefined; // a prefix modifier may cut a surrogate pair in two, which cannot be encoded
	}
}

type Plain = string | number | boolean;

function clean(value: Json): Plain | Plain[] | Record<string, Plain> | undefined {
	const primitive = (one: Json): Plain | undefined => {
		if (typeof one === "string") return wellFormed(one);
		return typeof one === "number" || typeof one === "boolean" ? one : undefined;
	};
	if (Array.isArray(value)) {
		const items = value.map(primitive);
		return items.some((item) => item === undefined) ? undefined : (items as Plain[]);
	}
	if (!isJsonObject(value)) return primitive(value);
	const members: Record<string, Plain> = Object.create(null);
	for (const [name, member] of Object.entries(value)) {
		const item = primitive(member);
		if (item === undefined) return undefined;
		members[wellFormed(name)] = item;
	}
	return members;
}

function isEmpty(value: Json | undefined): boolean {
	if (Array.isArray(value)) return value.length === 0 || value.some(isEmpty);
	return value === undefined || value === null || value === "";
}

/** Whether any path segment, decoded as often as servers may, is `.` or `..`: the URL parser would climb without a word. */
function climbs(rest: string): boolean {
	let path = rest.split(/[?#]/, 1)[0] ?? "";
	for (let round = 0; round < 4; round++) {
		if (path.split(/[/\\]/).some((segment) => segment === "." || segment === "..")) return true;
		path = path.replace(/%(25|2e|2f|5c)/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
	}
	return false;
}

const blocked = (message: string): Filled => ({ ok: false, code: "security_blocked", message });
const misfit = (message: string): Filled => ({ ok: false, code: "invalid_arguments", message });
