import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { type Channel, sealChannelSecret } from "#adapters/notify/channel.ts";
import type { MailBinding } from "#adapters/notify/email-channel.ts";
import { NotifyInvoker, type NotifyInvokerDeps } from "#adapters/notify/notify-invoker.ts";
import { signWebhook, webhookKey } from "#adapters/notify/webhook-signature.ts";
import { readMasters } from "#adapters/secrets/derive.ts";
import { SecretSealer } from "#adapters/secrets/secret-sealer.ts";
import type { JsonObject } from "#core/json.ts";
import type { InvokeOutcome } from "#core/outcome.ts";
import { CALL, invocationOf, NOW, ok, redirect, World } from "./world.ts";

const SECRET = `whsec_${Buffer.alloc(24, 9).toString("base64")}`;
const sealer = new SecretSealer(readMasters(Buffer.alloc(32, 5).toString("base64")), "channels");
const hook = async (over: Partial<Channel> = {}): Promise<Channel> => ({
	channel_id: "chn_1",
	name: "ops",
	kind: "webhook",
	url: "https://hooks.test/in",
	to: null,
	secret: await sealChannelSecret(sealer, "ten_a", "chn_1", SECRET),
	...over,
});
const mailChannel: Channel = {
	channel_id: "chn_2",
	name: "ops",
	kind: "email",
	url: null,
	to: "Ann@example.com, bob@example.com",
	secret: null,
};

type Mail = Parameters<MailBinding["send"]>[0];

async function notify(
	channel: Channel | undefined,
	args: JsonObject,
	over: Partial<NotifyInvokerDeps> & { timeout_ms?: number; world?: World } = {},
): Promise<{ outcome: InvokeOutcome; mails: Mail[]; world: World }> {
	const mails: Mail[] = [];
	const world = over.world ?? new World({ "hooks.test": ok });
	const invoker = new NotifyInvoker({
		channels: { find: async (tenant, name) => (tenant === "ten_a" && name === "ops" ? channel : undefined) },
		sealer,
		fetch: world.fetch,
		rules: { own_hosts: ["belay.test"], exemptions: [] },
		clock: () => NOW,
		mail: {
			send: async (mail) => {
				mails.push(mail);
				return { messageId: "<m1@mail>" };
			},
		},
		from: "belay@example.com",
		...over,
	});
	const invocation = invocationOf({
		implementation: { kind: "notify", channel: "ops" },
		args,
		effect: "external",
		invocation: { timeout_ms: over.timeout_ms ?? 2_000 },
	});
	return { outcome: await invoker.invoke(invocation, new AbortController().signal), mails, world };
}

