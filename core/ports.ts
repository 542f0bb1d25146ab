/**
 * The roof: what core needs from the world. Adapters implement these; each port has one contract suite that its memory
 * twin (where one exists) and the real thing both pass. Nothing here is async by accident: what `apply()` uses is
 * synchronous (decision 1), what is gathered before or performed after is a promise.
 */

import type { Json, JsonObject } from "./json.ts";
import type { InvokeOutcome } from "./outcome.ts";
import type { Authority, Principal } from "./principal.ts";
import type { ToolDescriptor, ToolVersion } from "./registry/descriptor.ts";

/** The part of an AbortSignal that core names; shells pass the real thing. */
export interface CancelSignal {
	readonly aborted: boolean;
	readonly reason: unknown;
}

/** Milliseconds since the epoch. */
export type Clock = () => number;

/** One attempt of one frozen call, as an invoker sees it. It carries no permission: that has been judged. */
export type Invocation = {
	readonly tenant_id: string;
	readonly run_id: string;
	readonly tool_call_id: string;
	readonly attempt: number;
	readonly principal: Principal;
	readonly descriptor: ToolDescriptor;
	readonly arguments: JsonObject;
	/** What is left for this attempt, ms. */
	readonly timeout_ms: number;
	/** Sent upstream as `Idempotency-Key` when the tool is keyed. */
	readonly idempotency_key: string | null;
	readonly trace_id: string;
};

/** One per tool kind, in `adapters/`. Only the choke point calls it. Never throws; aborts when `signal` does. */
export interface ToolInvoker {
	invoke(invocation: Invocation, signal: CancelSignal): Promise<InvokeOutcome>;
}

/** The registry as runs read it (D1). */
export interface ToolCatalog {
	/** The newest online version of every tool of the tenant, ordered by tool_id. */
	listOnline(tenant_id: string): Promise<ToolVersion[]>;
}

/** Resolves what a principal's roles add up to, at the present policy revision. */
export interface AuthorityStore {
	resolve(tenant_id: string, principal_id: string, policy_rev: number): Promise<Authority | undefined>;
}

/** Secrets at rest: write-only over the API, opened only for an invocation of an allowed tool towards an allowed host. */
export interface SecretVault {
	/** The plain secret, or a refusal when it does not exist or is not meant for this tool and host. `host` is `host[:port]`; null for uses that leave no host (none today). */
	open(
		tenant_id: string,
		name: string,
		use: { tool_id: string; host: string | null },
	): Promise<{ ok: true; value: string; version: number } | { ok: false; reason: "unknown_secret" | "not_allowed" }>;
}

/** A planner's turn as the machine takes it: raw argument text, unrepaired. */
export type PlannerDecision = {
	readonly content: string | null;
	/** DeepSeek: kept and passed back with every assistant message that has tool calls. */
	readonly reasoning_content?: string | undefined;
	readonly tool_calls: readonly PlannedCall[];
	/** Anything but `tool_calls` or `stop` executes nothing. */
	readonly finish_reason: string;
	readonly usage: {
		readonly prompt_tokens: number;
		readonly completion_tokens: number;
		/** Of the prompt tokens, those that the provider had in its cache; absent where it does not say. */
		readonly prompt_cache_hit_tokens?: number;
	};
};
export type PlannedCall = {
	/** The provider's id; may repeat or be empty. */
	readonly id: string;
	readonly name: string;
	/** JSON text; null or empty stands for `{}`. */
	readonly arguments: string | null;
};

/** One function as a planner is offered it. */
export type FunctionDefinition = {
	readonly name: string;
	readonly description: string;
	readonly parameters: JsonObject;
};

export type PlannerMessage =
	| { readonly role: "system" | "user"; readonly content: string }
	| {
			readonly role: "assistant";
			readonly content: string | null;
			readonly reasoning_content?: string | undefined;
			readonly tool_calls?:
				| readonly { id: string; type: "function"; function: { name: string; arguments: string } }[]
				| undefined;
	  }
	| { readonly role: "tool"; readonly tool_call_id: string; readonly content: string };

export type PlannerRequest = {
	readonly model: string | null;
	readonly messages: readonly PlannerMessage[];
	readonly functions: readonly FunctionDefinition[];
	/** A tenant hash: isolates provider caches. */
	readonly user: string;
	readonly timeout_ms: number;
};

