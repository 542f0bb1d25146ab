/** V3, K1: who probes is seen. Hits are counted by principal, over all runs, and shown to people of the tenant alone. */
import { beforeAll, describe, expect, it } from "vitest";
import { decide, externalRun, ledgerTool, READ, turn } from "../acceptance/tools.ts";
import { call, seedTenant, type TestTenant } from "../support/client.ts";

let tenant: TestTenant;
const marked = (kind: string) => ({
	...READ,
	input_schema: { type: "object", properties: { text: { type: "string", "x-belay-kind": kind } } },
});
beforeAll(async () => {
	tenant = await seedTenant();
	await ledgerTool(tenant, "fetch_page", marked("url"));
	await ledgerTool(tenant, "open_file", marked("path"));
	await ledgerTool(tenant, "run_command", marked("shell"));
	await ledgerTool(tenant, "hop", READ, "redirect?to=http://169.254.169.254/");
});

const counts = (query = "", key = tenant.operator) => call("GET", `/v1/audit/security-flags${query}`, undefined, key);
type Count = { principal_id: string; flag: string; count: number };
/** Once the runs' records have reached the index, which they do within seconds. */
async function counted(want: readonly [string, string, number][], query = ""): Promise<void> {
	const seen = async () =>
		(await counts(query)).body.data.map((one: Count) => [one.principal_id, one.flag, one.count]).sort();
	await expect.poll(seen, { timeout: 15_000, interval: 250 }).toEqual([...want].sort());
}

describe("security flags", () => {
	it("are counted by principal over its runs, blocked calls and others apart", async () => {
		const attacks: [string, string, unknown][] = [
			["fetch_page", "a", { text: "http://169.254.169.254/latest/meta-data/" }],
			["open_file", "b", { text: "../../etc/passwd" }],
			["run_command", "c", { text: "ls; rm -rf /" }],
			["run_command", "d", { text: "ls $HOME" }],
			["fetch_page", "e", { text: "https://example.com/" }],
			["hop", "f", {}],
		];
		for (const at of [attacks.slice(0, 2), attacks.slice(2)]) {
			const run = await externalRun(tenant, {}, tenant.agent);
			await decide(tenant, run.run_id, turn(...at), tenant.agent);
		}
		const other = await externalRun(tenant);
		await decide(tenant, other.run_id, turn(["open_file", "a", { text: "..\\..\\boot.ini" }]));
		await counted([
			["agt_agent", "egress", 1],
			["agt_agent", "security_blocked", 3],
			["agt_agent", "shell_expansion", 1],
			["usr_operator", "security_blocked", 1],
		]);
		await counted([["usr_operator", "security_blocked", 1]], "?principal_id=usr_operator");
		const { text, body } = await counts();
		expect(text).not.toMatch(/passwd|169\.254|HOME|boot/);
		expect(body.data[0]).toMatchObject({ flag: "security_blocked", last_at: expect.stringMatching(/Z$/) });
		await counted([], "?from=2999-01-01T00:00:00Z");
		await counted([], "?to=2020-01-01T00:00:00Z");
	});

	it("of one tenant are nobody else's", async () => {
		const stranger = await seedTenant();
		expect((await counts("", stranger.operator)).body.data).toEqual([]);
		const guess = await counts("?principal_id=agt_agent", stranger.operator);
		expect(guess.body.data).toEqual([]);
	});

	it("are not told to agents, to who lacks the permission, or without a key", async () => {
		for (const key of [tenant.agent, tenant.limited, tenant.approver])
			expect((await counts("", key)).body).toMatchObject({ status: 403, code: "forbidden" });
		expect((await call("GET", "/v1/audit/security-flags")).status).toBe(401);
	});

	it.each(["from=yesterday", "to=2026-13-01T00:00:00Z", "from=' OR 1=1 --"])(
		"says what is wrong with `%s`",
		async (query) => {
			const answer = await counts(`?${query}`);
			expect([answer.status, answer.body.code]).toEqual([422, "invalid_request"]);
		},
	);
});
