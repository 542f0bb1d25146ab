/** Approval links end to end: scanners, forgeries, second uses, and what the page shows (A4, A12, A17, A19). */
import { beforeAll, describe, expect, it, vi } from "vitest";
import { call, seedTenant, send, type TestTenant } from "../support/client.ts";
import { type Payments, payments } from "../support/payments.ts";

let tenant: TestTenant;
let pay: Payments;
const NASTY = {
	to: "acct\u202E1",
	memo: `${" ".repeat(5000)}real payee: B`,
	note: "<script>alert(1)</script><b>Approved</b> [ok](https://evil.test)\u200b",
};

beforeAll(async () => {
	tenant = await seedTenant();
	pay = await payments(tenant);
});

const csrfOf = (page: string): string => /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? "";
const form = { "content-type": "application/x-www-form-urlencoded" };
const submit = (path: string, fields: Record<string, string> | string) =>
	call("POST", path, typeof fields === "string" ? fields : new URLSearchParams(fields).toString(), undefined, form);

describe("opening", () => {
	it("decides nothing, however often scanners do it, and the person can still decide once", async () => {
		const approval = await pay.pending();
		const path = await pay.link(approval);
		const before = await pay.ledger();
		for (const method of ["GET", "HEAD", "GET", "HEAD", "GET", "HEAD"]) {
			const answer = await send(
				new Request(`https://belay.test${path}`, {
					method,
					headers: { "user-agent": "SafeLinks scanner" },
					redirect: "follow",
				}),
			);
			expect(answer.status).toBe(200);
			expect(answer.headers.get("cache-control")).toBe("no-store");
			expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
		}
		expect((await call("GET", `/v1/approvals/${approval.approval_id}`, undefined, tenant.operator)).body.status).toBe(
			"pending",
		);
		expect(await pay.ledger()).toEqual(before);

		const page = await call("GET", path);
		const decided = await submit(path, { decision: "approve", csrf: csrfOf(page.text), reason: "fine" });
		expect(decided.status).toBe(200);
		expect(decided.text).toContain("You approved this call.");
		await vi.waitFor(async () => expect((await pay.ledger()).length).toBe(before.length + 1), { timeout: 5_000 });

		for (const again of [await call("GET", path), await submit(path, { decision: "deny", csrf: csrfOf(page.text) })])
			expect([again.status, again.text]).toEqual([410, expect.stringContaining("the call was approved")]);
		// what a used link still says is that, and nothing of the call or of who decided
		const used = (await call("GET", path)).text;
		for (const kept of ["pay", "somebody", "approver@", "fine", "<form"]) expect(used).not.toContain(kept);
		expect((await pay.ledger()).length).toBe(before.length + 1);
	});

	it("shows exactly what would run, with nothing invisible and nothing alive", async () => {
		const approval = await pay.pending(NASTY);
		const { text, headers } = await call("GET", await pay.link(approval));
		expect(text).toContain("acct\\u202E1");
		expect(text).not.toMatch(/[\u202e\u200b]/);
		expect(text).toContain("⟨399 spaces⟩");
		expect(text).toContain("real payee: B");
		expect(text).toMatch(/<details><summary>Show all \(550 of 5015 characters shown\)<\/summary>/);
		expect(text).not.toContain("<script");
		expect(text).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
		expect(text).toContain("pay &lt;i&gt;somebody&lt;/i&gt;");
		expect(text).toContain(approval.input_hash);
		const policy = headers.get("content-security-policy") ?? "";
		expect(policy).toMatch(
			/^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]+='; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
		);
		expect(headers.get("x-frame-options")).toBe("DENY");
		const style = /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? "";
		const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(style));
		expect(policy).toContain(`'sha256-${Buffer.from(digest).toString("base64")}'`);
		expect(
			(await call("GET", `/v1/approvals/${approval.approval_id}`, undefined, tenant.operator)).body.arguments,
		).toEqual(NASTY);
	});

	it("says beside the buttons that a part is folded, and how much", async () => {
		const long = await call("GET", await pay.link(await pay.pending(NASTY)));
		const note = "1 part of the arguments is folded: 4465 characters are not shown";
		expect(long.text).toMatch(new RegExp(`${note}[^<]*</p><div class="buttons">`));
		const short = await call("GET", await pay.link(await pay.pending()));
		expect(short.text).not.toContain("folded");
	});

	it("says why it asks in words, and fixed parts and punctuation in the reader's language", async () => {
		const path = await pay.link(await pay.pending(NASTY));
		const { text } = await call("GET", path);
		expect(text).toContain("This tool asks before every call.");
		expect(text).not.toContain("approval:always");
		const zh = (await call("GET", `${path}?lang=zh`)).text;
		expect(zh).toContain("此工具每次调用前都需要审批。");
		expect(zh).toContain("风险：高");
		expect(zh).toContain("pay 1.0.0（写入，高风险），参数 to：");
		expect(zh).toContain("<summary>显示全部（已显示 550 / 5015 个字符）</summary>");
		expect(zh).toContain("参数中有 1 处已折叠，共 4465 个字符未显示");
		const said = zh.replace(/<style>.*<\/style>/s, "").replaceAll(/<[^>]*>/g, "");
		expect(said).not.toMatch(/[\u4e00-\u9fff] ?[:,;(]|risk|with /);
	});

	it("speaks Chinese to who prefers it", async () => {
		const path = await pay.link(await pay.pending());
		expect(
			(await call("GET", path, undefined, undefined, { "accept-language": "fr, zh-CN;q=0.8, en;q=0.5" })).text,
		).toContain('<html lang="zh">');
		expect((await call("GET", path, undefined, undefined, { "accept-language": "en, zh;q=0.5" })).text).toContain(
			'<html lang="en">',
		);
		expect((await call("GET", `${path}?lang=zh`)).text).toContain("批准");
		expect((await call("GET", path, undefined, undefined, { "accept-language": "*;q=x,,;zh;q=0" })).text).toContain(
			'<html lang="en">',
		);
	});
});

