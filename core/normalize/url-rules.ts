/**
 * What an `http` implementation must keep before it is registered (decision 35, case S01): a host that no argument can
 * choose where a credential goes, no private literal host, no literal credential in the definition (definitions are read
 * by many), no header that would forge the request. Registration calls it; the invoker calls it again before each
 * request, because rules may have become stricter since.
 */
import type { JsonObject } from "../json.ts";
import type { FieldError } from "../refusal.ts";
import type { HttpAuth, Implementation } from "../registry/descriptor.ts";
import { namesField } from "../registry/relations.ts";
import { type AddressRules, isExempt, judgeUrl, type ParseUrl } from "./address-guard.ts";
import { allowsHost, isHostPattern } from "./host-pattern.ts";
import { readUrlTemplate } from "./url-rules-template.ts";

export type HttpImplementation = Extract<Implementation, { kind: "http" }>;

/** `parseUrl` comes from the shell: core has no URL parser of its own, and two parsers would disagree some day. */
type UrlRuleContext = { readonly rules: AddressRules; readonly parseUrl: ParseUrl };

/** Everything wrong with the implementation, by field (`/implementation/...`); empty when nothing is. */
export function checkHttpImplementation(
	implementation: HttpImplementation,
	context: UrlRuleContext,
	/** Of the arguments, where the placeholders are to be judged, too: at registration. */
	input_schema?: JsonObject,
): FieldError[] {
	const auth = implementation.auth ?? { type: "none" as const };
	return [
		...(input_schema === undefined ? [] : checkPlaceholders(implementation.url, input_schema)),
		...checkUrl(implementation.url, auth, context),
		...checkHeaders(implementation.headers ?? {}),
		...checkQuery(implementation.query ?? {}),
		...checkBody(implementation),
		...checkAuth(auth, implementation, context),
		...checkAllowedHosts(implementation, context),
	];
}

/** A placeholder that nothing fills would refuse every call, or drop out of the url without a word. */
function checkPlaceholders(url: string, input_schema: JsonObject): FieldError[] {
	const unfilled = (readUrlTemplate(url)?.names ?? []).filter((name) => !namesField(input_schema, name));
	return unfilled.map((name) =>
		problem(
			"/implementation/url",
			"unknown_name",
			`the placeholder \`{${name}}\` is filled by no argument of \`input_schema\``,
			"the name of a declared argument",
			"declare it in `input_schema`, or take it out of the url",
		),
	);
}

function checkUrl(url: string, auth: HttpAuth, context: UrlRuleContext): FieldError[] {
	const field = "/implementation/url";
	const template = readUrlTemplate(url);
	if (template === undefined) {
		return [
			problem(
				field,
				"format_invalid",
				"the url is not a URL template",
				"an RFC 6570 template",
				"https://api.example.com/items/{id}",
			),
		];
	}
	if (auth.type !== "none" && !(template.origin !== undefined && template.rooted)) {
		const error = "with `auth`, the url's scheme and host must be literal and followed by `/`";
		return [
			problem(
				field,
				"security_violation",
				error,
				"https://host/...",
				"write the host out; keep expressions after the first `/`",
			),
		];
	}
	if (template.host === "blurred") {
		const error = "the host of the url is partly text and partly argument";
		return [
			problem(
				field,
				"security_violation",
				error,
				"https://host/... or `{+url}`",
				"put a `/` after the host, before the first expression",
			),
		];
	}
	if (template.origin === undefined) return []; // an argument chooses the host: judged at every call
	return checkAddress(field, `${template.origin}/`, auth.type !== "none", context);
}

function checkAddress(field: string, url: string, carriesCredential: boolean, context: UrlRuleContext): FieldError[] {
	const parts = context.parseUrl(url);
	const verdict = parts === undefined ? ({ ok: false, reason: "not_a_url" } as const) : judgeUrl(parts, context.rules);
	if (!verdict.ok) {
		const error = `the url is refused (${verdict.reason})`;
		return [
			problem(
				field,
				"security_violation",
				error,
				"a public http or https address",
				"use a public host name without credentials",
			),
		];
	}
	if (carriesCredential && parts?.protocol === "http:" && !isExempt(parts, context.rules)) {
		return [problem(field, "security_violation", "a credential never travels over plain http", "https", "use https")];
	}
	return [];
}

/** RFC 9110: what a field name may hold. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
/** Printable text on one line: CR, LF or NUL would begin a header, or a request, of the caller's own. */
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
/** Framing, routing and identity belong to the transport and to Belay. */
const RESERVED_HEADER =
	/^(?:host|connection|content-length|transfer-encoding|keep-alive|upgrade|te|trailer|expect|forwarded|via|x-real-ip|true-client-ip|traceparent|tracestate|idempotency-key|(?:proxy|cf|x-forwarded|sec|webhook)-.*)$/i;
