import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { FAULT_CODES, failed } from "../outcome.ts";
import { type ToolDescriptor, toolDescriptor } from "../registry/descriptor.ts";
import { type GateCall, gateNeeds, gateOutcome } from "./gate-keys.ts";

const digest = (text: string): string => createHash("sha256").update(text).digest("hex");
const tool = (more: object): ToolDescriptor =>
	toolDescriptor.parse({
		tool_id: "t",
		name: "t",
		version: "1.0.0",
		description: "d",
		category: "interface",
		input_schema: {},
		implementation: { kind: "builtin", name: "b" },
		effect: "read",
		...more,
	});
const CALL: GateCall = { arguments: { a: 1, to: "x" }, session_id: "s", principal_id: "p", definition_hash: "d" };
const CACHED = tool({ cache: { tier: "static" }, fallback: "snapshot" });
const KEYED = tool({ effect: "write", idempotency: { mode: "key", target: "/to" } });
const needs = (descriptor: ToolDescriptor, more: Partial<GateCall> = {}) =>
	gateNeeds(descriptor, { ...CALL, ...more }, digest);
const cacheKey = (more: Partial<GateCall>, descriptor = CACHED) => needs(descriptor, more)?.cache?.key;
const claimKey = (more: Partial<GateCall>, descriptor = KEYED) => needs(descriptor, more)?.claim?.key;

describe("who needs a pass", () => {
	it("nobody without a declaration", () => {
		expect(needs(tool({}))).toBeNull();
		expect(needs(tool({ effect: "write", idempotency: { mode: "natural" } }))).toBeNull();
		expect(needs(tool({ idempotency: { mode: "key" } }))).toBeNull();
	});

	it("a rate limit, a key, a cache, a snapshot each on its own", () => {
		const rate = needs(tool({ rate_limit: { requests_per_minute: 6 } }));
		expect(rate).toEqual({
			criticality: "normal",
			rate_limit: { requests_per_minute: 6, burst: 6 },
			claim: null,
			cache: null,
			snapshot: null,
		});
		expect(needs(tool({ rate_limit: { requests_per_minute: 6, burst: 2 } }))?.rate_limit?.burst).toBe(2);
		expect(needs(KEYED)).toMatchObject({ rate_limit: null, cache: null, snapshot: null });
		expect(needs(CACHED)).toMatchObject({ claim: null, cache: { ttl_ms: 86_400_000 } });
		expect(needs(tool({ fallback: "snapshot" }))).toMatchObject({ cache: null, snapshot: { key: expect.any(String) } });
	});

	it("O13: never a cache or a snapshot for what acts, whatever is declared", () => {
		for (const effect of ["write", "external"]) {
			expect(needs({ ...CACHED, effect } as ToolDescriptor)).toBeNull();
			const keyed = needs({ ...CACHED, effect, idempotency: { mode: "key" } } as ToolDescriptor);
			expect(keyed).toMatchObject({ cache: null, snapshot: null, claim: { key: expect.any(String) } });
		}
	});
});

describe("keys", () => {
	it("do not depend on the order of members", () => {
		expect(cacheKey({ arguments: { to: "x", a: 1 } })).toBe(cacheKey({}));
		expect(claimKey({ arguments: { to: "x", a: 1 } })).toBe(claimKey({}));
	});

	it.each([
		["arguments", { arguments: { a: 2, to: "x" } }],
		["principal", { principal_id: "q" }],
		["session", { session_id: "z" }],
		["target", { arguments: { a: 1, to: "y" } }],
	] as [string, Partial<GateCall>][])("another %s is another claim", (_, more) => {
		expect(claimKey(more)).not.toBe(claimKey({}));
	});

	it("a new version or definition is the same claim and another cache entry", () => {
		expect(claimKey({ definition_hash: "e" }, { ...KEYED, version: "2.0.0" })).toBe(claimKey({}));
		expect(cacheKey({ definition_hash: "e" })).not.toBe(cacheKey({}));
		expect(cacheKey({}, { ...CACHED, version: "2.0.0" })).not.toBe(cacheKey({}));
	});

	it("another principal or a narrower data scope finds nothing, unless all of the tenant see the same", () => {
		const shared = tool({ cache: { tier: "static", scope: "tenant" } });
		expect(cacheKey({ principal_id: "q" })).not.toBe(cacheKey({}));
		expect(cacheKey({ principal_id: "q" }, shared)).toBe(cacheKey({}, shared));
		for (const descriptor of [CACHED, shared])
			expect(cacheKey({ data_scope: "own" }, descriptor)).not.toBe(cacheKey({ data_scope: "all" }, descriptor));
		expect(cacheKey({ session_id: "z" })).toBe(cacheKey({}));
		expect(cacheKey({ principal_id: "tenant" })).not.toBe(cacheKey({}, shared));
	});

	it("of one purpose fit no other", () => {
		expect(needs(CACHED)?.cache?.key).not.toBe(needs(CACHED)?.snapshot?.key);
	});
});

describe("what the breaker counts (I3)", () => {
	it.each([
		[500, "fault"],
		[503, "fault"],
		[429, "fault"],
		[400, "neutral"],
		[401, "neutral"],
		[404, "neutral"],
	] as const)("%i is %s", (http_status, as) => {
		expect(gateOutcome(failed(http_status === 429 ? "rate_limited" : "http_error", "x", { http_status }))).toBe(as);
	});

	it("refusals and cancellations say nothing; code is at fault for itself; faults and time-outs count", () => {
		const by = Object.groupBy(FAULT_CODES, (code) => gateOutcome(failed(code, "x")));
		expect(by.not_asked).toEqual([
			"security_blocked",
			"invalid_arguments",
			"not_configured",
			"circuit_open",
			"interrupted",
			"internal",
		]);
		expect(by.neutral).toEqual([
			"redirect_refused",
			"response_too_large",
			"code_error",
			"cpu_exceeded",
			"wall_exceeded",
			"oom",
			"instruction_limit",
		]);
		expect(gateOutcome({ kind: "timeout", phase: "body", effect: "none" })).toBe("fault");
		expect(gateOutcome({ kind: "success", result: 1, facts: [], notes: [] })).toBe("success");
	});
});