export type PlannerFault = {
	readonly code: "planner_unavailable" | "planner_error" | "planner_timeout" | "planner_rejected";
	readonly message: string;
	readonly retryable: boolean;
	readonly retry_after_ms?: number | undefined;
};

/**
 * A managed planner (openai, workers_ai). `onDelta` gets text as it streams; `call_as_text` says that the text looked like
 * a tool call (T11). Never throws.
 */
export interface Planner {
	plan(
		request: PlannerRequest,
		signal: CancelSignal,
		onDelta: (delta: { content: string }) => void,
	): Promise<{ ok: true; decision: PlannerDecision; call_as_text: boolean } | { ok: false; fault: PlannerFault }>;
}

/** One row of the run's append-only log on its way to D1 (index rows: small, masked, bodies by reference; decision 40). */
export type LedgerBatch = {
	readonly tenant_id: string;
	readonly run: RunIndexRow;
	readonly approvals: readonly ApprovalIndexRow[];
	readonly evidence: readonly EvidenceIndexRow[];
	readonly audit: readonly AuditRow[];
};
export type RunIndexRow = {
	readonly run_id: string;
	readonly session_id: string;
	readonly principal_id: string;
	readonly trace_id: string;
	readonly status: string;
	readonly goal: string;
	readonly planner_kind: string;
	readonly seq: number;
	readonly created_at: string;
	readonly updated_at: string;
};
export type ApprovalIndexRow = {
	readonly approval_id: string;
	readonly run_id: string;
	readonly tool_id: string;
	readonly domain: string;
	readonly status: string;
	readonly requested_by: string;
	readonly seq: number;
	readonly created_at: string;
	readonly expires_at: string;
};
export type EvidenceIndexRow = {
	readonly evidence_id: string;
	readonly run_id: string;
	readonly seq: number;
	readonly tool_call_id: string;
	readonly tool_id: string;
	readonly outcome: string;
	readonly input_hash: string;
	readonly hash: string;
	readonly at: string;
};
export type AuditRow = {
	readonly run_id: string | null;
	readonly seq: number;
	readonly trace_id: string;
	readonly at: string;
	readonly session_id: string | null;
	readonly principal_id: string;
	readonly tool_id: string | null;
	readonly action: string;
	readonly input_params: Json;
	readonly duration_ms: number | null;
	readonly permission_decision: string | null;
	readonly security_flags: readonly string[];
	readonly status: string;
};

/** D1 as runs write it: idempotent by (tenant, run, seq); a repeat adds nothing. */
export interface EvidenceLedger {
	append(batch: LedgerBatch): Promise<void>;
}

/** I10: a result too large to keep with its run. `text` is well-formed; whoever may read the run may read the artifact. */
export type NewArtifact = {
	readonly tenant_id: string;
	readonly run_id: string;
	readonly tool_call_id: string;
	/** One of Belay's own, never a tool's word: it is the content type of the answer. */
	readonly media_type: "application/json" | "text/plain";
	readonly text: string;
};
/** `bytes` of its UTF-8; `sha256` of them, 64 lowercase hex digits. */
export type StoredArtifact = { readonly artifact_id: string; readonly bytes: number; readonly sha256: string };

/** R2 as calls write it. Reading streams, which core has no type for: see `adapters/r2`. */
export interface ArtifactStore {
	/** Rejects when the store is away or too slow. A second call stores a second artifact. */
	put(artifact: NewArtifact): Promise<StoredArtifact>;
}

/** What TenantControl says, leased (decision 12). */
export type Lease = {
	readonly policy_rev: number;
	readonly registry_rev: number;
	readonly revoked_principals: readonly string[];
	/** Open halts: `scope` is `tenant` or `tool:<tool_id>`. */
	readonly halts: readonly { scope: string; since: number }[];
	/** Halts that overlap the last HALT_MEMORY_MS, open (`until` null) and ended, merged per scope: what `haltedMs` adds up. */
	readonly halted: readonly { scope: string; since: number; until: number | null }[];
	readonly open_breakers: readonly { tool_id: string; until: number }[];
	/** When this was said, ms since the epoch; it holds for LEASE_TTL_MS. */
	readonly issued_at: number;
};
