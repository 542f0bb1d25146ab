import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../json.ts";
import { checkDescriptor, judgePublish } from "./register.ts";
import { sampleDescriptor, sampleTool } from "./sample-tool.ts";

const digest = (text: string): string => createHash("sha256").update(text).digest("hex");
const fields = (more: JsonObject): string[] => {
	const checked = checkDescriptor(sampleDescriptor(more), digest);
	return checked.ok ? [] : checked.errors.map((error) => error.field);
};
const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({ type: "object", properties, ...more });

describe("what a refused descriptor is told", () => {
	const told = (more: JsonObject) => {
		const checked = checkDescriptor(sampleDescriptor(more), digest);
		return checked.ok ? [] : checked.errors;
	};

	it.each<[JsonObject, string, string]>([
		[{ timeout_ms: 150.5 }, "/timeout_ms", "a whole number"],
		[{ output_schema: 5 }, "/output_schema", "an object"],
		[{ input_schema: "x" }, "/input_schema", "an object"],
		[{ tool_id: "Pay" }, "/tool_id", "lowercase letters, digits and `_`, a letter first, 64 characters at most"],
		[{ version: "1.0" }, "/version", "a version `MAJOR.MINOR.PATCH`"],
	])("%j: in words", (more, field, expected) => {
		expect(told(more)).toContainEqual(expect.objectContaining({ field, expected }));
		expect(JSON.stringify(told({ ...more, category: "communication" }))).not.toMatch(
			/Invalid |nvalid string|\bC5\b|record/,
		);
	});

	it("names no case of its own specification", () => {
		expect(JSON.stringify(told({ category: "communication" }))).not.toContain("C5");
	});
});

describe("checkDescriptor", () => {
	it("fills in the strict defaults (decision 19) and hashes what is stored", () => {
		const checked = checkDescriptor(sampleDescriptor(), digest);
		if (!checked.ok) throw new Error(JSON.stringify(checked.errors));
		expect(checked.descriptor).toMatchObject({
			effect: "write",
			approval: { mode: "always" },
			visibility: "public",
			on_unknown: "report",
		});
		const spelled = checkDescriptor({ approval: { mode: "always" }, effect: "write", ...sampleDescriptor() }, digest);
		expect(spelled.ok && spelled.definition_hash).toBe(checked.definition_hash);
		const other = checkDescriptor(sampleDescriptor({ timeout_ms: 5000 }), digest);
		expect(other.ok && other.definition_hash).not.toBe(checked.definition_hash);
	});

	it.each<[string, JsonObject, string]>([
		["a tool id with capitals", { tool_id: "Pay" }, "/tool_id"],
		["another's MCP id", { tool_id: "mcp:github:tool:push" }, "/tool_id"],
		["a prototype name as id", { tool_id: "__proto__" }, "/tool_id"],
		["a name that is too long", { name: "a".repeat(65) }, "/name"],
		["a version that is none", { version: "1.0" }, "/version"],
		["a timeout below the range", { timeout_ms: 99 }, "/timeout_ms"],
		["a timeout above the range", { timeout_ms: 300_001 }, "/timeout_ms"],
		["a capability of two parts", { capabilities: ["a:b"] }, "/capabilities/0"],
		["a capability twice", { capabilities: ["a:b:c", "a:b:c"] }, "/capabilities/1"],
		["a permission of four parts", { required_permissions: ["a:b:c:d"] }, "/required_permissions/0"],
		["an unknown precondition", { requires: ["weather"] }, "/requires/0"],
		["one that nothing can observe", { requires: ["workspace", "connection:github"] }, "/requires/1"],
		["an input that is no object", { input_schema: { type: "string" } }, "/input_schema/type"],
		["an input without type", { input_schema: {} }, "/input_schema/type"],
		["an output that does not compile", { output_schema: { type: 5 } }, "/output_schema/type"],
		["an unknown member", { autorun: true }, "/autorun"],
		[
			"an unknown member deep inside",
			{ implementation: { kind: "builtin", name: "pay", url: "x" } },
			"/implementation/url",
		],
		["an approval rule that does not compile", { approval: { mode: "when", when: "args.nope > 1" } }, "/approval/when"],
		["an approval rule on an optional", { approval: { mode: "when", when: "args.amount > 1" } }, "/approval/when"],
		[
			"a rule that is no condition",
			{ semantic_rules: [{ expr: "args.to", field: "to", message: "x" }] },
			"/semantic_rules/0/expr",
		],
		[
			"a rule about no field",
			{ semantic_rules: [{ expr: "args.to != ''", field: "nope", message: "x" }] },
			"/semantic_rules/0/field",
		],
		[
			"a rule about a prototype",
			{ semantic_rules: [{ expr: "args.to != ''", field: "constructor", message: "x" }] },
			"/semantic_rules/0/field",
		],
		[
			"code without its argument",
			{ implementation: { kind: "code", language: "javascript", source: "/code" } },
			"/implementation/source",
		],
		["communication without idempotency", { category: "communication" }, "/idempotency/mode"],
		["a cached write", { cache: { tier: "static" } }, "/cache"],
		["a snapshot of a write", { fallback: "snapshot" }, "/fallback"],
		["itself as fallback", { fallback: { tool_id: "pay@1" } }, "/fallback/tool_id"],
		[
			"a fallback argument that does not compile",
			{ fallback: { tool_id: "other", args: { to: "args.nope" } } },
			"/fallback/args/to",
		],
		["itself as dependency", { depends_on: ["pay"] }, "/depends_on/0"],
		["itself to reconcile", { on_unknown: "reconcile:pay" }, "/on_unknown"],
		["a reconciler that is none", { on_unknown: "reconcile:../x" }, "/on_unknown"],
		[
			"an idempotency target that is no field",
			{ idempotency: { mode: "key", target: "/nope" } },
			"/idempotency/target",
		],
	])("refuses %s", (_, more, field) => {
		expect(fields(more)).toContain(field);
	});

	it("names all errors of one descriptor at once", () => {
		expect(
			fields({
				name: "No",
				timeout_ms: 1,
				capabilities: ["x"],
				extra: 1,
				input_schema: { type: "object", properties: { a: { type: "nope" } } },
			}).sort(),
		).toEqual(["/capabilities/0", "/extra", "/input_schema/properties/a/type", "/name", "/timeout_ms"].sort());
	});

	it("names what is missing by its issue", () => {
		const checked = checkDescriptor({}, digest);
		expect(
			checked.ok
				? []
				: checked.errors.filter((error) => error.issue === "required_field_missing").map((error) => error.field),
		).toEqual(
			expect.arrayContaining([
				"/tool_id",
				"/name",
				"/version",
				"/description",
				"/category",
				"/input_schema",
				"/implementation",
			]),
		);
	});

	it.each([null, 5, "x", [], [1]])("refuses %j as a descriptor", (input) => {
		expect(checkDescriptor(input, digest).ok).toBe(false);
	});

	it("refuses a giant and a cycle without throwing", () => {
		expect(fields({ description: "x".repeat(200_000) })).toEqual([""]);
		const loop: JsonObject = {};
		loop.loop = loop;
		expect(fields({ input_schema: loop })).toEqual([""]);
	});

	it("warns when a description sets no limit", () => {
		const warnings = (description: string): number => {
			const checked = checkDescriptor(sampleDescriptor({ description }), digest);
			return checked.ok ? checked.warnings.length : -1;
		};
		expect(warnings("Pays an amount.")).toBe(1);
		expect(warnings("Pays an amount. Does not refund.")).toBe(0);
	});
});

