/** Who asks. The one source of identity for every stage: nothing in a request body ever adds to it. */
import * as z from "zod";

/** Decision 18: only `user` decides approvals; `agent` is refused on every administrative write. */
export const PRINCIPAL_KINDS = ["user", "agent", "service"] as const;

/** Contract: Role. Permissions are three-part with wildcards (P2); `tools` names single tools by id. */
export const role = z.strictObject({
	name: z
		.string()
		.regex(/^[a-z][a-z0-9_]{0,63}$/, "lowercase letters, digits and `_`, a letter first, 64 characters at most"),
	description: z.string().max(1024).default(""),
	permissions: z.array(z.string().max(256)).max(200).default([]),
	tools: z.array(z.string().max(256)).max(1000).default([]),
	data_scope: z.enum(["all", "department", "own"]).default("own"),
	field_masking: z.record(z.string(), z.enum(["visible", "partial", "hidden"])).default({}),
	abac_conditions: z.array(z.strictObject({ rule: z.string(), params: z.record(z.string(), z.unknown()) })).default([]),
});
export type Role = z.infer<typeof role>;

/** What a principal may do, as its roles add up at one policy revision. Small: it is copied into each run. */
export const authority = z.object({
	policy_rev: z.number().int(),
	roles: z.array(z.string()),
	permissions: z.array(z.string()),
	/** Tools granted one by one (agent_limited): each stands for `tools:*:<tool_id>`. */
	tools: z.array(z.string()),
	data_scope: z.enum(["all", "department", "own"]),
});
export type Authority = z.infer<typeof authority>;

export const principal = z.object({
	tenant_id: z.string(),
	principal_id: z.string(),
	kind: z.enum(PRINCIPAL_KINDS),
	/** What an approver reads: an e-mail address or a display name. */
	name: z.string(),
});
export type Principal = z.infer<typeof principal>;

/** A principal with what it may do: what the Worker hands to a Durable Object. */
export type Caller = Principal & { readonly authority: Authority };