const CREDENTIAL_HEADER = /^(?:authorization|cookie|.*(?:api-?key|token|secret|password|credential|signature).*)$/i;
const CREDENTIAL_QUERY =
	/^(?:api[_-]?key|access[_-]?token|auth[_-]?token|token|secret|client[_-]?secret|password|passwd|pwd|signature)$/i;

function checkHeaders(headers: Readonly<Record<string, string>>): FieldError[] {
	const found: FieldError[] = [];
	for (const [name, value] of Object.entries(headers)) {
		const field = "/implementation/headers";
		if (!TOKEN.test(name))
			found.push(problem(field, "format_invalid", "a header name is malformed", "an RFC 9110 token", "X-Client"));
		else if (RESERVED_HEADER.test(name))
			found.push(
				problem(
					field,
					"security_violation",
					`header \`${name}\` is set by the service`,
					"another header",
					"leave it out",
				),
			);
		else if (CREDENTIAL_HEADER.test(name)) found.push(literalCredential(field, `header \`${name}\``));
		if (!HEADER_VALUE.test(value))
			found.push(
				problem(
					field,
					"security_violation",
					"a header value holds control characters",
					"printable ASCII on one line",
					"remove line breaks",
				),
			);
	}
	return found;
}

function checkQuery(query: Readonly<Record<string, string>>): FieldError[] {
	return Object.keys(query)
		.filter((name) => CREDENTIAL_QUERY.test(name))
		.map((name) => literalCredential("/implementation/query", `query parameter \`${name}\``));
}

function literalCredential(field: string, what: string): FieldError {
	return problem(
		field,
		"security_violation",
		`${what} would store a credential in the definition`,
		"`auth` with the name of a secret",
		"store the value with /v1/secrets and name it in `auth`",
	);
}

function checkBody(implementation: HttpImplementation): FieldError[] {
	const bodiless = implementation.method === "GET" || implementation.method === "HEAD";
	if (!bodiless || implementation.body === undefined || implementation.body === "none") return [];
	return [
		problem(
			"/implementation/body",
			"schema_violation",
			`${implementation.method} carries no body`,
			"`none`",
			"leave `body` out; arguments go to the query",
		),
	];
}

function checkAuth(auth: HttpAuth, implementation: HttpImplementation, context: UrlRuleContext): FieldError[] {
	if (auth.type === "oauth2_client") return checkTokenUrl(auth.token_url, context);
	if (auth.type !== "api_key") return [];
	const field = "/implementation/auth/name";
	if (auth.in === "query") {
		return auth.name === "" ? [problem(field, "format_invalid", "the parameter has no name", "a name", "api_key")] : [];
	}
	if (!TOKEN.test(auth.name))
		return [problem(field, "format_invalid", "a header name is malformed", "an RFC 9110 token", "X-Api-Key")];
	if (RESERVED_HEADER.test(auth.name))
		return [
			problem(
				field,
				"security_violation",
				`header \`${auth.name}\` is set by the service`,
				"another header",
				"X-Api-Key",
			),
		];
	const twice = Object.keys(implementation.headers ?? {}).some(
		(name) => name.toLowerCase() === auth.name.toLowerCase(),
	);
	return twice
		? [problem(field, "schema_violation", "the header is set twice", "one value", "remove it from `headers`")]
		: [];
}

/** A list that a typing error empties would be found at the first call only, and a host outside of it never be reached. */
function checkAllowedHosts({ url, allowed_hosts }: HttpImplementation, context: UrlRuleContext): FieldError[] {
	if (allowed_hosts === undefined) return [];
	const field = "/implementation/allowed_hosts";
	const malformed = allowed_hosts.flatMap((host, at) =>
		isHostPattern(host)
			? []
			: [
					problem(
						`${field}/${at}`,
						"format_invalid",
						"not a host that a tool can be held to",
						"`api.example.com` or `*.example.com`, lowercase, with a port where it is not the scheme's own",
						"write the host out, without scheme or path",
					),
				],
	);
	const { origin } = readUrlTemplate(url) ?? {};
	const parts = origin === undefined ? undefined : context.parseUrl(`${origin}/`);
	if (malformed.length > 0 || parts === undefined) return malformed;
	const host = parts.port === "" ? parts.hostname : `${parts.hostname}:${parts.port}`;
	if (allowsHost(allowed_hosts, host)) return [];
	return [
		problem(
			field,
			"schema_violation",
			"the url's own host is not among them",
			"the url's host as well",
			"add the host",
		),
	];
}

function checkTokenUrl(tokenUrl: string, context: UrlRuleContext): FieldError[] {
	const field = "/implementation/auth/token_url";
	if (/[{}]/.test(tokenUrl)) {
		return [
			problem(field, "security_violation", "the token url must be literal", "https://host/...", "remove expressions"),
		];
	}
	return checkAddress(field, tokenUrl, true, context);
}

function problem(field: string, issue: FieldError["issue"], error: string, expected: string, hint: string): FieldError {
	return { error, field, issue, expected, hint };
}
