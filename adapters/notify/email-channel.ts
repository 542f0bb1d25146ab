/**
 * Delivers a message by e-mail through the platform's `send_email` binding, to registered addresses only: no argument
 * can name a new recipient. Text only: nothing a planner wrote is ever rendered as HTML. Called by the notify invoker.
 */
import type { Deadline } from "#adapters/http/deadline.ts";
import { networkFault, type Progress } from "#adapters/http/fault.ts";
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { Channel } from "./channel.ts";
import type { Message } from "./message.ts";

/** The part of the `send_email` binding that is used (`EmailMessageBuilder` in @cloudflare/workers-types). */
export interface MailBinding {
	send(mail: { from: string; to: string[]; subject: string; text: string }): Promise<{ messageId: string }>;
}

export type EmailDeps = {
	readonly mail: MailBinding | undefined;
	readonly from: string | undefined;
	readonly deadline: Deadline;
	readonly progress: Progress;
};

/** Conservative on purpose: one address, no display name, no quoting, nothing that could be two. */
const ADDRESS = /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;
/** The platform's bound on recipients of one message. */
const RECIPIENTS_MAX = 50;

/** Whether a channel's `to` is what mail can go to: one address, or several with commas between them. */
export function areAddresses(to: string): boolean {
	const all = to.split(",").map((one) => one.trim());
	return all.length <= RECIPIENTS_MAX && all.every((one) => ADDRESS.test(one));
}

export async function deliverEmail(channel: Channel, message: Message, deps: EmailDeps): Promise<InvokeOutcome> {
	const { mail, from } = deps;
	if (mail === undefined || from === undefined || !ADDRESS.test(from))
		return failed("not_configured", "this deployment sends no e-mail");
	const to = recipients(channel, message.to);
	if (to === undefined)
		return failed("invalid_arguments", "argument `to` is not an address registered with this channel");
	if (to.length > RECIPIENTS_MAX || !to.every((one) => ADDRESS.test(one))) {
		return failed("not_configured", `channel \`${channel.name}\` has no usable addresses`);
	}
	try {
		deps.progress.sent = true;
		const sent = await deps.deadline.race(
			mail.send({ from, to, subject: message.subject ?? "Notification", text: mailText(message) }),
		);
		const message_id = typeof sent?.messageId === "string" ? sent.messageId : null;
		const facts = [
			`e-mail accepted for ${to.length} recipient${to.length === 1 ? "" : "s"} of channel ${channel.name}`,
		];
		return { kind: "success", result: { delivered: true, channel: channel.name, message_id }, facts, notes: [] };
	} catch {
		if (deps.deadline.stopped !== undefined) return networkFault(deps.deadline, deps.progress, true);
		// The binding's message may hold addresses; and it does not say whether the mail was taken before it failed.
		return failed("delivery_failed", "the e-mail was not accepted", { effect: "possible", retryable: true });
	}
}

/** The registered spelling goes on the envelope, never the planner's. Undefined when the address is not registered. */
function recipients(channel: Channel, asked: string | undefined): string[] | undefined {
	const registered = (channel.to ?? "").split(",").map((one) => one.trim());
	if (asked === undefined) return registered;
	const found = registered.find((one) => one.toLowerCase() === asked.trim().toLowerCase());
	return found === undefined ? undefined : [found];
}

function mailText(message: Message): string {
	const details = Object.entries(message.details).map(
		([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
	);
	return details.length === 0 ? message.message : `${message.message}\n\n${details.join("\n")}`;
}
