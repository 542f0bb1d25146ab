/**
 * The tool descriptor (R1) as it crosses the wire, is stored and is hashed: one vocabulary. Shape only; what needs the
 * whole descriptor (schemas that compile, expressions that parse, relations between fields) is in `register.ts`.
 */
import * as z from "zod";
import {
	DESCRIPTION_MAX_CHARS,
	SEMANTIC_CHECK_MAX_CHARS,
	TOOL_TIMEOUT_MAX_MS,
	TOOL_TIMEOUT_MIN_MS,
} from "../limits.ts";

/** A registered tool's own id, or an MCP projection's (M2). */
export const TOOL_ID = /^(?:[a-z][a-z0-9_]{0,63}|mcp:[a-z0-9_-]{1,64}:tool:[A-Za-z0-9_.-]{1,128})$/;
export const TOOL_NAME = /^[a-z][a-z0-9_]{0,63}$/;
export const SEMVER = /^(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})$/;

/** `category` is closed and sets default limits (C). */
export const CATEGORIES = ["data_retrieval", "compute", "retrieval", "interface", "communication"] as const;
export const EFFECTS = ["read", "write", "external"] as const;
export const RISKS = ["low", "medium", "high"] as const;
export const VISIBILITIES = ["public", "internal", "legacy"] as const;

const text = (max: number) => z.string().max(max);
const name = z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/, "lowercase letters, digits, `_` and `-`");
const httpAuth = z.discriminatedUnion("type", [
	z.strictObject({ type: z.literal("none") }),
	z.strictObject({
		type: z.literal("api_key"),
		in: z.enum(["header", "query"]).default("header"),
		name: text(128),
		secret: name,
	}),
	z.strictObject({ type: z.literal("bearer"), secret: name }),
	z.strictObject({ type: z.literal("basic"), secret: name }),
	z.strictObject({
		type: z.literal("oauth2_client"),
		token_url: text(2048),
		client_id: text(256),
		scope: text(512).optional(),
		secret: name,
	}),
]);
export type HttpAuth = z.infer<typeof httpAuth>;

/** Per kind; unknown members are refused (contract). */
export const implementation = z.discriminatedUnion("kind", [
	z.strictObject({
		kind: z.literal("http"),
		method: z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]),
		url: text(2048),
		query: z.record(z.string(), z.string()).optional(),
		headers: z.record(z.string(), z.string()).optional(),
		body: z.enum(["json", "form", "none"]).optional(),
		auth: httpAuth.optional(),
		/** The only hosts that the tool's requests and their redirects may go to: `api.example.com`, `*.example.com`. */
		allowed_hosts: z.array(text(260)).min(1).max(50).optional(),
	}),
	z.strictObject({ kind: z.literal("sql"), dataset: name, sql: text(20_000) }),
	z.strictObject({ kind: z.literal("retrieval"), index: name, mode: z.enum(["fulltext", "vector", "hybrid"]) }),
	z.strictObject({ kind: z.literal("wasm"), module: name }),
	z.strictObject({
		kind: z.literal("code"),
		language: z.enum(["javascript", "python"]),
		source: text(128).default("/code"),
		inputs: text(128).optional(),
	}),
	z.strictObject({ kind: z.literal("notify"), channel: text(128) }),
	z.strictObject({ kind: z.literal("builtin"), name }),
]);
export type Implementation = z.infer<typeof implementation>;
export type ToolKind = Implementation["kind"];

const jsonSchema = z.record(z.string(), z.unknown());

export const toolDescriptor = z.strictObject({
	tool_id: z.string().regex(TOOL_ID, "`^[a-z][a-z0-9_]{0,63}$`"),
	name: z.string().regex(TOOL_NAME, "`^[a-z][a-z0-9_]{0,63}$`"),
	version: z.string().regex(SEMVER, "a version `MAJOR.MINOR.PATCH`"),
	description: z.string().min(1).max(DESCRIPTION_MAX_CHARS),
	category: z.enum(CATEGORIES),
	capabilities: z.array(text(256)).max(50).default([]),
	tags: z.array(text(64)).max(50).default([]),
	input_schema: jsonSchema,
	output_schema: jsonSchema.optional(),
	implementation,
	visibility: z.enum(VISIBILITIES).default("public"),
	/** Decision 19: missing means write. */
	effect: z.enum(EFFECTS).default("write"),
	risk: z.enum(RISKS).default("medium"),
	/** Decision 19: missing means always. */
	approval: z
		.discriminatedUnion("mode", [
			z.strictObject({ mode: z.literal("never") }),
			z.strictObject({ mode: z.literal("always") }),
			z.strictObject({ mode: z.literal("when"), when: text(2048) }),
		])
		.default({ mode: "always" }),
	semantic_rules: z
		.array(z.strictObject({ expr: text(2048), field: text(256), message: text(512) }))
		.max(50)
		.default([]),
	/** A program over `args`, the normalized arguments, that returns a list of `{field, message}`: empty where they are fine (V2). */
	semantic_check: z
		.strictObject({ language: z.literal("javascript"), source: z.string().min(1).max(SEMANTIC_CHECK_MAX_CHARS) })
		.optional(),
	required_permissions: z.array(text(256)).max(50).default([]),
	timeout_ms: z.number().int().min(TOOL_TIMEOUT_MIN_MS).max(TOOL_TIMEOUT_MAX_MS).optional(),
	rate_limit: z
		.strictObject({ requests_per_minute: z.number().int().min(1), burst: z.number().int().min(1).optional() })
		.optional(),
	health_check: z.strictObject({ endpoint: text(2048), interval_seconds: z.number().int().min(5) }).optional(),
	resource_overrides: z.record(z.string(), z.number()).optional(),
	idempotency: z
		.strictObject({ mode: z.enum(["none", "natural", "key"]), target: text(256).optional() })
		.default({ mode: "none" }),
	cache: z
		.strictObject({
			tier: z.enum(["realtime", "near_realtime", "static"]),
			ttl_seconds: z.number().int().min(1).optional(),
			scope: z.enum(["principal", "tenant"]).default("principal"),
		})
		.optional(),
	requires: z.array(text(128)).max(20).default([]),
	depends_on: z.array(text(256)).max(50).default([]),
	fallback: z
		.union([
			z.literal("snapshot"),
			z.strictObject({ tool_id: text(256), args: z.record(z.string(), z.string()).default({}) }),
		])
		.optional(),
	on_unknown: z
		.union([z.enum(["report", "ask", "fail"]), z.string().regex(/^reconcile:[a-z][a-z0-9_]{0,63}$/)])
		.default("report"),
	/** Tools whose stored results a success of this one makes stale (I7). */
	invalidates: z.array(text(256)).max(20).default([]),
	criticality: z.enum(["core", "normal", "non_core"]).default("normal"),
	cost: z.strictObject({ amount: z.number().min(0), currency: text(8).default("USD") }).optional(),
	example_queries: z.array(text(512)).max(20).default([]),
	aliases: z.array(text(64)).max(20).default([]),
});
/** As stored: every default filled in. */
export type ToolDescriptor = z.infer<typeof toolDescriptor>;

/** One published version, content-addressed (decision 12). */
export type ToolVersion = {
	readonly definition_hash: string;
	readonly descriptor: ToolDescriptor;
	/** `offline` since a DELETE; kept for audit. */
	readonly status: "online" | "offline";
	readonly created_at: string;
	readonly offline_since: string | null;
};
