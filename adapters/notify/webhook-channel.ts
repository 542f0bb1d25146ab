/**
 * Delivers a message to a webhook: signed JSON through the guarded egress, never redirected. The id is the call's, the
 * same on every attempt, so a receiver drops repeats. Called by the notify invoker.
 */
import type { Deadline } from "#adapters/http/deadline.ts";
import { type Fetch, send } from "#adapters/http/egress.ts";
import type { Progress } from "#adapters/http/fault.ts";
import type { Resolve } from "#adapters/http/resolver.ts";
import { retryAfterMs } from "#adapters/http/retry-after.ts";
import { Scrubber } from "#adapters/http/scrubber.ts";
import { traceparent } from "#adapters/http/traceparent.ts";
import type { AddressRules } from "#core/normalize/address-guard.ts";
import { failed, type InvokeOutcome } from "#core/outcome.ts";
import type { Invocation } from "#core/ports.ts";
import type { Channel } from "./channel.ts";
import type { Message } from "./message.ts";
import { signWebhook, webhookKey } from "./webhook-signature.ts";

export type WebhookDeps = {
	readonly fetch: Fetch;
	readonly rules: AddressRules;
	readonly deadline: Deadline;
	readonly progress: Progress;
	readonly now: number;
	readonly resolve?: Resolve | undefined;
};

/** `secret`: the channel's opened secret; undefined for a channel without one, whose messages are then unsigned. */
export async function deliverWebhook(
	channel: Channel,
	secret: string | undefined,
	message: Message,
	invocation: Invocation,
	deps: WebhookDeps,
): Promise<InvokeOutcome> {
	if (message.to !== undefined)
		return failed("invalid_arguments", "a webhook channel has one receiver; leave `to` out");
	if (channel.url === null) return failed("not_configured", `channel \`${channel.name}\` has no url`);
	const key = secret === undefined ? undefined : webhookKey(secret);
	if (secret !== undefined && key === undefined)
		return failed("not_configured", `the secret of channel \`${channel.name}\` is not a webhook secret`);

	const id = invocation.tool_call_id;
	const timestamp = Math.floor(deps.now / 1_000);
	const body = payload(message, invocation, deps.now);
	const headers = new Headers({
		"content-type": "application/json",
		"user-agent": "belay",
		"webhook-id": id,
		"webhook-timestamp": String(timestamp),
	});
	if (key !== undefined) headers.set("webhook-signature", signWebhook(key, id, timestamp, body));
	const trace = traceparent(invocation);
	if (trace !== undefined) headers.set("traceparent", trace);
	const scrubber = new Scrubber(); // nothing of the answer is shown, so there is nothing to take out of it
	const request = { url: channel.url, method: "POST", headers, body, writes: true, redirects: "refuse" as const };
	const sent = await send(request, { ...deps, scrubber });
	if (!sent.ok) return sent.outcome;
	const { response } = sent.arrival;
	response.body?.cancel().catch(() => undefined);
	return response.ok ? delivered(channel, id, response.status) : undelivered(response, deps.now);
}

function payload(message: Message, invocation: Invocation, now: number): string {
	const data = {
		run_id: invocation.run_id,
		tool_call_id: invocation.tool_call_id,
		tool_id: invocation.descriptor.tool_id,
		...(message.subject === undefined ? {} : { subject: message.subject }),
		message: message.message,
		...(Object.keys(message.details).length === 0 ? {} : { details: message.details }),
	};
	return JSON.stringify({ type: "tool.notification", timestamp: new Date(now).toISOString(), data });
}

function delivered(channel: Channel, id: string, status: number): InvokeOutcome {
	return {
		kind: "success",
		result: { delivered: true, channel: channel.name, message_id: id },
		facts: [`HTTP ${status} from the webhook of channel ${channel.name}`],
		notes: [],
		http_status: status,
	};
}

function undelivered(response: Response, now: number): InvokeOutcome {
	const wait = retryAfterMs(response.headers.get("retry-after"), now);
	const { status } = response;
	return failed(status === 429 ? "rate_limited" : "delivery_failed", `the webhook answered ${status}`, {
		effect: status >= 500 ? "possible" : "none",
		retryable: status === 429 || status >= 500,
		http_status: status,
		...(wait === undefined ? {} : { retry_after_ms: wait }),
	});
}