test("the signature is the Standard Webhooks one (the specification's own vector)", () => {
	const key = webhookKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
	expect(key && signWebhook(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, '{"test": 2432232314}')).toBe(
		"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	);
	for (const bad of ["", "whsec_", "whsec_c2hvcnQ=", "not base64!", `whsec_${Buffer.alloc(65).toString("base64")}`])
		expect(webhookKey(bad)).toBeUndefined();
});

test("a webhook message is signed JSON that a receiver can verify, with the call as its id", async () => {
	const { outcome, world } = await notify(await hook(), { message: "stock is low", subject: "Stock", sku: "A-1" });
	expect(outcome).toMatchObject({
		kind: "success",
		result: { delivered: true, channel: "ops", message_id: CALL },
		facts: ["HTTP 200 from the webhook of channel ops"],
	});
	const seen = world.seen[0];
	expect(JSON.parse(seen?.body ?? "")).toEqual({
		type: "tool.notification",
		timestamp: "2026-11-30T12:00:00.000Z",
		data: {
			run_id: `run_${"a".repeat(32)}`,
			tool_call_id: CALL,
			tool_id: "the_tool",
			subject: "Stock",
			message: "stock is low",
			details: { sku: "A-1" },
		},
	});
	const { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signature } = seen?.headers ?? {};
	expect([id, at]).toEqual([CALL, String(NOW / 1_000)]);
	const mac = createHmac("sha256", Buffer.alloc(24, 9)).update(`${id}.${at}.${seen?.body}`).digest("base64");
	expect(signature).toBe(`v1,${mac}`);
});

test("the webhook's address stands under the guard, and is never followed elsewhere", async () => {
	for (const url of [
		"http://127.0.0.1/",
		"http://169.254.169.254/",
		"https://belay.test/hooks/x",
		"https://u:p@hooks.test/",
		"nonsense",
	]) {
		const { outcome, world } = await notify(await hook({ url }), { message: "x" });
		expect(outcome, url).toMatchObject({ code: "security_blocked", effect: "none" });
		expect(world.seen).toEqual([]);
	}
	for (const status of [302, 307]) {
		const world = new World({ "hooks.test": () => redirect(status, "https://hooks.test/other") });
		expect((await notify(await hook(), { message: "x" }, { world })).outcome).toMatchObject({
			code: "redirect_refused",
		});
		expect(world.seen).toHaveLength(1);
	}
});

test("a secret that does not open never becomes an unsigned message", async () => {
	const foreign = await sealChannelSecret(sealer, "ten_b", "chn_1", SECRET);
	for (const secret of [
		foreign,
		"v1.junk",
		await sealChannelSecret(sealer, "ten_a", "chn_1", "not a webhook secret"),
	]) {
		const { outcome, world } = await notify(await hook({ secret }), { message: "x" });
		expect(outcome).toMatchObject({ code: "not_configured", effect: "none" });
		expect(world.seen).toEqual([]);
	}
	const { world } = await notify(await hook({ secret: null }), { message: "x" });
	expect(world.seen[0]?.headers["webhook-signature"]).toBeUndefined();
});

test("webhook answers: what may have been delivered", async () => {
	const answered = async (status: number) =>
		(
			await notify(
				await hook(),
				{ message: "x" },
				{
					world: new World({
						"hooks.test": () => new Response("inner text", { status, headers: { "retry-after": "2" } }),
					}),
				},
			)
		).outcome;
	expect(await answered(410)).toEqual({
		kind: "failed",
		code: "delivery_failed",
		message: "the webhook answered 410",
		effect: "none",
		retryable: false,
		http_status: 410,
		retry_after_ms: 2_000,
	});
	expect(await answered(502)).toMatchObject({ code: "delivery_failed", effect: "possible", retryable: true });
	expect(await answered(429)).toMatchObject({ code: "rate_limited", effect: "none", retry_after_ms: 2_000 });
	expect((await notify(await hook(), { message: "x" }, { world: new World({}) })).outcome).toMatchObject({
		code: "connection_lost",
		effect: "possible",
	});
	const world = new World({ "hooks.test": () => new Promise<Response>(() => undefined) });
	expect((await notify(await hook(), { message: "x" }, { world, timeout_ms: 30 })).outcome).toEqual({
		kind: "timeout",
		phase: "headers",
		effect: "possible",
	});
});

test("e-mail goes to the channel's own addresses, or to one of them", async () => {
	const all = await notify(mailChannel, { message: "hello", subject: "Hi", n: 3 });
	expect(all.outcome).toMatchObject({
		kind: "success",
		result: { delivered: true, channel: "ops", message_id: "<m1@mail>" },
	});
	expect(all.mails).toEqual([
		{ from: "belay@example.com", to: ["Ann@example.com", "bob@example.com"], subject: "Hi", text: "hello\n\nn: 3" },
	]);
	const one = await notify(mailChannel, { message: "hello", to: "ann@EXAMPLE.com" });
	expect(one.mails[0]).toMatchObject({ to: ["Ann@example.com"], subject: "Notification" });
});

test("no argument names a new recipient or writes a header", async () => {
	for (const to of [
		"eve@evil.test",
		"ann@example.com, eve@evil.test",
		"ann@example.com\r\nBcc: eve@evil.test",
		"Ann <ann@example.com>",
		["ann@example.com"],
		{ a: 1 },
	]) {
		const { outcome, mails } = await notify(mailChannel, { message: "x", to });
		expect(outcome, JSON.stringify(to)).toMatchObject({ code: "invalid_arguments", effect: "none" });
		expect(mails).toEqual([]);
	}
	for (const subject of [
		"a\r\nBcc: eve@evil.test",
		"a\nb",
		"a\rb",
		"a\u0000",
		"a\u2028b",
		"a\u0085b",
		"x".repeat(251),
		7,
	]) {
		const { outcome, mails } = await notify(mailChannel, { message: "x", subject });
		expect(outcome, JSON.stringify(subject)).toMatchObject({ code: "invalid_arguments", effect: "none" });
		expect(mails).toEqual([]);
	}
	const stored = await notify({ ...mailChannel, to: "ann@example.com\r\nBcc: eve@evil.test" }, { message: "x" });
	expect(stored.outcome).toMatchObject({ code: "not_configured" });
});

test("a message is required, and inherited names are none", async () => {
	for (const args of [
		{},
		{ message: "" },
		{ message: "  " },
		{ message: 7 },
		{ message: "x".repeat(20_001) },
	] as JsonObject[]) {
		expect((await notify(mailChannel, args)).outcome).toMatchObject({ code: "invalid_arguments" });
	}
	expect((await notify(mailChannel, { message: "x", toString: "y" })).mails[0]?.text).toBe("x\n\ntoString: y");
});

test("mail that fails is unknown, and its reason stays inside", async () => {
	const mail: MailBinding = { send: async () => Promise.reject(new Error("550 ann@example.com unknown")) };
	const { outcome } = await notify(mailChannel, { message: "x" }, { mail });
	expect(outcome).toEqual({
		kind: "failed",
		code: "delivery_failed",
		message: "the e-mail was not accepted",
		effect: "possible",
		retryable: true,
	});
	const stalled = await notify(
		mailChannel,
		{ message: "x" },
		{ mail: { send: () => new Promise(() => undefined) }, timeout_ms: 30 },
	);
	expect(stalled.outcome).toMatchObject({ kind: "timeout", effect: "possible" });
});

test("what is not configured says so and sends nothing", async () => {
	expect((await notify(undefined, { message: "x" })).outcome).toMatchObject({
		code: "not_configured",
		message: "channel `ops` does not exist",
	});
	expect((await notify(mailChannel, { message: "x" }, { mail: undefined })).outcome).toMatchObject({
		code: "not_configured",
	});
	expect((await notify(mailChannel, { message: "x" }, { from: undefined })).outcome).toMatchObject({
		code: "not_configured",
	});
	expect((await notify({ ...mailChannel, to: null }, { message: "x" })).outcome).toMatchObject({
		code: "not_configured",
	});
	expect((await notify({ ...mailChannel, kind: "slack" }, { message: "x" })).outcome).toMatchObject({
		code: "not_configured",
	});
});

test("where a resolver is configured, a webhook whose name leads inside gets nothing, nor one that nobody can resolve", async () => {
	const inside = await notify(await hook(), { message: "m" }, { resolve: async () => "inside" });
	expect(inside.outcome).toMatchObject({ kind: "failed", code: "security_blocked", effect: "none" });
	const unknown = await notify(await hook(), { message: "m" }, { resolve: async () => "unknown" });
	expect(unknown.outcome).toMatchObject({ kind: "failed", code: "connection_lost", effect: "none" });
	expect([...inside.world.seen, ...unknown.world.seen]).toEqual([]);
});
