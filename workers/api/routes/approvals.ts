/**
 * `/v1/approvals`: what waits for a human. The object of the approval's run decides everything; a list comes from the D1
 * index, and each entry is then read from its object, so that nobody acts on a stale one. A body names a decision and what
 * it decides about, and never brings arguments of its own (A15).
 */
import * as z from "zod";
import { type ApprovalFilter, D1Approvals } from "#adapters/d1/d1-approvals.ts";
import { parsePermission, permits } from "#core/policy/permits.ts";
import type { Caller } from "#core/principal.ts";
import { APPROVAL_STATUSES, type ApprovalView, approval } from "#core/run/view.ts";
import { type Ctx, noun } from "../noun.ts";
import { ApiProblem, invalidField } from "../problem.ts";
import { jsonObject } from "../wire/any-json.ts";
import { listOf, pageQuery } from "../wire/envelopes.ts";
import { linkRequest, linkSent, sendLink } from "./approval-links.ts";
import { ofRun, readApproval } from "./approval-run.ts";

const people = { who: "caller", people: true } as const;

export const approvals = noun("/v1/approvals", "Approvals");

approvals.get(
	"/",
	{
		summary: "list approvals, newest first: those the caller may decide, or else those of its own runs",
		access: { who: "caller" },
		query: pageQuery.extend({ status: z.enum(APPROVAL_STATUSES).optional() }),
		answers: { 200: listOf(approval) },
	},
	async (c, _body, query) => {
		const { tenant_id } = c.get("caller");
		const scope = listScope(c.get("caller"));
		const page = await new D1Approvals(c.env.DB).list(tenant_id, { ...query, ...scope });
		if (!page.ok)
			throw invalidField("query:cursor", "format_invalid", "the cursor is not one of ours", "a `next_cursor`");
		const found = await Promise.all(page.data.map((row) => present(c, row.approval_id)));
		// the index may be a moment behind the object
		const data = found.filter(
			(one) => one !== undefined && (query.status === undefined || one.status === query.status),
		);
		return c.json({ data, next_cursor: page.next_cursor });
	},
);

approvals.get(
	"/:approval_id",
	{ summary: "read an approval: the frozen call, exactly", access: { who: "caller" }, answers: { 200: approval } },
	async (c) => c.json(await readApproval(c, c.req.param("approval_id"))),
);

approvals.post(
	"/:approval_id/decision",
	{
		summary: "approve or deny one frozen call; people with `approval:decide:<domain>` only",
		access: people,
		body: z.strictObject({
			decision: z.enum(["approve", "deny"]),
			tool_id: z.string().max(256),
			tool_call_id: z.string().max(128),
			input_hash: z.string().max(128),
			reason: z.string().max(1024).optional(),
		}),
		answers: { 200: approval },
	},
	async (c, { reason = null, ...decision }) => {
		const approval_id = c.req.param("approval_id");
		return c.json(
			await ofRun(c, approval_id, "write", (run, said) =>
				run.decideApproval({ ...said, approval_id, ...decision, reason }),
			),
		);
	},
);

approvals.post(
	"/:approval_id/edit",
	{
		summary:
			"replace the arguments: a new frozen call with a new hash; the old approval is superseded. 422 if they are no valid call: nothing changes",
		access: people,
		body: z.strictObject({ arguments: jsonObject }),
		answers: { 200: approval },
	},
	async (c, body) => {
		const approval_id = c.req.param("approval_id");
		return c.json(
			await ofRun(c, approval_id, "write", (run, said) =>
				run.editApproval({ ...said, approval_id, arguments: body.arguments }),
			),
		);
	},
);

approvals.post(
	"/:approval_id/links",
	{
		summary:
			"send a link to a registered approver; the token is never returned, and a repeated key mails nothing twice",
		access: { who: "caller", people: true, permission: "approval:send:*" },
		body: linkRequest,
		headers: ["Idempotency-Key"],
		answers: { 202: linkSent },
	},
	async (c, body) => c.json(await sendLink(c, c.req.param("approval_id"), body), 202),
);

/** An entry of the list as its object sees it now; undefined when it is gone or not the caller's to see. */
async function present(c: Ctx, approval_id: string): Promise<ApprovalView | undefined> {
	try {
		return await readApproval(c, approval_id);
	} catch (error) {
		if (error instanceof ApiProblem && (error.status === 404 || error.status === 403)) return undefined;
		throw error;
	}
}

/** What a caller lists: all, those of the domains that it may decide, or those that its own runs asked for. */
function listScope({ principal_id, kind, authority }: Caller): Pick<ApprovalFilter, "domains" | "requested_by"> {
	const { permissions } = authority;
	if (kind === "agent") return { requested_by: principal_id };
	if (["approval:decide:*", "approval:read:*", "runs:read:*"].some((all) => permits(permissions, all))) return {};
	const domains = permissions.flatMap((text) => {
		const [domain, action, object] = parsePermission(text) ?? [];
		const decides = (domain === "approval" || domain === "*") && (action === "decide" || action === "*");
		return decides && object !== undefined ? [object] : [];
	});
	return domains.length === 0 ? { requested_by: principal_id } : { domains };
}
