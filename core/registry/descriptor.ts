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
		url: text(2048).describe(
			"an RFC 6570 template filled from the arguments, e.g. `https://api.example.com/orders/{id}`; what it does not take goes to query or body",
		),
		query: z.record(z.string(), z.string()).optional().describe("fixed query parameters"),
		headers: z.record(z.string(), z.string()).optional().describe("fixed headers; a credential belongs in `auth`"),
		body: z
			.enum(["json", "form", "none"])
			.optional()
			.describe("how arguments travel with POST, PUT and PATCH; left out: `json`"),
		auth: httpAuth.optional().describe("how the request is authorized; `secret` is a name of `/v1/secrets`"),
		allowed_hosts: z
			.array(text(260))
			.min(1)
			.max(50)
			.optional()
			.describe("the only hosts that requests and redirects may go to: `api.example.com`, `*.example.com`"),
	}),
	z.strictObject({
		kind: z.literal("sql"),
		dataset: name.describe("a data set of this tenant, as configured in `BELAY_DATASETS`"),
		sql: text(20_000).describe(
			"one fixed SELECT with `:name` parameters, bound from the arguments; an absent argument is NULL, a list is JSON text",
		),
	}),
	z.strictObject({
		kind: z.literal("retrieval"),
		index: name.describe("an index of a data set; the tool takes `query` and `limit`"),
		mode: z.enum(["fulltext", "vector", "hybrid"]),
	}),
	z.strictObject({ kind: z.literal("wasm"), module: name.describe("a built-in module, e.g. `text_stats`") }),
	z.strictObject({
		kind: z.literal("code"),
		language: z.enum(["javascript", "python"]),
		source: text(128).default("/code").describe("JSON Pointer to the argument that holds the program"),
		inputs: text(128).optional().describe("JSON Pointer to the argument that the program finds as `inputs`"),
	}),
	z.strictObject({
		kind: z.literal("notify"),
		channel: text(128).describe("name of a channel, see `POST /v1/channels`; the tool takes `subject` and `message`"),
	}),
	z.strictObject({ kind: z.literal("builtin"), name }),
]);
export type Implementation = z.infer<typeof implementation>;
export type ToolKind = Implementation["kind"];

const LOWER_NAME = "lowercase letters, digits and `_`, a letter first, 64 characters at most";
const jsonSchema = z.record(z.string(), z.unknown());

