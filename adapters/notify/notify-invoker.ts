/**
 * Invokes tools of kind `notify`: one message to one registered channel. A notification is always an act, whatever the
 * tool declares as its effect. It decides no permission, repeats nothing and never throws. Only the choke point calls it.
 */
import { Deadline } from "#adapters/http/deadline.ts";
import type { Fetch } from "#adapters/http/egress.ts";
import { networkFault, type Progress } from "#adapters/http/fault.ts";
import type { Resolve } from "#adapters/http/resolver.ts";
import type { SecretSealer } from "#adapters/secrets/secret-sealer.ts";
import type { AddressRules } from "#core/normalize/address-guard.ts";
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { CancelSignal, Clock, Invocation, ToolInvoker } from "#core/ports.ts";
import { type ChannelRows, openChannelSecret } from "./channel.ts";
import { deliverEmail, type MailBinding } from "./email-channel.ts";
import { readMessage } from "./message.ts";
import { deliverWebhook } from "./webhook-channel.ts";

export type NotifyInvokerDeps = {
	readonly channels: ChannelRows;
	/** Made for purpose `channels`. */
	readonly sealer: SecretSealer;
	readonly fetch: Fetch;
	readonly rules: AddressRules;
	readonly clock: Clock;
	/** Where a resolver is configured: asked where a webhook's name leads. */
	readonly resolve?: Resolve | undefined;
	/** The `send_email` binding and the address it sends from; without them e-mail channels answer `not_configured`. */
	readonly mail: MailBinding | undefined;
	readonly from: string | undefined;
};

export class NotifyInvoker implements ToolInvoker {
	readonly #deps: NotifyInvokerDeps;

	constructor(deps: NotifyInvokerDeps) {
		this.#deps = deps;
	}

	async invoke(invocation: Invocation, signal: CancelSignal): Promise<InvokeOutcome> {
		const { implementation } = invocation.descriptor;
		if (implementation.kind !== "notify") return failed("internal", "this tool is not a notify tool");
		const deadline = new Deadline(invocation.timeout_ms, signal);
		const progress: Progress = { phase: "headers", sent: false };
		try {
			return await this.#deliver(invocation, implementation.channel, deadline, progress);
		} catch {
			if (deadline.stopped !== undefined) return networkFault(deadline, progress, true);
			return failed("internal", "the message could not be sent", { effect: progress.sent ? "possible" : "none" });
		} finally {
			deadline.dispose();
		}
	}

	async #deliver(invocation: Invocation, name: string, deadline: Deadline, progress: Progress): Promise<InvokeOutcome> {
		const { channels, sealer, fetch, rules, clock, mail, from, resolve } = this.#deps;
		const read = readMessage(invocation.arguments);
		if (!read.ok) return failed("invalid_arguments", read.reason);
		const channel = await deadline.race(channels.find(invocation.tenant_id, name));
		if (channel === undefined) return failed("not_configured", `channel \`${name}\` does not exist`);
		if (channel.kind === "email") return deliverEmail(channel, read.message, { mail, from, deadline, progress });
		if (channel.kind !== "webhook")
			return failed("not_configured", `channels of kind \`${channel.kind}\` carry no tool messages`);
		const secret = await openChannelSecret(sealer, invocation.tenant_id, channel);
		// A secret that does not open must not turn into an unsigned message.
		if (secret === undefined && channel.secret !== null)
			return failed("not_configured", `the secret of channel \`${channel.name}\` does not open`);
		return deliverWebhook(channel, secret, read.message, invocation, {
			fetch,
			rules,
			deadline,
			progress,
			resolve,
			now: clock(),
		});
	}
}
