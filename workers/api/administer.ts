/**
 * What every administrative write has in common: two audit rows (the permission decision before, what came of it after),
 * and the rule that nobody grants what they do not hold. Audit rows name things and never carry values. Called by the
 * tool, secret, channel, key and role routes.
 */
import { D1Audit } from "#adapters/d1/d1-audit.ts";
import { randomBytes } from "#adapters/random.ts";
import { hex } from "#core/ids.ts";
import type { JsonObject } from "#core/json.ts";
import { permits } from "#core/policy/permits.ts";
import type { Authority, Caller } from "#core/principal.ts";
import type { Ctx } from "./noun.ts";
import { ApiProblem, problem } from "./problem.ts";

export type AdminAction = {
	/** `tool.publish`, `secret.put` … */
	readonly action: string;
	readonly tool_id?: string;
	/** Names and ids only. */
	readonly about: JsonObject;
};

/**
 * Writes down what is about to happen, does it, writes down what came of it. When the first row cannot be stored nothing
 * happens (503): an action that leaves no trace is not done.
 */
export async function audited<T>(c: Ctx, what: AdminAction, act: () => Promise<T>): Promise<T> {
	const entry = hex(randomBytes(16));
	await append(c, entry, 0, what, "started", null);
	const began = Date.now();
	try {
		const result = await act();
		await append(c, entry, 1, what, "done", Date.now() - began);
		return result;
	} catch (error) {
		const status = error instanceof ApiProblem ? error.code : "failed";
		await append(c, entry, 1, what, status, Date.now() - began).catch(() => {
			// the first row stands; the caller is told what really went wrong
		});
		throw error;
	}
}

function append(
	c: Ctx,
	entry: string,
	seq: number,
	what: AdminAction,
	status: string,
	duration_ms: number | null,
): Promise<void> {
	const { tenant_id, principal_id } = c.get("caller");
	return new D1Audit(c.env.DB).append(tenant_id, entry, {
		run_id: null,
		seq,
		trace_id: c.get("trace_id"),
		at: new Date().toISOString(),
		session_id: null,
		principal_id,
		tool_id: what.tool_id ?? null,
		action: what.action,
		input_params: what.about,
		duration_ms,
		permission_decision: "allow",
		security_flags: [],
		status,
	});
}

/**
 * Nobody grants more than they hold: without this, the right to make keys or roles would be every right. A service that
 * could make a key for a person could also approve its own calls (decision 18), so kinds are checked where keys are made.
 */
export function requireHeld(caller: Caller, granted: Pick<Authority, "permissions" | "tools" | "data_scope">): void {
	const { permissions, tools, data_scope } = caller.authority;
	const beyond =
		granted.permissions.some((one) => !permits(permissions, one)) ||
		granted.tools.some((one) => !tools.includes(one) && !permits(permissions, `tools:*:${one}`)) ||
		SCOPES.indexOf(granted.data_scope) > SCOPES.indexOf(data_scope);
	if (beyond) throw problem("forbidden", "nobody can grant more than they hold");
}

/** From the narrowest to the widest. */
const SCOPES: readonly Authority["data_scope"][] = ["own", "department", "all"];
