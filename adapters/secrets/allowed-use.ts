/**
 * Where a secret may go (decision 35): the hosts and the tools it names, nothing by default. Called by the secrets API
 * before it stores, and by the vault before it opens. It knows no secret.
 */
import { isHostPattern } from "#core/normalize/host-pattern.ts";
import type { FieldError } from "#core/refusal.ts";
import { TOOL_ID } from "#core/registry/descriptor.ts";

export type AllowedUse = { readonly allowed_hosts: readonly string[]; readonly allowed_tools: readonly string[] };

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
