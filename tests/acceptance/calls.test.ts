/** Field cases T01, T03, T05, T09, A22 through HTTP: what a planner may get wrong, and what its call is hashed from. */
import { beforeAll, describe, expect, it } from "vitest";
import { call, seedTenant, type TestTenant } from "../support/client.ts";
import {
	approve,
	callOf,
	decide,
	externalRun,
	getRun,
	ledger,
	ledgerTool,
	messageOf,
	PAY,
	READ,
	rested,
	turn,
} from "./tools.ts";

let tenant: TestTenant;
let pay: string;

beforeAll(async () => {
	tenant = await seedTenant();
	pay = await ledgerTool(tenant, "pay", PAY);
	await ledgerTool(tenant, "ping", {
		...READ,
		input_schema: { type: "object", properties: {}, additionalProperties: false },
	});
	const q = { type: "object", properties: { q: { type: "string" } }, required: ["q"] };
	await ledgerTool(tenant, "find", { ...READ, input_schema: q });
});

describe("T01: empty arguments", () => {
	it.each([[""], ["  "], [null], [undefined], ["{}"]])("a tool without parameters runs with %j", async (text) => {
		const run = await externalRun(tenant);
		const decision = {
			content: null,
			tool_calls: [
				{ id: "c1", type: "function", function: { name: "ping", ...(text === undefined ? {} : { arguments: text }) } },
			],
		};
		const turned = await decide(tenant, run.run_id, decision);
		expect(callOf(turned.run, "c1").state).toBe("COMPLETED");
		expect(turned.messages[0].final).toBe(true);
	});
	it("a missing required argument is a message the planner can repair from", async () => {
		const run = await externalRun(tenant);
		const turned = await decide(tenant, run.run_id, turn(["find", "c1", ""]));
		const told = messageOf(turned.messages);
		expect(told.status).toBe("refused");
		expect(told.error).toMatchObject({
			reason: "validation_failed",
			errors: [{ field: "/q", issue: "required_field_missing" }],
		});
		const repaired = await decide(tenant, run.run_id, turn(["find", "c2", { q: "x" }]));
		expect(callOf(repaired.run, "c2").state).toBe("COMPLETED");
	});
	it.each(["{", "[1]", '"x"', "{'q': 1}", '{"q":"x"} rm -rf'])(
		"broken arguments %j are refused, not repaired",
		async (text) => {
			const run = await externalRun(tenant);
			const turned = await decide(tenant, run.run_id, turn(["find", "c1", text]));
			expect(messageOf(turned.messages)).toMatchObject({ status: "refused", error: { reason: "arguments_not_json" } });
			expect(turned.run.status).toBe("awaiting_decision");
		},
	);
});

describe("T03: a response that was cut off runs nothing", () => {
	it.each(["length", "max_tokens", "max_output_tokens", "content_filter"])(
		"finish_reason %s",
		async (finish_reason) => {
			const since = (await ledger(pay)).length;
			const run = await externalRun(tenant);
			const turned = await decide(tenant, run.run_id, {
				...turn(["pay", "c1", { to: "A", amount: 1 }], ["find", "c2", { q: "x" }]),
				finish_reason,
			});
			expect(turned.pending_approvals).toEqual([]);
			for (const id of ["c1", "c2"])
				expect(callOf(turned.run, id)).toMatchObject({ state: "REFUSED", refusal: { reason: "truncated_output" } });
			expect(messageOf(turned.messages).error.errors[0].hint).toContain("nothing of it ran");
			expect((await ledger(pay)).length).toBe(since);
		},
	);
});

describe("T05: repeated provider ids", () => {
	it("keeps calls apart across turns and within one response", async () => {
		const run = await externalRun(tenant);
		const one = await decide(tenant, run.run_id, turn(["find", "call_0", { q: "a" }]));
		const two = await decide(tenant, run.run_id, turn(["find", "call_0", { q: "b" }]));
		expect(callOf(two.run, "call_0").arguments).toEqual({ q: "b" });
		const both = await getRun(tenant, run.run_id);
		expect(callOf(both, "call_0", 0).arguments).toEqual({ q: "a" });
		expect(callOf(both, "call_0", 1).arguments).toEqual({ q: "b" });
		expect(one.messages).toHaveLength(1);
		const three = await decide(
			tenant,
			run.run_id,
			turn(["pay", "x", { to: "A", amount: 1 }], ["pay", "x", { to: "B", amount: 2 }]),
		);
		expect(three.messages.map((message: any) => message.tool_call_id)).toEqual(["x", "x"]);
		expect(three.pending_approvals).toHaveLength(2);
		const ids = new Set((await getRun(tenant, run.run_id)).calls.map((found: any) => found.tool_call_id));
		expect(ids.size).toBe(4);
		const since = (await ledger(pay)).length;
		const second = three.pending_approvals.find((found: any) => found.arguments.to === "B");
		expect((await approve(tenant, second)).status).toBe(200);
		await rested(tenant, run.run_id, three.run.seq);
		expect((await ledger(pay)).slice(since).map((entry) => JSON.parse(entry.body).to)).toEqual(["B"]);
	});
});

