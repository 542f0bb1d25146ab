/**
 * Where a secret may go (decision 35): the hosts and the tools it names, nothing by default. Called by the secrets API
 * before it stores, and by the vault before it opens. It knows no secret.
 */
import type { FieldError } from "#core/refusal.ts";
import { TOOL_ID } from "#core/registry/descriptor.ts";

export type AllowedUse = { readonly allowed_hosts: readonly string[]; readonly allowed_tools: readonly string[] };

const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** `api.example.com`, `*.example.com`, either with a port; an IP literal only when written out. A wildcard keeps two labels: `*.com` is half the world. */
const HOST_PATTERN = new RegExp(
	`^(?:(?:${LABEL}\\.)*${LABEL}|\\*\\.${LABEL}(?:\\.${LABEL})+|\\[[0-9a-f:.]+\\])(?::[1-9]\\d{0,4})?$`,
);

/** What is wrong with the lists, by field; both must name something, and `*` alone is not a host. */
export function checkAllowedUse(use: AllowedUse): FieldError[] {
	const errors: FieldError[] = [];
	const add = (field: string, error: string, expected: string, hint: string) =>
		errors.push({ error, field, issue: "security_violation", expected, hint });
	if (use.allowed_hosts.length === 0)
		add("/allowed_hosts", "a secret must name the hosts it may be sent to", "at least one host", "api.example.com");
	if (use.allowed_tools.length === 0)
		add("/allowed_tools", "a secret must name the tools that may use it", "at least one tool_id", "list each tool");
	for (const [at, host] of use.allowed_hosts.entries()) {
		if (isHostPattern(host)) continue;
		add(
			`/allowed_hosts/${at}`,
			"not a host that a secret can be bound to",
			"`api.example.com` or `*.example.com`, lowercase",
			"write the host out",
		);
	}
	for (const [at, tool] of use.allowed_tools.entries()) {
		if (!TOOL_ID.test(tool))
			add(`/allowed_tools/${at}`, "not a tool_id", "a registered tool's id", "write each tool_id out");
	}
	return errors;
}

/** Whether `host` (`host[:port]`, the port absent when it is the scheme's own) is one of the patterns. A pattern without a port means the default port only. */
export function allowsHost(patterns: readonly string[], host: string): boolean {
	const given = host.toLowerCase();
	return patterns.some((pattern) => {
		if (!isHostPattern(pattern)) return false; // a row written before the rule was: it opens nothing
		if (!pattern.startsWith("*.")) return pattern === given;
		const suffix = pattern.slice(1);
		return given.endsWith(suffix) && given.length > suffix.length;
	});
}

/** DNS names end at 253 characters; the bound also keeps the pattern's backtracking short. */
function isHostPattern(text: string): boolean {
	return text.length <= 260 && HOST_PATTERN.test(text);
}
