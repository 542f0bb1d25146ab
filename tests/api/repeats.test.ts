/** `Idempotency-Key` where something is made: what a repeat gets, and keys that were chosen to meet another's. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { app } from "../../workers/api/app.ts";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import { type Payments, payments } from "../support/payments.ts";

let tenant: TestTenant;
let pay: Payments;

beforeAll(async () => {
	tenant = await seedTenant();
	pay = await payments(tenant);
	const channel = { kind: "email", name: "owner", to: "approver@example.com" };
	await call("POST", "/v1/channels", channel, tenant.operator);
});

describe("keys of decisions and of messages", () => {
	it("do not meet, however they are spelled", async () => {
		const goal = { goal: "time", planner: { kind: "external" } };
		const { run_id } = (await call("POST", "/v1/runs", goal, tenant.agent)).body;
		const keyed = (path: string, body: object, key: string) =>
			call("POST", `/v1/runs/${run_id}/${path}`, body, tenant.agent, { "idempotency-key": key });
		expect((await keyed("messages", { content: "hello" }, "a")).status).toBe(200);
		const decision = { content: "done" };
		const decided = await keyed("decisions", decision, "say:a");
		expect([decided.status, decided.body.run?.status]).toEqual([200, "completed"]);
		expect((await keyed("messages", { content: "more" }, "decide:say:a")).status).toBe(200);
		const repeated = await keyed("decisions", decision, "say:a");
		expect([repeated.status, repeated.body.run?.seq]).toEqual([200, expect.any(Number)]);
		expect((await keyed("decisions", { content: "other" }, "say:a")).body.code).toBe("idempotency_conflict");
	});
});

describe("keys of links", () => {
	type Mail = { to: string; text: string };
	const mails: Mail[] = [];
	const tokens = () => mails.map(({ text }) => /\/a\/([0-9a-f]{128})/.exec(text)?.[1]);
	const good = { send: async (mail: Mail) => void mails.push(mail) };
	const bad = {
		send: async () => {
			throw new Error("no");
		},
	};
	type Sent = { approval_id: string; idem?: string; to?: string; key?: string; EMAIL?: object };
	const link = async ({
		approval_id,
		idem,
		to = "approver@example.com",
		key = tenant.operator,
		EMAIL = good,
	}: Sent) => {
		const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
		const request = new Request(`https://belay.test/v1/approvals/${approval_id}/links`, {
			method: "POST",
			headers: idem === undefined ? headers : { ...headers, "idempotency-key": idem },
			body: JSON.stringify({ channel: "owner", to }),
		});
		const answer = await app.fetch(request, { ...env, EMAIL } as never);
		return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
	};

	it("mail once: a repeat gets the first answer, also when the approval has been decided since", async () => {
		mails.length = 0;
		const approval = await pay.pending();
		const { approval_id } = approval;
		const first = await link({ approval_id, idem: "k1" });
		expect(first.status).toBe(202);
		expect(await link({ approval_id, idem: "k1" })).toEqual(first);
		expect(mails).toHaveLength(1);
		const other = await link({ approval_id, idem: "k2" });
		expect(other.body.link_id).not.toBe(first.body.link_id);
		expect(new Set(tokens()).size).toBe(2);
		const { tool_id, tool_call_id, input_hash } = approval;
		const deny = { decision: "deny", tool_id, tool_call_id, input_hash };
		expect((await call("POST", `/v1/approvals/${approval_id}/decision`, deny, tenant.approver)).status).toBe(200);
		expect(await link({ approval_id, idem: "k1" })).toEqual(first);
		expect((await link({ approval_id, idem: "k3" })).body.code).toBe("already_decided");
		expect(mails).toHaveLength(2);
	});

	it("are one request's: another body is told, another approval and another person have their own", async () => {
		mails.length = 0;
		const [one, two] = [await pay.pending(), await pay.pending({ to: "B" })];
		expect((await link({ approval_id: one.approval_id, idem: "k" })).status).toBe(202);
		const conflict = await link({ approval_id: one.approval_id, idem: "k", to: "APPROVER@example.com" });
		expect([conflict.status, conflict.body.code]).toEqual([409, "idempotency_conflict"]);
		expect((await link({ approval_id: two.approval_id, idem: "k" })).status).toBe(202);
		expect((await link({ approval_id: one.approval_id, idem: "k", key: tenant.reader })).status).toBe(403);
		expect(new Set(tokens()).size).toBe(2);
		const foreign = await seedTenant();
		expect((await link({ approval_id: one.approval_id, idem: "k", key: foreign.operator })).status).toBe(404);
		expect((await link({ approval_id: one.approval_id, idem: "two words" })).status).toBe(422);
	});

	it("send again what was not handed over, and it is the same link, good once", async () => {
		mails.length = 0;
		const { approval_id } = await pay.pending();
		const failed = await link({ approval_id, idem: "k", EMAIL: bad });
		expect([failed.status, failed.body.code]).toEqual([503, "delivery_failed"]);
		expect((await link({ approval_id, idem: "k" })).status).toBe(202);
		expect((await link({ approval_id, idem: "k" })).status).toBe(202);
		expect(mails).toHaveLength(1);
		expect((await call("GET", `/a/${tokens()[0]}`)).status).toBe(200);
	});

	it("sent twice at once mail once", async () => {
		mails.length = 0;
		const { approval_id } = await pay.pending();
		const slow = {
			send: async (mail: Mail) => {
				await new Promise((done) => setTimeout(done, 100));
				mails.push(mail);
			},
		};
		const answers = await Promise.all([1, 2, 3].map(() => link({ approval_id, idem: "k", EMAIL: slow })));
		expect(mails).toHaveLength(1);
		expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409]);
	});
});
