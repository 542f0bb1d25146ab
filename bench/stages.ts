/**
 * The synchronous heart of a call, in microseconds and without any I/O: parse, permission, normalize, freeze (the SHA-256
 * included), policy and approval of one call with 1 KB of arguments. Plain Node, the same V8 as workerd's within a version
 * or two.
 */
import { createHash } from "node:crypto";
import { judgeApproval } from "#core/approval/ask.ts";
import type { Scope } from "#core/expression.ts";
import { type JsonObject, parseJson } from "#core/json.ts";
import { freeze } from "#core/normalize/freeze.ts";
import { normalize } from "#core/normalize/normalize.ts";
import { judgeCall, judgeTool, mostRestrictive } from "#core/policy/permits.ts";
import { checkDescriptor, compileTool } from "#core/registry/register.ts";
import { percentile, timesOf } from "./load.ts";

const digest = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex");
const text = { type: "string", maxLength: 2_000 };
const DESCRIPTOR = {
	tool_id: "bench_order",
	name: "bench_order",
	version: "1.0.0",
	description: "Places an order of several lines. It does not cancel orders.",
	category: "interface",
	input_schema: {
		type: "object",
		properties: {
			customer: text,
			currency: { type: "string", enum: ["EUR", "USD", "CNY"], default: "EUR" },
			total: { type: "integer", minimum: 0 },
			lines: {
				type: "array",
				items: {
					type: "object",
					properties: { sku: text, quantity: { type: "integer", minimum: 1 }, note: text },
					required: ["sku", "quantity"],
					additionalProperties: false,
				},
			},
			callback: { type: "string", format: "uri" },
		},
		required: ["customer", "total", "lines"],
		additionalProperties: false,
	},
	implementation: { kind: "builtin", name: "echo" },
	effect: "write",
	risk: "medium",
	approval: { mode: "when", when: "args.total > 100000" },
	semantic_rules: [{ expr: "args.total >= 0", field: "/total", message: "a total is not negative" }],
	required_permissions: ["orders:write:order"],
};
/** About 1 KB of JSON text, as a planner sends it. */
const ARGUMENTS = JSON.stringify({
	customer: "ACME Trading GmbH & Co. KG",
	total: 48_210,
	lines: Array.from({ length: 12 }, (_, n) => ({
		sku: `SKU-${1000 + n}`,
		quantity: n + 1,
		note: "deliver to the rear entrance",
	})),
	callback: "https://api.example.com/orders/done",
});

export type StageFigures = {
	readonly argument_bytes: number;
	readonly p50_us: number;
	readonly p95_us: number;
	readonly mean_us: number;
};

/** Measures 20,000 calls, every one of which must come out allowed and hashed. */
export function measureStages(): StageFigures {
	const checked = checkDescriptor(DESCRIPTOR, digest);
	if (!checked.ok) throw new Error(`the bench's own descriptor is refused: ${JSON.stringify(checked.errors)}`);
	const { descriptor, definition_hash } = checked;
	const tool = compileTool({
		descriptor,
		definition_hash,
		status: "online",
		created_at: "2026-01-01T00:00:00.000Z",
		offline_since: null,
	});
	const authority = {
		policy_rev: 1,
		roles: ["agent_operator"],
		permissions: ["*:read:*", "tools:*:*", "orders:write:*"],
		tools: [],
		data_scope: "all" as const,
	};
	const context = {
		principal: { id: "usr_bench", kind: "agent", roles: ["agent_operator"] },
		tenant_id: "tenant_bench",
		session_id: "sess_bench",
		run_id: "run_bench",
		now: 1,
		environment: "bench",
	};

	const once = (): string => {
		const parsed = parseJson(ARGUMENTS);
		if (!parsed.ok) throw new Error(parsed.message);
		const value = parsed.value as JsonObject;
		const permitted = judgeTool(authority, descriptor);
		const scope = { args: value, context } as Scope;
		const normal = normalize(tool, value, { scope, judgeUrl: () => ({ ok: true }) });
		if (!normal.ok) throw new Error(JSON.stringify(normal.refusal));
		const surroundings = { cwd: null, env: null, timeout_ms: 0, target: null, egress: null, credential_version: null };
		const frozen = freeze(
			{ tenant_salt: "salt", descriptor, definition_hash, arguments: normal.arguments, context: surroundings },
			digest,
		);
		const frozenScope = { ...scope, args: normal.arguments } as Scope;
		const verdict = mostRestrictive(
			permitted,
			judgeCall(authority, descriptor, normal.arguments, frozenScope),
			judgeApproval(tool, normal.arguments, frozenScope),
		);
		if (verdict.decision !== "allow") throw new Error(`\`${verdict.decision}\`: ${verdict.reason}`);
		return frozen.input_hash;
	};

	const sorted = timesOf(once);
	return {
		argument_bytes: ARGUMENTS.length,
		p50_us: percentile(sorted, 0.5),
		p95_us: percentile(sorted, 0.95),
		mean_us: sorted.reduce((sum, time) => sum + time, 0) / sorted.length,
	};
}
