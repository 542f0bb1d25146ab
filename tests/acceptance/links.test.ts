/** Field case A12 and the approval page: opening decides nothing, a form decides once, everything is shown and escaped. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import type { AgentRunApi } from "#objects/agent-run/api.ts";
import { DEVELOPMENT_PRINCIPALS } from "../../ops/seed/seed.ts";
import { call, seedTenant, send, type TestTenant } from "../support/client.ts";
import { approve, decide, externalRun, getRun, ledger, ledgerTool, PAY, type Run, rested, turn } from "./tools.ts";

let tenant: TestTenant;
let pay: string;

beforeAll(async () => {
	tenant = await seedTenant();
	pay = await ledgerTool(tenant, "pay", PAY);
});

const none = { policy_rev: 0, roles: [], permissions: [], tools: [], data_scope: "own" } as const;

/** A link as a sender would mail it. */
async function link(approval: Run, who: "approver" | "reader" = "approver", view_only = false): Promise<string> {
	const { principal_id, kind, name } = DEVELOPMENT_PRINCIPALS[who];
	const stub = env.AGENT_RUN.getByName(approval.run_id) as unknown as AgentRunApi;
	const approver = {
		tenant_id: tenant.tenant_id,
		principal_id,
		kind,
		name,
		authority: { ...none, roles: [], permissions: [], tools: [] },
	};
	const reply = await stub.issueLink({
		v: 1,
		tenant_id: tenant.tenant_id,
		approval_id: approval.approval_id,
		approver,
		view_only,
	});
	if (!reply.ok) throw new Error(reply.problem.code);
	return reply.value.token;
}

async function pending(
	args: Record<string, unknown> = { to: "A", amount: 1 },
): Promise<{ run: Run; approval: Run; seq: number }> {
	const run = await externalRun(tenant);
	const turned = await decide(tenant, run.run_id, turn(["pay", "c1", args]));
	return { run, approval: turned.pending_approvals[0], seq: turned.run.seq };
}

const csrfOf = (html: string): string =>
	/name="csrf" value="([^"]+)"/.exec(html)?.[1] ?? /value="([^"]+)"[^>]*name="csrf"/.exec(html)?.[1] ?? "";
const post = (token: string, form: Record<string, string>) =>
	send(
		new Request(`https://belay.test/a/${token}`, {
			method: "POST",
			headers: {
				"content-type": "application/x-www-form-urlencoded",
				origin: "https://belay.test",
				"sec-fetch-site": "same-origin",
			},
			body: new URLSearchParams(form).toString(),
			redirect: "manual",
		}),
	);

describe("A12: scanners open links", () => {
	it("changes nothing however often it is opened, and a person decides afterwards, once", async () => {
		const since = (await ledger(pay)).length;
		const { run, approval, seq } = await pending();
		const token = await link(approval);
		for (const method of ["GET", "HEAD", "GET", "HEAD", "GET", "HEAD"]) {
			const answer = await call(method, `/a/${token}`, undefined, undefined, {
				"user-agent": "Mozilla/5.0 (SafeLinks scanner)",
			});
			expect(answer.status).toBe(200);
			expect(answer.headers.get("cache-control")).toContain("no-store");
			expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
		}
		expect((await getRun(tenant, run.run_id)).seq).toBe(seq);
		const page = await call("GET", `/a/${token}`);
		const csrf = csrfOf(page.text);
		expect(csrf).not.toBe("");
		expect((await post(token, { decision: "approve", csrf: "0".repeat(64) })).status).toBe(403);
		expect((await post(token, { decision: "approve" })).status).toBeGreaterThanOrEqual(400);
		expect((await ledger(pay)).length).toBe(since);
		const decided = await post(token, { decision: "approve", csrf });
		expect(decided.status).toBeLessThan(400);
		await rested(tenant, run.run_id, seq);
		expect((await ledger(pay)).length - since).toBe(1);
		const again = await post(token, { decision: "deny", csrf });
		expect(again.status).toBe(410);
		expect((await ledger(pay)).length - since).toBe(1);
	});

	it("a guessed, cut or altered token is no link", async () => {
		const { approval } = await pending();
		const token = await link(approval);
		const last = token.at(-1) === "0" ? "1" : "0";
		for (const wrong of [
			token.slice(0, -1) + last,
			token.slice(0, -1),
			`${token}0`,
			token.toUpperCase(),
			"x",
			"0".repeat(128),
		]) {
			expect((await call("GET", `/a/${wrong}`)).status, wrong).toBe(wrong === token ? 200 : 404);
		}
	});

	it("a link of somebody without the permission decides nothing", async () => {
		const { run, approval } = await pending();
		const token = await link(approval, "reader");
		const csrf = csrfOf((await call("GET", `/a/${token}`)).text);
		expect((await post(token, { decision: "approve", csrf })).status).toBe(403);
		expect((await getRun(tenant, run.run_id)).status).toBe("awaiting_approval");
	});

	it("shows the outcome when it was decided elsewhere", async () => {
		const { approval } = await pending();
		const token = await link(approval);
		const csrf = csrfOf((await call("GET", `/a/${token}`)).text);
		expect((await approve(tenant, approval, "deny")).status).toBe(200);
		expect((await post(token, { decision: "approve", csrf })).status).toBeGreaterThanOrEqual(400);
		expect((await call("GET", `/a/${token}`)).status).toBeLessThan(500);
	});
});

describe("the page shows exactly what will run", () => {
	it("escapes markup, direction characters and invisible text, and never runs the arguments", async () => {
		const { approval } = await pending({
			to: "acct\u202E1\u200B",
			text: "<script>alert(1)</script><img src=x onerror=alert(1)>",
			amount: 1,
		});
		const { text, headers } = await call("GET", `/a/${await link(approval)}`);
		expect(text).not.toContain("<script>alert");
		expect(text).not.toContain("<img src=x");
		expect(text).not.toContain("\u202E");
		expect(text).not.toContain("\u200B");
		expect(text.toLowerCase()).toContain("\\u202e");
		expect(headers.get("content-security-policy")).toContain("default-src 'none'");
		expect(text).toContain(approval.input_hash);
	});
	it("speaks Chinese to who reads Chinese", async () => {
		const { approval } = await pending();
		const { text } = await call("GET", `/a/${await link(approval)}`, undefined, undefined, {
			"accept-language": "zh-CN,zh;q=0.9",
		});
		expect(text).toMatch(/[\u4e00-\u9fff]{2}/);
	});
});
