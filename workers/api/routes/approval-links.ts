/**
 * `POST /v1/approvals/:id/links`: sends an approval's link to a registered approver by e-mail. The link is made by the
 * run's object for that one person; its token goes into the mail and nowhere else: not into the answer, not into a log.
 */
import * as z from "zod";
import { D1AuthorityStore } from "#adapters/d1/d1-authority-store.ts";
import { D1Channels } from "#adapters/d1/d1-channels.ts";
import { D1Principals } from "#adapters/d1/d1-principals.ts";
import { hex } from "#core/ids.ts";
import { permits } from "#core/policy/permits.ts";
import type { Caller } from "#core/principal.ts";
import type { ApprovalView } from "#core/run/view.ts";
import { audited } from "../administer.ts";
import type { Env } from "../env.ts";
import { idempotencyKey, newIdPart, requestHash, tenantMac } from "../idempotency.ts";
import type { Ctx } from "../noun.ts";
import { linkMail } from "../pages/link-mail.ts";
import { ApiProblem, invalidField, problem } from "../problem.ts";
import { ofRun, readApproval } from "./approval-run.ts";

export const linkRequest = z.strictObject({
	/** A channel's id or name. */
	channel: z.string().min(1).max(80),
	/** The address under which the approver is registered. */
	to: z.string().min(3).max(320),
});
export const linkSent = z.object({ link_id: z.string(), expires_at: z.string() });

export async function sendLink(
	c: Ctx,
	approval_id: string,
	body: z.infer<typeof linkRequest>,
): Promise<z.infer<typeof linkSent>> {
	const { tenant_id, principal_id } = c.get("caller");
	const approval = await readApproval(c, approval_id);
	const key = idempotencyKey(c.req.header("idempotency-key"));
	const link_id = `lnk_${newIdPart(c.env, c.get("caller"), `POST /v1/approvals/${approval_id}/links`, key)}`;
	const seed = (one: string): string => hex(tenantMac(c.env, tenant_id, ["link", principal_id, approval_id, one]));
	const request = key === null ? undefined : { seed: seed(key), hash: requestHash(body) };
	if (request !== undefined) {
		const sent = await ofRun(c, approval_id, "read", (run, said) =>
			run.linkOfRequest({ ...said, approval_id, request }),
		);
		if (sent !== null) return { link_id, ...sent };
	}
	if (approval.status !== "pending") throw problem("already_decided", `the approval is ${approval.status}`);
	const channel = await new D1Channels(c.env.DB).find(tenant_id, body.channel);
	if (channel === undefined)
		throw invalidField("/channel", "unknown_name", "there is no such channel", "a registered channel");
	if (channel.kind !== "email") {
		throw invalidField(
			"/channel",
			"enum_out_of_range",
			`links are not sent by ${channel.kind} yet`,
			"a channel of kind `email`",
		);
	}
	const base = publicUrl(c.env);
	const { approver, address } = await approverAt(c.env, tenant_id, body.to, approval);
	return audited(
		c,
		{
			action: "approval.link",
			about: { approval_id, channel: channel.channel_id, approver: approver.principal_id, link_id },
		},
		async () => {
			const { token, expires_at, tool } = await ofRun(c, approval_id, "write", (run) =>
				run.issueLink({ v: 1, tenant_id, approval_id, approver, view_only: false, ...(request && { request }) }),
			);
			const told = (taken: boolean) =>
				request && ofRun(c, approval_id, "write", (run) => run.linkMailed({ v: 1, token, taken }));
			const mail = linkMail({ approval, tool, url: `${base}/a/${token}`, expires_at, locale: channel.locale });
			try {
				await send(c, address, mail);
			} catch (error) {
				// said or not, the caller is told what really went wrong
				await told(false)?.catch(() => {});
				throw error;
			}
			await told(true);
			return { link_id, expires_at };
		},
	);
}

/**
 * The person behind an address, who must be able to decide this approval, and the address as it is registered: the asked
 * spelling may look the same and lead elsewhere. Unknown, foreign and not permitted are one answer: sending links must
 * not become a way to ask who is registered.
 */
async function approverAt(
	env: Env,
	tenant_id: string,
	asked: string,
	approval: ApprovalView,
): Promise<{ approver: Caller; address: string }> {
	const authorities = new D1AuthorityStore(env.DB);
	for (const { principal_id, kind, name, email } of await new D1Principals(env.DB).peopleAt(tenant_id, asked)) {
		const authority = await authorities.resolve(tenant_id, principal_id, 0);
		if (authority === undefined || email === null) continue;
		if (approval.approvers.length > 0 && approval.approvers.every((needed) => permits(authority.permissions, needed))) {
			return { approver: { tenant_id, principal_id, kind, name, authority }, address: email };
		}
	}
	throw invalidField(
		"/to",
		"unknown_name",
		"not the address of a registered approver of this call",
		"an approver's registered address",
	);
}

async function send(c: Ctx, to: string, mail: { subject: string; text: string }): Promise<void> {
	try {
		await c.env.EMAIL.send({ from: sender(c.env), to, ...mail });
	} catch (error) {
		if (error instanceof ApiProblem) throw error;
		// the binding's message may quote the mail, and the mail holds the token
		console.error(JSON.stringify({ level: "warn", trace_id: c.get("trace_id"), what: "link mail was not accepted" }));
		throw problem("delivery_failed", "the mail was not accepted; the link was not delivered", { retry_after_s: 30 });
	}
}

/**
 * Only the configured address goes into a mail. The request's own host is the sender's to choose, and a link to a host of
 * theirs would bring them the approver's token.
 */
function publicUrl(env: Env): string {
	if (URL.canParse(env.BELAY_PUBLIC_URL)) return new URL(env.BELAY_PUBLIC_URL).origin;
	throw problem("delivery_failed", "this deployment has no public address, so it sends no links");
}

function sender(env: Env): string {
	return env.BELAY_MAIL_FROM || `approvals@${new URL(publicUrl(env)).hostname}`;
}