describe("T09: integers beyond 2^53", () => {
	it("are refused in arguments with the field and what to do, and are exact strings in results", async () => {
		const schema = { type: "object", properties: { id: { type: "integer" } } };
		await ledgerTool(tenant, "get_big", {
			...READ,
			input_schema: schema,
			implementation: { kind: "http", method: "GET", url: "https://ledger.test/big/bigint" },
		});
		const run = await externalRun(tenant);
		const refused = await decide(tenant, run.run_id, turn(["get_big", "c1", '{"id":2512292042121000001}']));
		expect(messageOf(refused.messages).error).toMatchObject({
			reason: "integer_out_of_range",
			errors: [{ field: "/id", issue: "integer_out_of_range" }],
		});
		expect(messageOf(refused.messages).error.errors[0].hint).toContain("string");
		const read = await decide(tenant, run.run_id, turn(["get_big", "c2", "{}"]));
		expect(callOf(read.run, "c2").result.body).toEqual({ id: "2512292042121000001" });
		expect(messageOf(read.messages).data.body.id).toBe("2512292042121000001");
		expect(messageOf(read.messages).notes.join(" ")).toContain("id");
	});
});

describe("A22: what the input hash covers", () => {
	const hashOf = async (text: string): Promise<string> => {
		const run = await externalRun(tenant);
		const turned = await decide(tenant, run.run_id, turn(["pay", "c1", text]));
		return callOf(turned.run, "c1").input_hash;
	};
	it("ignores key order and number spelling, and nothing else", async () => {
		const open = { type: "object" };
		await ledgerTool(tenant, "pay", { ...PAY, input_schema: open, version: "2.0.0" });
		const base = await hashOf('{"to":"A","amount":1,"deep":{"a":[1,2],"b":"é"}}');
		for (const same of [
			'{"deep":{"b":"é","a":[1,2]},"amount":1.0,"to":"A"}',
			'{"amount":1e0,"to":"A","deep":{"a":[1,2],"b":"é"}}',
			' {"to" : "A","amount":10e-1,"deep":{"a":[1.0,2],"b":"\\u00e9"}}',
		]) {
			expect(await hashOf(same), same).toBe(base);
		}
		for (const other of [
			'{"to":"A","amount":1,"deep":{"a":[2,1],"b":"é"}}',
			'{"to":"A","amount":1,"deep":{"a":[1,2],"b":"e"}}',
			'{"to":"A","amount":1,"deep":{"a":[1,2],"b":"é"},"x":null}',
			'{"to":"A","amount":1,"deep":{"a":[1,2],"b":"e\u0301"}}',
			'{"to":"A","amount":2,"deep":{"a":[1,2],"b":"é"}}',
			"{}",
		]) {
			expect(await hashOf(other), other).not.toBe(base);
		}
	});
});

describe("the unknown tool's answer", () => {
	it("is the same for a tool that does not exist, is hidden, or may not be called, with good, bad and empty arguments", async () => {
		await ledgerTool(tenant, "inner", { ...READ, visibility: "internal" });
		const run = await externalRun(tenant, {}, tenant.limited);
		const answers: string[] = [];
		for (const name of ["pay", "inner", "never_was", "constructor", "__proto__"]) {
			for (const text of ['{"to":"A","amount":1}', '{"amount":"x"}', "", "{"]) {
				const turned = await decide(tenant, run.run_id, turn([name, "c1", text]), tenant.limited);
				const { error, status } = messageOf(turned.messages);
				answers.push(JSON.stringify({ status, error }).replaceAll(name, "NAME"));
			}
			if (run.limits?.turns === 0) break;
		}
		expect(new Set(answers).size).toBe(1);
		expect(answers[0]).toContain("unknown_tool");
		const exposed = (await call("GET", `/v1/runs/${run.run_id}/exposure`, undefined, tenant.limited)).text;
		expect(exposed).not.toContain('"pay"');
		expect(exposed).not.toContain('"inner"');
	});
});
