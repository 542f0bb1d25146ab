/**
 * The roles a tenant begins with (P2), copied into it and free to be changed there. `agent_reader` reaches no tool with
 * effect write or external: calling one needs `tools:write:…` or `tools:external:…` (decision 19), which it lacks.
 * Called by the seed and by whoever makes a tenant.
 */
import type { Role } from "#core/principal.ts";

const PERSONAL_FIELDS: Role["field_masking"] = { phone: "partial", id_card: "hidden", salary: "hidden" };

export const ROLES = [
	{
		name: "agent_operator",
		description: "may use and administer everything; an agent with this role still decides and administers nothing",
		permissions: ["*:*:*"],
		tools: [],
		data_scope: "all",
		field_masking: {},
		abac_conditions: [],
	},
	{
		name: "agent_reader",
		description: "may read, query and search; never writes or reaches the outside",
		permissions: ["*:read:*", "*:query:*", "*:search:*"],
		tools: [],
		data_scope: "department",
		field_masking: PERSONAL_FIELDS,
		abac_conditions: [],
	},
	{
		name: "agent_limited",
		description: "may use only the tools named here, one by one",
		permissions: [],
		tools: ["clock_now", "echo", "text_stats"],
		data_scope: "own",
		field_masking: PERSONAL_FIELDS,
		abac_conditions: [],
	},
	{
		name: "approver",
		description: "decides approvals of every domain and sees the runs they belong to; calls no tool",
		permissions: ["approval:decide:*", "approval:read:*", "approval:send:*", "runs:read:*"],
		tools: [],
		data_scope: "all",
		field_masking: {},
		abac_conditions: [],
	},
	{
		name: "analyst",
		description: "queries finance, computes and reads reports",
		permissions: ["finance:query:*", "finance:read:*", "code:execute:python", "vector:search:document", "tools:read:*"],
		tools: [],
		data_scope: "department",
		field_masking: PERSONAL_FIELDS,
		abac_conditions: [],
	},
] as const satisfies readonly Role[];

export type RoleName = (typeof ROLES)[number]["name"];