export const toolDescriptor = z.strictObject({
	tool_id: z
		.string()
		.regex(TOOL_ID, LOWER_NAME)
		.describe(
			"the tool's id, as in the path: lowercase letters, digits and `_`, a letter first, 64 characters at most, e.g. `sales_query`",
		),
	name: z
		.string()
		.regex(TOOL_NAME, LOWER_NAME)
		.describe("the tool's short name, of the same form; a planner calls the tool by its id"),
	version: z
		.string()
		.regex(SEMVER, "a version `MAJOR.MINOR.PATCH`")
		.describe(
			"`MAJOR.MINOR.PATCH`, e.g. `1.0.0`; a version's content never changes, an incompatible input needs a new major",
		),
	description: z
		.string()
		.min(1)
		.max(DESCRIPTION_MAX_CHARS)
		.describe("for the planner, in words: what the tool does, what it does not do, and which tool to use instead"),
	category: z
		.enum(CATEGORIES)
		.describe(
			"sets default limits; also the domain of who may decide its approvals (`approval:decide:<category>`); `communication` needs `idempotency`",
		),
	capabilities: z
		.array(text(256))
		.max(50)
		.default([])
		.describe("what it can do, as `domain:action:object`, e.g. `finance:query:sales`"),
	tags: z.array(text(64)).max(50).default([]).describe("words to find it by, e.g. `finance`"),
	input_schema: jsonSchema.describe(
		"JSON Schema 2020-12 of the arguments, `type: object`; `x-belay-kind` (`url`, `sql`, `path`, `domain`, `email`, `shell`, `code`) marks texts to check",
	),
	output_schema: jsonSchema.optional().describe("JSON Schema of the result"),
	implementation: implementation.describe("how the tool is invoked: one form per `kind`; unknown members are refused"),
	visibility: z
		.enum(VISIBILITIES)
		.default("public")
		.describe(
			"`public`: offered to planners; `internal`: only for other tools to name; `legacy`: hidden too, kept for older integrations",
		),
	effect: z
		.enum(EFFECTS)
		.default("write")
		.describe(
			"`read` changes nothing and may be repeated and cached; `write` changes data; `external` reaches other people; left out: `write`",
		),
	risk: z.enum(RISKS).default("medium").describe("shown to who decides; links for `high` may be view-only"),
	approval: z
		.discriminatedUnion("mode", [
			z.strictObject({ mode: z.literal("never") }),
			z.strictObject({ mode: z.literal("always") }),
			z.strictObject({
				mode: z.literal("when"),
				when: text(2048).describe(
					"CEL over `args` and `context`, true where a person is asked, e.g. `args.amount > 100`",
				),
			}),
		])
		.default({ mode: "always" })
		.describe("whether a person decides each call first; left out: `always`"),
	semantic_rules: z
		.array(
			z.strictObject({
				expr: text(2048).describe("CEL that holds for good arguments, e.g. `args.from <= args.to`"),
				field: text(256).describe("the argument to mend: a name or a JSON Pointer, e.g. `/from`"),
				message: text(512).describe("what the planner is told, in words"),
			}),
		)
		.max(50)
		.default([])
		.describe("rules that the arguments keep, in CEL over `args` and `context`"),
	/** A program over `args`, the normalized arguments, that returns a list of `{field, message}`: empty where they are fine (V2). */
	semantic_check: z
		.strictObject({ language: z.literal("javascript"), source: z.string().min(1).max(SEMANTIC_CHECK_MAX_CHARS) })
		.optional()
		.describe(
			"a JavaScript program over `args` that returns a list of `{field, message}`, empty where they are fine, e.g. `return args.n % 2 ? [{field: '/n', message: 'must be even'}] : []`",
		),
	required_permissions: z
		.array(text(256))
		.max(50)
		.default([])
		.describe(
			"what a caller needs, as `domain:action:object`, e.g. `finance:query:sales`; without it the tool does not exist for them",
		),
	timeout_ms: z
		.number()
		.int()
		.min(TOOL_TIMEOUT_MIN_MS)
		.max(TOOL_TIMEOUT_MAX_MS)
		.optional()
		.describe("milliseconds that one attempt may take, e.g. `5000`"),
	rate_limit: z
		.strictObject({ requests_per_minute: z.number().int().min(1), burst: z.number().int().min(1).optional() })
		.optional()
		.describe(
			"attempts per minute over the whole tenant, and how many may come at once, e.g. `{requests_per_minute: 60, burst: 10}`",
		),
	health_check: z
		.strictObject({ endpoint: text(2048), interval_seconds: z.number().int().min(5) })
		.optional()
		.describe("a URL and seconds between two looks; kept and shown, nothing asks it yet"),
	resource_overrides: z
		.record(z.string(), z.number())
		.optional()
		.describe("limits by name, numbers; kept and shown, nothing reads them yet"),
	idempotency: z
		.strictObject({ mode: z.enum(["none", "natural", "key"]), target: text(256).optional() })
		.default({ mode: "none" })
		.describe(
			"`natural`: twice is the same as once; `key`: a call like one that was made gets its result, `target` (a JSON Pointer) being whom it is for; `none`: it is never repeated by itself",
		),
	cache: z
		.strictObject({
			tier: z.enum(["realtime", "near_realtime", "static"]),
			ttl_seconds: z.number().int().min(1).optional(),
			scope: z.enum(["principal", "tenant"]).default("principal"),
		})
		.optional()
		.describe(
			"results that may be used again, reads only: `realtime` 10 minutes, `near_realtime` 1 hour, `static` 24 hours, or `ttl_seconds`; per `principal` or `tenant`",
		),
	requires: z
		.array(text(128))
		.max(20)
		.default([])
		.describe("what has to be there for it to be offered: `workspace` (the run names one)"),
	depends_on: z
		.array(text(256))
		.max(50)
		.default([])
		.describe(
			"tools that it builds on, `tool_id` or `tool_id@major`, e.g. `sales_query@1`; kept and shown, nothing checks it yet",
		),
	fallback: z
		.union([
			z.literal("snapshot"),
			z.strictObject({ tool_id: text(256), args: z.record(z.string(), z.string()).default({}) }),
		])
		.optional()
		.describe(
			"what stands in when it fails: another tool, its arguments as CEL over the failed call's (none: the same ones), or `snapshot`, the last result of this read",
		),
	on_unknown: z
		.union([
			z.enum(["report", "ask", "fail"]),
			z.string().regex(/^reconcile:[a-z][a-z0-9_]{0,63}$/, "`reconcile:` and a tool id"),
		])
		.default("report")
		.describe(
			"what follows an outcome that nobody knows: `report` it to the planner, `ask` a person, `fail` the run, or `reconcile:<tool_id>`, ask a tool that knows (it gets `tool_call_id`)",
		),
	invalidates: z
		.array(text(256))
		.max(20)
		.default([])
		.describe("ids of tools whose stored results a success of this one makes stale"),
	criticality: z
		.enum(["core", "normal", "non_core"])
		.default("normal")
		.describe("how soon its circuit breaker opens: `core` after few failures, `non_core` after many"),
	cost: z
		.strictObject({ amount: z.number().min(0), currency: text(8).default("USD") })
		.optional()
		.describe(
			"of one attempt, in whole units of the currency, e.g. `{amount: 0.002}` US dollars; counted against `limits.max_cost_micro_usd`",
		),
	example_queries: z.array(text(512)).max(20).default([]).describe("what users say when this tool fits"),
	aliases: z.array(text(64)).max(20).default([]).describe("other names that people know it by"),
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
