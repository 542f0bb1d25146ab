/**
 * What one call asks of its tool's gate, and the keys it asks under (I5, I7, decisions 30 and 34). The words that core
 * and ToolGate share are here. It judges no permission: a gate is asked after policy and approval. Called by the run.
 */
import { atPointer, canonicalJson, type Digest, type JsonObject } from "../json.ts";
import type { InvokeOutcome } from "../outcome.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";
import { repeatable } from "./repeatable.ts";
import { cacheTtl } from "./result-cache.ts";

/**
 * How an attempt ended, for the breaker (I3). `neutral`: the tool answered, and not with a fault of its own (4xx other than
 * 429). `not_asked`: it never got that far (refused, cancelled before it was sent), which says nothing about the tool.
 */
export type GateOutcome = "success" | "fault" | "neutral" | "not_asked";

export type Criticality = ToolDescriptor["criticality"];
export type RateLimit = { readonly requests_per_minute: number; readonly burst: number };

export type BreakerView = {
	readonly state: "closed" | "open" | "half_open";
	readonly until: number | null;
	readonly samples: number;
	readonly failures: number;
};

export type GateNeeds = {
	readonly criticality: Criticality;
	readonly rate_limit: RateLimit | null;
	/** Keyed idempotency: one key per tool + arguments + session + principal + target. */
	readonly claim: { readonly key: string } | null;
	/** Declared reads: one key per tool version + arguments + data scope. */
	readonly cache: { readonly key: string; readonly ttl_ms: number } | null;
	/** The last good result under this key may stand in when the tool is down (`fallback: snapshot`). */
	readonly snapshot: { readonly key: string } | null;
};

export type GateCall = {
	readonly arguments: JsonObject;
	readonly session_id: string;
	readonly principal_id: string;
	readonly definition_hash: string;
	/** What of the data the caller may see at present (I7). In the key, so that a narrowed scope finds no wider result. */
	readonly data_scope?: string;
};

/**
 * Null when the descriptor declares nothing that needs a pass: no rate limit, no key, no cache, no snapshot. A cache or
 * a snapshot of anything but a read is as good as not declared (registration refuses both, O13). The allowance of a
 * minute may be spent at once unless `burst` says less.
 */
export function gateNeeds(descriptor: ToolDescriptor, call: GateCall, digest: Digest): GateNeeds | null {
	const { rate_limit, criticality } = descriptor;
	const ttl_ms = cacheTtl(descriptor);
	const needs: GateNeeds = {
		criticality,
		rate_limit:
			rate_limit === undefined
				? null
				: {
						requests_per_minute: rate_limit.requests_per_minute,
						burst: rate_limit.burst ?? rate_limit.requests_per_minute,
					},
		claim: repeatable(descriptor) === "keyed" ? { key: claimKey(descriptor, call, digest) } : null,
		cache: ttl_ms === null ? null : { key: readKey("cache", descriptor, call, digest), ttl_ms },
		snapshot:
			descriptor.fallback === "snapshot" && descriptor.effect === "read"
				? { key: readKey("snapshot", descriptor, call, digest) }
				: null,
	};
	const { claim, cache, snapshot } = needs;
	return needs.rate_limit === null && claim === null && cache === null && snapshot === null ? null : needs;
}

/** Needs of a call that only asks whether the breaker lets it through. */
export function breakerOnly(descriptor: ToolDescriptor): GateNeeds {
	return { criticality: descriptor.criticality, rate_limit: null, claim: null, cache: null, snapshot: null };
}

/** The name of the gate's object. Tenant ids hold no colon, so no two pairs share a name. */
export function gateName(tenant_id: string, tool_id: string): string {
	return `${tenant_id}:${tool_id}`;
}

/** An attempt's outcome as the breaker counts it. A fault in submitted code is the code's, not the tool's. */
export function gateOutcome(outcome: InvokeOutcome): GateOutcome {
	if (outcome.kind === "success") return "success";
	if (outcome.kind === "timeout") return "fault";
	switch (outcome.code) {
		case "rate_limited":
		case "connection_lost":
		case "timeout":
		case "invalid_response":
		case "dataset_error":
			return "fault";
		case "http_error":
		case "delivery_failed":
			return outcome.http_status !== undefined && outcome.http_status < 500 && outcome.http_status !== 429
				? "neutral"
				: "fault";
		case "code_error":
		case "cpu_exceeded":
		case "wall_exceeded":
		case "oom":
		case "instruction_limit":
		case "redirect_refused":
		case "response_too_large":
			return "neutral";
		// A write that may have acted is a fault of the answer, whatever becomes of the call (decision 31).
		case "outcome_unknown":
			return "fault";
		case "security_blocked":
		case "invalid_arguments":
		case "not_configured":
		case "circuit_open":
		case "interrupted":
		case "internal":
			return "not_asked";
	}
}

/** Not the version: a new release of a tool must not pay again. Each key is of one purpose and fits no other. */
function claimKey({ tool_id, idempotency }: ToolDescriptor, call: GateCall, digest: Digest): string {
	const { arguments: args, session_id, principal_id } = call;
	const target = idempotency.target === undefined ? null : (atPointer(args, idempotency.target) ?? null);
	return digest(canonicalJson(["claim", tool_id, args, session_id, principal_id, target]));
}

/** Another principal's result is another key, unless the tool declares that all of the tenant see the same. */
function readKey(purpose: "cache" | "snapshot", descriptor: ToolDescriptor, call: GateCall, digest: Digest): string {
	const { tool_id, version, cache } = descriptor;
	const whose = cache?.scope === "tenant" ? ["tenant"] : ["principal", call.principal_id];
	const scope = [...whose, call.data_scope ?? null];
	return digest(canonicalJson([purpose, tool_id, version, call.definition_hash, call.arguments, scope]));
}
