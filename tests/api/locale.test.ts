/** V4: what a planner has to repair is said in the user's language. */
import { abortAllDurableObjects } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import { decide, externalRun, ledgerTool, messageOf, READ, type Run, turn } from "../acceptance/tools.ts";
import { call, seedTenant, type TestTenant } from "../support/client.ts";

const EN = "`to` is missing";
const ZH = "`to` 缺失";
let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
	const input_schema = { type: "object", properties: { to: { type: "string" } }, required: ["to"] };
	await ledgerTool(tenant, "find", { ...READ, input_schema });
});

async function refusedIn(run: Run): Promise<Run> {
	const { messages } = await decide(tenant, run.run_id, turn(["find", "c", {}]));
	return messageOf(messages).error.errors[0];
}

describe("repair hints", () => {
	it.each([
		["the run's own word", { goal: "look around", locale: "zh" }, ZH],
		["the goal's script", { goal: "看看上个季度的销售" }, ZH],
		["the run's word before the goal's script", { goal: "看看上个季度的销售", locale: "en" }, EN],
		["English where nobody says", { goal: "look around" }, EN],
	])("speak the language of %s", async (_whose, more, said) => {
		const error = await refusedIn(await externalRun(tenant, more));
		// The words for programs are the same in every language.
		expect(error).toMatchObject({ error: said, field: "/to", issue: "required_field_missing" });
	});

	it("keep it over an eviction", async () => {
		const run = await externalRun(tenant, { goal: "x", locale: "zh" });
		await abortAllDurableObjects();
		expect((await refusedIn(run)).error).toBe(ZH);
	});

	it("know two languages: another one is refused by name, and is never code", async () => {
		for (const locale of ["fr", "ZH", "__proto__", ["zh"], null]) {
			const body = { goal: "x", planner: { kind: "external" }, locale };
			const answer = await call("POST", "/v1/runs", body, tenant.operator);
			expect([answer.status, answer.body.errors[0].field]).toEqual([422, "/locale"]);
		}
	});

	it("are part of what an Idempotency-Key stands for", async () => {
		const same = { "idempotency-key": crypto.randomUUID() };
		const body = { goal: "x", planner: { kind: "external" } };
		expect((await call("POST", "/v1/runs", body, tenant.operator, same)).status).toBe(201);
		const other = await call("POST", "/v1/runs", { ...body, locale: "zh" }, tenant.operator, same);
		expect([other.status, other.body.code]).toEqual([409, "idempotency_conflict"]);
	});
});
