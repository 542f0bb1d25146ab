/** Deciding over the API and sending links: what a body may say, who may be mailed, and where a token never appears (A15, A17). */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { app } from "../../workers/api/app.ts";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import { type Payments, payments } from "../support/payments.ts";

let tenant: TestTenant;
let pay: Payments;
beforeAll(async () => {
	tenant = await seedTenant();
	pay = await payments(tenant);
});

describe("decisions over the API", () => {
	it("bring no arguments, name all three identifiers and take no unknown member (A15)", async () => {
		const before = (await pay.ledger()).length;
		const approval = await pay.pending();
		const { tool_id, tool_call_id, input_hash } = approval;
		const decide = (body: object) =>
			call("POST", `/v1/approvals/${approval.approval_id}/decision`, body, tenant.approver);
		const good = { decision: "approve", tool_id, tool_call_id, input_hash };
		for (const bad of [
			{ ...good, arguments: { to: "B" } },
			{ ...good, decision: "yes" },
			{ ...good, decision: true },
			{ decision: "approve" },
			{ ...good, reason: null },
		]) {
			expect((await decide(bad)).status).toBe(422);
		}
		for (const other of [
			{ ...good, input_hash: "0".repeat(64) },
			{ ...good, tool_id: "echo" },
			{ ...good, tool_call_id: "call_x" },
		]) {
			expect((await decide(other)).body.code).toBe("approval_mismatch");
		}
		expect((await pay.ledger()).length).toBe(before);
		expect(
			(await call("GET", "/v1/approvals?status=pending&limit=100", undefined, tenant.approver)).body.data,
		).toContainEqual(approval);
		expect((await decide(good)).status).toBe(200);
		await vi.waitFor(async () => expect((await pay.ledger()).length).toBe(before + 1), { timeout: 5_000 });
	});
});

describe("many decisions at once (A09)", () => {
	const many = async (decisions: readonly string[]) => {
		const before = (await pay.ledger()).length;
		const { approval_id, tool_id, tool_call_id, input_hash } = await pay.pending();
		const answers = await Promise.all(
			decisions.map((decision) =>
				call(
					"POST",
					`/v1/approvals/${approval_id}/decision`,
					{ decision, tool_id, tool_call_id, input_hash },
					tenant.approver,
				),
			),
		);
		const winners = answers.filter(({ status }) => status === 200);
		const losers = answers.filter(({ status }) => status === 409);
		expect([winners.length, losers.length]).toEqual([1, decisions.length - 1]);
		for (const { body } of losers) expect(body.code).toBe("already_decided");
		const after = await call("GET", `/v1/approvals/${approval_id}`, undefined, tenant.approver);
		expect(after.body.decisions).toHaveLength(1);
		return { before, decided: after.body.decisions[0].decision as string };
	};

	it("twenty times yes pays once", async () => {
		const { before } = await many(Array.from({ length: 20 }, () => "approve"));
		await vi.waitFor(async () => expect((await pay.ledger()).length).toBe(before + 1), { timeout: 5_000 });
	});

	it("ten yes and ten no do what the winner said", async () => {
		const { before, decided } = await many(Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? "deny" : "approve")));
		const paid = decided === "approve" ? 1 : 0;
		await vi.waitFor(async () => expect((await pay.ledger()).length).toBe(before + paid), { timeout: 5_000 });
	});
});

describe("sending", () => {
	const send202 = (approval: { approval_id: string }, body: object, key: string) =>
		call("POST", `/v1/approvals/${approval.approval_id}/links`, body, key);

	it("mails a registered approver, and the token is in no answer and no row", async () => {
		const approval = await pay.pending();
		const sent = await send202(approval, { channel: "owner", to: "Approver@Example.com" }, tenant.operator);
		expect(sent.status).toBe(202);
		expect(Object.keys(sent.body).sort()).toEqual(["expires_at", "link_id"]);
		expect(sent.text).not.toContain("/a/");
		const { results } = await env.DB.prepare("SELECT * FROM audit WHERE tenant_id = ?1 AND action = 'approval.link'")
			.bind(tenant.tenant_id)
			.all();
		expect(results.length).toBe(2);
		expect(JSON.stringify(results)).not.toMatch(/[0-9a-f]{128}/);
	});

	it.each([
		["somebody unknown", { channel: "owner", to: "nobody@example.com" }],
		["somebody who may not decide", { channel: "owner", to: "reader@example.com" }],
		["an unknown channel", { channel: "nowhere", to: "approver@example.com" }],
		["two addresses", { channel: "owner", to: "approver@example.com, thief@evil.test" }],
	])("refuses %s", async (_what, body) => {
		expect((await send202(await pay.pending(), body, tenant.operator)).status).toBe(422);
	});

	it("needs `approval:send`", async () => {
		expect(
			(await send202(await pay.pending(), { channel: "owner", to: "approver@example.com" }, tenant.reader)).status,
		).toBe(403);
	});

	it("goes to the registered address, with the configured host, whatever the request says", async () => {
		const mails: { to: string; subject: string; text: string }[] = [];
		const EMAIL = { send: async (mail: (typeof mails)[number]) => void mails.push(mail) };
		const ask = async (more: object, to = "APPROVER@example.com") => {
			const { approval_id } = await pay.pending({ to: "A\u202E", memo: "x" });
			const request = new Request(`https://evil.test/v1/approvals/${approval_id}/links`, {
				method: "POST",
				headers: { authorization: `Bearer ${tenant.operator}`, "content-type": "application/json" },
				body: JSON.stringify({ channel: "owner", to }),
			});
			return app.fetch(request, { ...env, EMAIL, ...more } as never);
		};
		expect((await ask({})).status).toBe(202);
		expect(mails).toHaveLength(1);
		const [mail] = mails;
		expect(mail?.to).toBe("approver@example.com");
		expect(mail?.text).not.toContain("evil.test");
		expect(mail?.text).not.toContain("\u202E");
		const path = /https:\/\/belay\.test(\/a\/[0-9a-f]{128})\n/.exec(mail?.text ?? "")?.[1] ?? "";
		expect((await call("GET", path)).status).toBe(200);
		expect((await ask({ BELAY_PUBLIC_URL: "" })).status).toBe(503);
		const failing = {
			send: async ({ text }: { text: string }) => {
				throw new Error(text);
			},
		};
		const failed = await ask({ EMAIL: failing });
		expect(failed.status).toBe(503);
		expect(await failed.text()).not.toMatch(/[0-9a-f]{128}/);
		expect(mails).toHaveLength(1);
	});
});
