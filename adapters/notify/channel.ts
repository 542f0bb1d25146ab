/**
 * A notification channel as invokers see it. Rows come through `ChannelRows`, which D1 implements; the secret is stored
 * sealed and opened here for one message. It sends nothing. Called by the notify invoker.
 */
import type { SecretSealer } from "#adapters/secrets/secret-sealer.ts";

export type Channel = {
	readonly channel_id: string;
	readonly name: string;
	/** Kinds other than `webhook` and `email` carry no tool messages: they are answered `not_configured`. */
	readonly kind: string;
	readonly url: string | null;
	/** E-mail: the registered address, or several separated by commas. */
	readonly to: string | null;
	/** Sealed, as `sealChannelSecret` wrote it; null when the channel has none. */
	readonly secret: string | null;
};

export interface ChannelRows {
	/** By `channel_id` or by `name`, within the tenant. */
	find(tenant_id: string, id_or_name: string): Promise<Channel | undefined>;
}

/** What to write into the channel's row. The sealer must be made for purpose `channels`. */
export function sealChannelSecret(
	sealer: SecretSealer,
	tenant_id: string,
	channel_id: string,
	secret: string,
): Promise<string> {
	return sealer.seal({ tenant_id, name: channel_id, version: 1 }, secret);
}

export function openChannelSecret(
	sealer: SecretSealer,
	tenant_id: string,
	channel: Channel,
): Promise<string | undefined> {
	return sealer.open({ tenant_id, name: channel.channel_id, version: 1 }, channel.secret ?? "");
}
