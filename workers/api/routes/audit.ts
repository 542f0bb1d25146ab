/**
 * `/v1/audit`: what the records of a tenant add up to. Here: security flags by principal, so that somebody who probes is seen,
 * although each of the refused calls stands in a run of its own. It shows no argument. An agent is not told how often it was
 * caught: that would tell it which of its tries were noticed.
 */
import * as z from "zod";
import { D1Audit } from "#adapters/d1/d1-audit.ts";
import { noun } from "../noun.ts";

const instant = z.iso.datetime({ error: "an ISO 8601 time in UTC, such as 2026-11-30T12:00:00.000Z" });
const flagCount = z.object({
	principal_id: z.string(),
	/** `security_blocked`: refused before any invocation; `egress`: refused on its way out; others blocked nothing. */
	flag: z.string(),
	/** Records that carry the flag: one for a refused call, one for each step of a call that went on. */
	count: z.number().int(),
	last_at: z.string(),
});

export const audit = noun("/v1/audit", "Audit");

audit.get(
	"/security-flags",
	{
		summary: "security flags, counted by principal, the most frequent first",
		access: { who: "caller", permission: "audit:read:security", people: true },
		query: z.object({
			principal_id: z.string().max(256).optional(),
			/** Included. */
			from: instant.optional(),
			/** Not included. */
			to: instant.optional(),
		}),
		answers: { 200: z.object({ data: z.array(flagCount) }) },
	},
	async (c, _, query) => {
		const { tenant_id } = c.get("caller");
		const utc = (time: string | undefined) => (time === undefined ? undefined : new Date(time).toISOString());
		const filter = { principal_id: query.principal_id, from: utc(query.from), to: utc(query.to) };
		return c.json({ data: await new D1Audit(c.env.DB).flagCounts(tenant_id, filter) });
	},
);
