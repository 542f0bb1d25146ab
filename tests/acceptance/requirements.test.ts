/** F3 through HTTP: a tool that requires a workspace is offered to the runs that have one, and named as missing elsewhere. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { call, pluck, seedTenant, type TestTenant } from "../support/client.ts";
import { callOf, decide, externalRun, ledgerTool, READ, turn } from "./tools.ts";

let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	await ledgerTool(tenant, "in_workspace", { ...READ, requires: ["workspace"] });
});

const facts = async (query = "") =>
	(await call("GET", `/v1/tools/in_workspace/facts${query}`, undefined, tenant.operator)).body;
const offered = async (run_id: string): Promise<unknown[]> => {
	const { body } = await call("GET", `/v1/runs/${run_id}/exposure?format=mcp`, undefined, tenant.operator);
	return pluck(body.tools, "name");
};

describe("a tool that requires a workspace", () => {
	it("is offered, called and explained in a run that names one", async () => {
		const { run_id } = await externalRun(tenant, { context: { workspace_id: "ws_1" } });
		expect(await offered(run_id)).toContain("in_workspace");
		const done = await decide(tenant, run_id, turn(["in_workspace", "c", { q: "x" }]));
		expect(callOf(done.run, "c").state).toBe("COMPLETED");
		expect(await facts(`?run_id=${run_id}`)).toMatchObject({
			availability: { holds: true, missing: [] },
			exposure: { holds: true },
			invocation: { holds: true },
		});
	});

	it.each([{}, { workspace_id: "" }, { workspace_id: " " }, { workspace_id: true }, { device_id: "d" }])(
		"is not in a run with context %j, which says what mends it",
		async (context) => {
			const { run_id } = await externalRun(tenant, { context });
			expect(await offered(run_id)).not.toContain("in_workspace");
			const refused = await decide(tenant, run_id, turn(["in_workspace", "c", { q: "x" }]));
			expect(callOf(refused.run, "c").refusal.reason).toBe("unknown_tool");
			const { availability, exposure } = await facts(`?run_id=${run_id}`);
			expect(availability).toMatchObject({ holds: false, missing: [{ name: "workspace" }] });
			expect(availability.missing[0].mend).toContain("context.workspace_id");
			expect(exposure).toMatchObject({ holds: false });
		},
	);

	it("can be pinned where there is one, and is refused by name where there is none", async () => {
		const pin = (context: object) => {
			const body = { goal: "x", planner: { kind: "external" }, tools: ["in_workspace"], context };
			return call("POST", "/v1/runs", body, tenant.operator);
		};
		expect((await pin({ workspace_id: "ws_1" })).status).toBe(201);
		const without = await pin({});
		expect([without.status, without.body.errors[0].field]).toEqual([422, "/tools/0"]);
	});

	it("without a run says that nothing has been observed", async () => {
		expect((await facts()).availability).toMatchObject({ holds: false, missing: [{ name: "workspace" }] });
		expect((await call("GET", "/v1/tools/in_workspace/facts?run_id=x", undefined, tenant.operator)).status).toBe(404);
	});
});

describe("a precondition that nothing here can observe", () => {
	it.each([
		"connection:github",
		"device:browser",
		"mcp:files",
		"microapp:crm",
		"expert:law",
		"provider:x",
		"process:y",
	])("%s is refused when the tool is registered", async (requirement) => {
		const answer = ledgerTool(tenant, "never", { ...READ, requires: [requirement] });
		await expect(answer).rejects.toThrow(/422.*\/requires\/0.*never be available|422.*never be available/);
		const { n } = (await env.DB.prepare("SELECT count(*) AS n FROM tool_versions WHERE tool_id = 'never'").first<{
			n: number;
		}>()) ?? { n: -1 };
		expect(n).toBe(0);
	});
});
