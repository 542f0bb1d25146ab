/**
 * `/v1/channels`: where approval notices and links go. A channel's secret is sealed at rest and never answered. The URL
 * of a chat channel carries a credential in its path, so it is answered as its origin only.
 */
import * as z from "zod";
import { CHANNEL_KINDS, type Channel, channel, D1Channels } from "#adapters/d1/d1-channels.ts";
import { parseUrl } from "#adapters/http/url.ts";
import { sealChannelSecret } from "#adapters/notify/channel.ts";
import { areAddresses } from "#adapters/notify/email-channel.ts";
import { readMasters } from "#adapters/secrets/derive.ts";
import { SecretSealer } from "#adapters/secrets/secret-sealer.ts";
import { judgeUrl } from "#core/normalize/address-guard.ts";
import { registrationRules } from "../address-rules.ts";
import { audited } from "../administer.ts";
import { idempotencyKey, newIdPart } from "../idempotency.ts";
import { type Ctx, noun } from "../noun.ts";
import { invalidField, notFound, problem } from "../problem.ts";
import { listOf } from "../wire/envelopes.ts";

const manage = { who: "caller", permission: "channels:manage:*", administrative: true } as const;
const channelView = channel.omit({ secret: true });

const newChannel = z
	.strictObject({
		kind: z.enum(CHANNEL_KINDS),
		name: channel.shape.name,
		url: z.string().max(2048).optional(),
		to: z.string().max(320).optional(),
		secret: z.string().min(1).max(4096).optional(),
		locale: z.string().max(35).optional(),
	})
	.refine((one) => (one.kind === "email") === (one.url === undefined) || one.kind === "telegram", {
		path: ["url"],
		error: "a url for chat and webhook channels, none for e-mail",
	})
	.refine((one) => one.kind !== "email" || areAddresses(one.to ?? ""), {
		path: ["to"],
		error: "one e-mail address, or several with commas between them",
	});

export const channels = noun("/v1/channels", "Channels");

channels.post(
	"/",
	{
		summary: "make a channel",
		access: manage,
		body: newChannel,
		headers: ["Idempotency-Key"],
		answers: { 201: channelView },
	},
	async (c, body) => {
		const caller = c.get("caller");
		if (body.url !== undefined) requirePublic(c, body.url);
		const key = idempotencyKey(c.req.header("idempotency-key"));
		const channel_id = `ch_${newIdPart(c.env, caller, "POST /v1/channels", key)}`;
		const sealer = new SecretSealer(readMasters(c.env.BELAY_MASTER_SECRET), "channels");
		const { secret } = body;
		const one: Channel = {
			channel_id,
			kind: body.kind,
			name: body.name,
			url: body.url ?? null,
			to: body.to ?? null,
			secret: secret === undefined ? null : await sealChannelSecret(sealer, caller.tenant_id, channel_id, secret),
			locale: body.locale ?? null,
			created_at: new Date().toISOString(),
		};
		const stored = await audited(
			c,
			{ action: "channel.create", about: { channel_id, kind: one.kind, name: one.name } },
			async () => {
				const rows = new D1Channels(c.env.DB);
				if (await rows.insert(caller.tenant_id, one)) return one;
				const earlier = await rows.find(caller.tenant_id, channel_id);
				if (earlier === undefined) throw problem("version_conflict", "a channel of this name exists");
				const same =
					earlier.kind === one.kind && earlier.name === one.name && earlier.url === one.url && earlier.to === one.to;
				if (!same) throw problem("idempotency_conflict", "the key made another channel");
				return earlier;
			},
		);
		return c.json(viewOf(stored), 201);
	},
);

channels.get(
	"/",
	{
		summary: "list channels",
		access: { who: "caller", permission: "channels:manage:*" },
		answers: { 200: listOf(channelView) },
	},
	async (c) => {
		const found = await new D1Channels(c.env.DB).list(c.get("caller").tenant_id);
		return c.json({ data: found.map(viewOf), next_cursor: null });
	},
);

channels.delete("/:channel_id", { summary: "delete a channel", access: manage, answers: { 204: null } }, async (c) => {
	const channel_id = c.req.param("channel_id");
	const { tenant_id } = c.get("caller");
	const gone = await audited(c, { action: "channel.delete", about: { channel_id: channel_id.slice(0, 80) } }, () =>
		new D1Channels(c.env.DB).delete(tenant_id, channel_id),
	);
	if (!gone) throw notFound();
	return c.body(null, 204);
});

function viewOf(one: Omit<Channel, "secret">): z.infer<typeof channelView> {
	const { channel_id, kind, name, url, to, locale, created_at } = one;
	return { channel_id, kind, name, url: url === null ? null : new URL(url).origin, to, locale, created_at };
}

function requirePublic(c: Ctx, url: string): void {
	const parts = parseUrl(url);
	const verdict = parts === undefined ? undefined : judgeUrl(parts, registrationRules(c));
	if (verdict?.ok && parts?.protocol === "https:") return;
	throw invalidField("/url", "security_violation", "the url is not a public https address", "a public https url");
}
