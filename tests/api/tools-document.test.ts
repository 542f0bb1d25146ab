/** `docs/tools.md` and the descriptor's fields in the OpenAPI document: what they show is accepted, and nothing is left unsaid. */
import { beforeAll, describe, expect, it } from "vitest";
import page from "../../docs/tools.md?raw";
import { call, seedTenant, type TestTenant } from "../support/client.ts";

const examples = [...page.matchAll(/```json\n(.*?)```/gs)].map(([, text = ""]) => JSON.parse(text));
let tenant: TestTenant;
beforeAll(async () => {
	tenant = await seedTenant();
});

describe("docs/tools.md", () => {
	it("has an example of every kind", () => {
		const kinds = examples.map(({ implementation: { kind, language } }) => language ?? kind);
		expect([...new Set(kinds)].sort()).toEqual(
			["http", "sql", "retrieval", "wasm", "javascript", "python", "notify"].sort(),
		);
	});

	it.each(examples.map((one) => [one.tool_id, one]))("%s is registered as it stands", async (tool_id, descriptor) => {
		const { status, text } = await call("PUT", `/v1/tools/${tool_id}`, descriptor, tenant.operator);
		expect(status, text).toBe(201);
	});
});

describe("ToolDescriptorInput in openapi.json", () => {
	it("describes every field", async () => {
		const { body } = await call("GET", "/openapi.json");
		const fields = Object.entries<{ description?: string }>(body.components.schemas.ToolDescriptorInput.properties);
		expect(fields.length).toBeGreaterThan(28);
		expect(fields.filter(([, { description = "" }]) => description.length < 10).map(([name]) => name)).toEqual([]);
	});
});