describe("judgePublish", () => {
	const base = object(
		{ to: { type: "string" }, n: { type: "integer", minimum: 1 }, kind: { enum: ["a", "b"] } },
		{ required: ["to"] },
	);
	const outcome = (input_schema: JsonObject, version = "1.1.0"): string =>
		judgePublish([sampleTool({ input_schema: base }, digest)], (() => sampleTool({ input_schema, version }, digest))())
			.outcome;

	it("answers same for the same content and conflict for other content under one version", () => {
		const stored = sampleTool({}, digest);
		expect(judgePublish([stored], stored).outcome).toBe("same");
		expect(judgePublish([stored], sampleTool({ description: "Other. Not this." }, digest)).outcome).toBe(
			"version_conflict",
		);
		expect(
			judgePublish([sampleTool({ version: "1.2.0" }, digest)], sampleTool({ version: "1.1.0" }, digest)).outcome,
		).toBe("version_conflict");
		expect(judgePublish([], stored).outcome).toBe("created");
	});

	it.each<[string, JsonObject, string]>([
		[
			"an optional field more",
			{
				properties: { ...(base.properties as JsonObject), extra: { type: "string" } },
				required: ["to"],
				type: "object",
			},
			"created",
		],
		[
			"a wider type",
			object(
				{ ...(base.properties as JsonObject), n: { type: ["integer", "string"], minimum: 1 } },
				{ required: ["to"] },
			),
			"created",
		],
		[
			"an enum value more",
			object({ ...(base.properties as JsonObject), kind: { enum: ["a", "b", "c"] } }, { required: ["to"] }),
			"created",
		],
		["nothing required any more", object(base.properties as JsonObject), "created"],
		[
			"a required field with a default",
			object({ ...(base.properties as JsonObject), m: { type: "integer", default: 1 } }, { required: ["to", "m"] }),
			"created",
		],
		[
			"a removed field",
			object({ to: { type: "string" }, n: { type: "integer", minimum: 1 } }, { required: ["to"] }),
			"incompatible_change",
		],
		[
			"a new required field",
			object({ ...(base.properties as JsonObject), m: { type: "integer" } }, { required: ["to", "m"] }),
			"incompatible_change",
		],
		[
			"a narrower type",
			object({ ...(base.properties as JsonObject), to: { type: "integer" } }, { required: ["to"] }),
			"incompatible_change",
		],
		[
			"an enum value less",
			object({ ...(base.properties as JsonObject), kind: { enum: ["a"] } }, { required: ["to"] }),
			"incompatible_change",
		],
		[
			"a stricter bound",
			object({ ...(base.properties as JsonObject), n: { type: "integer", minimum: 2 } }, { required: ["to"] }),
			"incompatible_change",
		],
		[
			"a new pattern",
			object({ ...(base.properties as JsonObject), to: { type: "string", pattern: "^x" } }, { required: ["to"] }),
			"incompatible_change",
		],
		[
			"no further fields",
			object(base.properties as JsonObject, { required: ["to"], additionalProperties: false }),
			"incompatible_change",
		],
	])("%s", (_, schema, expected) => {
		expect(outcome(schema)).toBe(expected);
		expect(outcome(schema, "2.0.0")).toBe("created");
	});
});