describe("deciding", () => {
	it.each([
		["no form token", { decision: "approve" }],
		["a wrong form token", { decision: "approve", csrf: "0".repeat(64) }],
		["an unknown decision", { decision: "APPROVE", csrf: "" }],
		["no decision", { csrf: "" }],
	])("takes no form with %s", async (_what, fields) => {
		const approval = await pay.pending();
		const path = await pay.link(approval);
		const csrf = csrfOf((await call("GET", path)).text);
		const answer = await submit(path, { ...fields, ...("csrf" in fields && fields.csrf === "" ? { csrf } : {}) });
		expect([403, 422]).toContain(answer.status);
		expect(answer.headers.get("content-type")).toContain("text/html");
		expect((await call("GET", `/v1/approvals/${approval.approval_id}`, undefined, tenant.operator)).body.status).toBe(
			"pending",
		);
	});

	it("takes no form with two decisions, no JSON, and no other link's form token", async () => {
		const approval = await pay.pending();
		const [path, sibling] = [await pay.link(approval), await pay.link(approval)];
		const csrf = csrfOf((await call("GET", path)).text);
		expect((await submit(path, `decision=deny&decision=approve&csrf=${csrf}`)).status).toBe(422);
		expect((await call("POST", path, { decision: "approve", csrf })).status).toBe(415);
		expect((await submit(sibling, { decision: "approve", csrf })).status).toBe(403);
		expect((await call("GET", `/v1/approvals/${approval.approval_id}`, undefined, tenant.operator)).body.status).toBe(
			"pending",
		);
	});

	it("takes every reason that its form calls valid: browsers send line ends as CRLF", async () => {
		const approval = await pay.pending();
		const path = await pay.link(approval);
		const csrf = csrfOf((await call("GET", path)).text);
		const lines = `${"a\r\n".repeat(511)}ab`;
		const denied = await submit(path, { decision: "deny", csrf, reason: lines });
		expect(denied.status).toBe(200);
		expect(denied.text).toContain('Reason: <span class="said">a\na\n');
		const { decisions } = (await call("GET", `/v1/approvals/${approval.approval_id}`, undefined, tenant.operator)).body;
		expect(decisions[0].reason).toBe(lines.replaceAll("\r\n", "\n"));
	});

	it("says what was wrong with a form, and what to do, in two languages", async () => {
		const path = await pay.link(await pay.pending());
		const csrf = csrfOf((await call("GET", path)).text);
		const cases: [Promise<{ status: number; text: string }>, number, string][] = [
			[
				submit(path, { decision: "deny", csrf, reason: "x".repeat(1_025) }),
				422,
				"The reason has 1025 characters; at most 1024",
			],
			[submit(path, { csrf }), 422, "Neither Approve nor Deny"],
			[submit(path, { decision: "deny", csrf: "x" }), 403, "open the link again"],
			[submit(path, { decision: "deny" }), 403, "open the link again"],
			[call("POST", path, { decision: "deny", csrf }), 415, "own form"],
			[submit(path, `csrf=${csrf}&decision=deny&reason=${"x".repeat(1_100_000)}`), 413, "too long"],
			[submit(path, `csrf=${csrf}&decision=deny&reason=%ff`), 400, "not text"],
			[
				submit(`${path}?lang=zh`, { decision: "deny", csrf, reason: "x".repeat(1_025) }),
				422,
				"理由有 1025 个字符，最多 1024 个",
			],
			[submit(`${path}?lang=zh`, { csrf }), 422, "没有选择“批准”或“拒绝”"],
		];
		for (const [asked, status, said] of cases) {
			const { text, ...answer } = await asked;
			expect([answer.status, text]).toEqual([status, expect.stringContaining(said)]);
			expect(text).toMatch(/Nothing was decided|没有作出任何决定/);
			expect(text).not.toMatch(/in a moment|稍后/);
		}
	});

	it("happens once for twenty clicks", async () => {
		const before = (await pay.ledger()).length;
		const path = await pay.link(await pay.pending());
		const csrf = csrfOf((await call("GET", path)).text);
		const clicks = await Promise.all(Array.from({ length: 20 }, () => submit(path, { decision: "approve", csrf })));
		expect(clicks.filter(({ status }) => status === 200)).toHaveLength(1);
		expect(clicks.filter(({ status }) => status === 410 || status === 409)).toHaveLength(19);
		await vi.waitFor(async () => expect((await pay.ledger()).length).toBe(before + 1), { timeout: 5_000 });
	});

	it("shows what somebody else decided first", async () => {
		const approval = await pay.pending();
		const path = await pay.link(approval);
		const csrf = csrfOf((await call("GET", path)).text);
		const { tool_id, tool_call_id, input_hash } = approval;
		const denied = await call(
			"POST",
			`/v1/approvals/${approval.approval_id}/decision`,
			{ decision: "deny", tool_id, tool_call_id, input_hash, reason: "no <b>" },
			tenant.approver,
		);
		expect(denied.status).toBe(200);
		const late = await submit(path, { decision: "approve", csrf });
		expect(late.status).toBe(409);
		expect(late.text).toContain("Outcome: denied");
		expect(late.text.match(/denied/gi)).toHaveLength(2); // <title> and <h1>
		expect(late.text).toContain("Your decision came too late");
		expect(late.text).toContain("no &lt;b&gt;");
		expect(late.text).not.toContain("<form");
	});

	it("is not for what became of nothing: the page says which way", async () => {
		const first = await pay.pending();
		const gone = await pay.link(first);
		const csrf = csrfOf((await call("GET", gone)).text);
		expect((await call("POST", `/v1/runs/${first.run_id}/cancel`, {}, tenant.agent)).status).toBe(200);
		for (const page of [await call("GET", gone), await submit(gone, { decision: "approve", csrf })]) {
			expect(page.text).toContain("The run was cancelled. This call was not executed.");
			expect(page.text).not.toContain("edited");
		}
		expect((await call("GET", `${gone}?lang=zh`)).text).toContain("任务已取消，此调用并未执行。");

		const other = await pay.pending();
		const path = await pay.link(other);
		const edited = await call(
			"POST",
			`/v1/approvals/${other.approval_id}/edit`,
			{ arguments: { to: "B" } },
			tenant.approver,
		);
		expect(edited.status, edited.text).toBe(200);
		expect((await call("GET", path)).text).toContain("The arguments were edited");
	});

	it("is not for a link that only shows", async () => {
		const approval = await pay.pending();
		const path = await pay.link(approval, { view_only: true });
		const page = await call("GET", path);
		expect(page.text).not.toContain("<form");
		expect(page.text).toContain(`<code>POST /v1/approvals/${approval.approval_id}/decision</code>`);
		expect(page.text).not.toContain("console");
		expect((await submit(path, { decision: "approve", csrf: "x" })).status).toBe(403);
	});

	it("a token that is not ours reaches nothing, in any spelling", async () => {
		const path = await pay.link(await pay.pending());
		const token = path.slice(3);
		for (const other of [
			token.toUpperCase(),
			`${token.slice(0, -1)}${token.endsWith("0") ? "1" : "0"}`,
			"0".repeat(128),
			"x",
			`${token}0`,
			"%00",
		]) {
			for (const answer of [
				await call("GET", `/a/${other}`),
				await submit(`/a/${other}`, { decision: "approve", csrf: "x" }),
			]) {
				expect(answer.status).toBe(404);
				expect(answer.headers.get("content-type")).toContain("text/html");
			}
		}
	});
});
