/** The hosts that a tool lists, from registration to the call; and that a configured resolver is really the one that is asked. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import type { ExecutorApi } from "#adapters/wasm/executor-api.ts";
import { makeInvokers } from "#objects/agent-run/invokers.ts";
import { invocationOf } from "../http/world.ts";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import { callOf, decide, externalRun, ledger, ledgerTool, READ, turn } from "./tools.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});
const http = (url: string, allowed_hosts: string[]) => ({
	...READ,
	input_schema: { type: "object", properties: { url: { type: "string", format: "uri" } }, required: ["url"] },
	implementation: { kind: "http", method: "GET", url, allowed_hosts },
});

describe("a tool that lists its hosts", () => {
	it("reaches those alone, whatever its argument or a redirect says", async () => {
		await ledgerTool(tenant, "fetch_page", http("{+url}", ["*.ledger.test"]));
		const key = crypto.randomUUID();
		const run = await externalRun(tenant);
		const done = await decide(
			tenant,
			run.run_id,
			turn(
				["fetch_page", "a", { url: `https://a.ledger.test/${key}/ok` }],
				["fetch_page", "b", { url: `https://ledger.test/${key}/ok` }],
				["fetch_page", "c", { url: `https://a.ledger.test/${key}/redirect?to=https://ledger.test/${key}/ok` }],
				["fetch_page", "d", { url: `https://a.ledger.test@ledger.test/${key}/ok` }],
			),
		);
		expect(callOf(done.run, "a").state).toBe("COMPLETED");
		expect(callOf(done.run, "b")).toMatchObject({ state: "FAILED", error: { code: "security_blocked" } });
		expect(callOf(done.run, "c")).toMatchObject({ state: "FAILED", error: { code: "redirect_refused" } });
		expect(callOf(done.run, "d")).toMatchObject({ state: "REFUSED", refusal: { reason: "security_blocked" } });
		expect((await ledger(key)).map(({ url }) => new URL(url).hostname)).toEqual(["a.ledger.test", "a.ledger.test"]);
	});

	it("is refused at registration when the list is none, or leaves out its own host", async () => {
		const publish = async (url: string, hosts: string[]) => {
			const tool = { tool_id: "held", name: "held", version: "1.0.0", description: "Fetches. It does not write." };
			const body = { ...tool, category: "data_retrieval", ...http(url, hosts) };
			const answer = await call("PUT", "/v1/tools/held", body, tenant.operator);
			return [answer.status, answer.body.errors?.[0]?.field];
		};
		expect(await publish("{+url}", ["https://a.example.com"])).toEqual([422, "/implementation/allowed_hosts/0"]);
		expect(await publish("{+url}", ["*"])).toEqual([422, "/implementation/allowed_hosts/0"]);
		expect(await publish("{+url}", [])).toEqual([422, "/implementation/allowed_hosts"]);
		const other = await publish("https://api.example.com/x", ["other.example.com"]);
		expect(other).toEqual([422, "/implementation/allowed_hosts"]);
	});
});

describe("a configured resolver", () => {
	const invocation = () =>
		invocationOf({ implementation: { kind: "http", method: "GET", url: "https://ledger.test/dns/ok" } });
	const invoke = (BELAY_DNS_URL: string) =>
		makeInvokers({ ...env, BELAY_DNS_URL }, {} as ExecutorApi).http.invoke(invocation(), new AbortController().signal);

	it("that cannot be reached lets nothing out; without one the same call is made", async () => {
		expect((await invoke("")).kind).toBe("success");
		const asked = await invoke("https://dns.test/dns-query");
		expect(asked).toMatchObject({ kind: "failed", code: "connection_lost", effect: "none" });
	});
});
