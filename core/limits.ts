/**
 * Every number that bounds something, with its unit last in the name and where it comes from.
 * Relations between them are asserted at load, so a change that breaks one fails at the first import.
 */
import { invariant } from "./invariant.ts";

/** F4: exposed tools per turn while ranking is not needed. */
export const EXPOSURE_LIMIT_TOOLS = 20;
/** L1: turns of a run before it rests. */
export const RUN_TURNS_DEFAULT = 20;
export const RUN_TURNS_MAX = 200;
/** I4: tool < turn < session. */
export const TOOL_TIMEOUT_DEFAULT_MS = 60_000;
export const TOOL_TIMEOUT_MIN_MS = 100;
export const TOOL_TIMEOUT_MAX_MS = 300_000;
export const TURN_TIMEOUT_DEFAULT_MS = 120_000;
export const TURN_TIMEOUT_MAX_MS = 3_600_000;
export const SESSION_TIMEOUT_DEFAULT_MS = 600_000;
export const SESSION_TIMEOUT_MAX_MS = 86_400_000;
/** Decision 6. */
export const APPROVAL_TTL_DEFAULT_MS = 72 * 3_600_000;
export const APPROVAL_TTL_MAX_MS = 30 * 86_400_000;
/** A link is short-lived (A4); it may be sent again while the approval lasts. */
export const LINK_TTL_MS = 24 * 3_600_000;
/** Decision 12: how long a run may act on what TenantControl said last. */
export const LEASE_TTL_MS = 5_000;
/** How long a Worker isolate may remember whom a key belongs to; revocation is caught within it, and by the lease. */
export const KEY_CACHE_TTL_MS = 5_000;
/** Decision 17: a halted run looks again. */
export const HALT_RECHECK_MS = 30_000;
/** Decision 17: past halts that a lease tells of, for approvals that they froze. No approval is older, but for its frozen time. */
export const HALT_MEMORY_MS = 30 * 86_400_000;
/** Intervals in a lease, about 70 bytes each, open ones first: every run of the tenant fetches it every LEASE_TTL_MS. */
export const HALTED_MAX_INTERVALS = 200;
/** Open halts of tools; as many of the tenant as a whole, counted apart, so that no flood of the one bars the other. */
export const HALTS_OPEN_MAX = 100;
/** The latest halts, which a tenant's object still lists when they have ended; the audit keeps all. */
export const HALTS_KEPT_MAX = 200;
/** How long a tenant's lease may wait for the platform's word; after that the last one stands. */
export const PLATFORM_ASK_MS = 1_000;
/** A breaker that nobody has called since is off the list: the next call asks the gate as if it were the first. */
export const BREAKER_MEMORY_MS = 3_600_000;
/** Open breakers in a lease, the latest ones; a run that is not told pays a hop (decision 16). */
export const BREAKERS_LEASED_MAX = 1_000;
/** `Prefer: wait` at most. */
export const PREFER_WAIT_MAX_S = 60;
/** Functions of a caller beside the governed ones: what OpenAI's clients send at most is 128, and half of that is unusable already. */
export const CALLER_FUNCTIONS_MAX = 64;
/** Their definitions as JSON text: the planner is sent them with every turn. */
export const CALLER_FUNCTIONS_MAX_BYTES = 131_072;
/** Calls in one planner turn: a bound against a runaway model, well above what providers emit. */
export const CALLS_PER_TURN_MAX = 64;
/** One planner turn, reasoning included: above the 384K output tokens that DeepSeek allows, at up to five characters each. */
export const PLANNER_OUTPUT_MAX_CHARS = 2_097_152;
/** Silence of a planner's stream before it counts as stalled: providers send keep-alives far more often. */
export const PLANNER_IDLE_MS = 60_000;
/** Decision 9: tool fetches in flight per run. */
export const CALLS_IN_FLIGHT_MAX = 4;
/** An attempt that outlives this says RUNNING by itself; a shorter one says it when it ends, and saves a transaction. */
export const RUNNING_AFTER_MS = 50;
/** A step that takes in a tool's answer and fails is tried again after each of these: together well within WATCHDOG_GRACE_MS. */
export const STEP_PAUSES_MS = [100, 400, 1_600] as const;
/**
 * A watchdog fires this long after an attempt's own limit: later than the limit, the storing of a large result (10 s), a report
 * to the gate (1 s) and the tries of a failing step (2.1 s) together, so it only finds lost attempts.
 */
export const WATCHDOG_GRACE_MS = 15_000;
/** A recorded run, handed from its object to that of its replay: RPC stops at 32 MiB, and a character may take two bytes. */
export const RECORDING_MAX_CHARS = 6_291_456;
/** Request body of the API. D1 and Durable Object rows stop at 2 MB; larger inputs are uploads, not JSON. */
export const BODY_MAX_BYTES = 1_048_576;
/** Arguments of one call as text. */
export const ARGUMENTS_MAX_BYTES = 262_144;
/** Depth of arguments and schemas: recursion stays far from the stack limit. */
export const JSON_DEPTH_MAX = 64;
/** Decision 2: bodies above this are stored in chunks. */
export const BODY_CHUNK_BYTES = 262_144;
/** Decision 2: results above this are answered by reference in run reads. */
export const RESULT_INLINE_MAX_BYTES = 65_536;
/** I10: a result above this is cut and stored, never handed to the planner whole. */
export const RESULT_MAX_BYTES = 8_388_608;
export const RESULT_TO_PLANNER_MAX_BYTES = 65_536;
/** I10, decision 2: from here on a result is an artifact; its run keeps a reference and a preview. */
export const ARTIFACT_MIN_BYTES = 262_144;
/** Half of what a planner gets of a result, so that reference, notes and frame fit beside it uncut. */
export const ARTIFACT_PREVIEW_MAX_BYTES = 32_768;
/** R2 gets this long for an upload, and for the beginning of an answer: a call or a client waits for it. */
export const ARTIFACT_STORE_MS = 10_000;
/** `GET` of a run shows this many last calls (decision 2). */
export const RUN_VIEW_CALLS = 50;
/** Records of one page of a run's evidence, and their text: a page travels from the object in one message (32 MiB at most). */
export const EVIDENCE_PAGE_MAX_ROWS = 1_000;
export const EVIDENCE_PAGE_MAX_CHARS = 4_194_304;
/**
 * Listeners of one run's events, and of one principal among them, so that nobody locks the others out: each costs the object
 * a socket and every event a send.
 */
export const LISTENERS_MAX = 128;
export const LISTENERS_OF_ONE_MAX = 32;
/** D3: rows of a query without an explicit limit. */
export const ROWS_DEFAULT = 1_000;
export const DESCRIPTOR_MAX_BYTES = 131_072;
/** R1/R2. */
export const DESCRIPTION_MAX_CHARS = 4_096;
/** S2/S4: code and WASM tools. Fuel, not time, bounds computation (decision 8). */
export const CODE_MEMORY_MAX_BYTES = 67_108_864;
export const WASM_MEMORY_MAX_PAGES = 256;
export const WASM_FUEL_DEFAULT = 100_000_000n;
export const PYTHON_FUEL_DEFAULT = 4_000_000_000n;
export const JAVASCRIPT_FUEL_DEFAULT = 4_000_000_000n;
/** What a request for fuel is lowered to: about 1 to 3 s of one processor (measured: 0.04 to 0.3 s per 10^9). */
export const FUEL_MAX = 10_000_000_000n;
/** Decision 8: engine instances alive at once in one isolate, and what each may grow to (32 MiB). */
export const ENGINE_INSTANCES_MAX = 2;
export const ENGINE_MEMORY_MAX_PAGES = 512;
/** Result of one sandbox run as JSON text. It travels whole between isolates, so it stays well below RESULT_MAX_BYTES. */
export const SANDBOX_RESULT_MAX_BYTES = 2_097_152;
/** SQL text in an argument (`x-belay-kind: sql`), as long as a registered statement may be; four readings of it take some 70 ms at worst on a busy machine. */
export const SQL_TEXT_MAX_CHARS = 20_000;
/** V2: the program of a tool's own check. It travels with every descriptor, eight of which would fill the largest one. */
export const SEMANTIC_CHECK_MAX_CHARS = 16_384;
/** Every character of the largest arguments looked at twice (measured: 0.1 s of one processor, 2 s where memory is all it moves). */
export const SEMANTIC_CHECK_FUEL = 1_000_000_000;
/** One check, the start of its engine included; and all checks of one decision, after which the rest count as failed. */
export const SEMANTIC_CHECK_WALL_MS = 3_000;
export const SEMANTIC_CHECKS_WALL_MS = 10_000;
/** What a check may tell a planner. */
export const SEMANTIC_ERRORS_MAX = 20;
export const SEMANTIC_MESSAGE_MAX_CHARS = 500;
export const SEMANTIC_FIELD_MAX_CHARS = 256;
export const SOURCE_MAX_BYTES = 131_072;
export const STDOUT_MAX_BYTES = 65_536;
/** HTTP tools. */
/** A URL as it is sent: the platform stops at 16 KB (facts: Workers limits), half of which leaves room for encoding. */
export const URL_MAX_CHARS = 8_192;
export const HTTP_REDIRECTS_MAX = 5;
/** One answer of a DNS-over-HTTPS resolver: far above any honest one (a UDP answer holds 4 KiB at most). */
export const DNS_ANSWER_MAX_BYTES = 65_536;
export const DNS_ANSWER_MAX_RECORDS = 256;
export const HTTP_BODY_MAX_BYTES = 4_194_304;
/** What an error response may say to the planner: enough for a reason, too little to carry data out. */
export const HTTP_EXCERPT_MAX_CHARS = 500;
export const HTTP_ERROR_BODY_MAX_BYTES = 16_384;
/** I2: back-off before the first retry, what it grows by, how far chance moves it (+-), and how many retries there are. */
export const RETRY_BASE_MS = 500;
export const RETRY_FACTOR = 3;
export const RETRY_JITTER_RATIO = 0.2;
export const RETRIES_MAX = 3;
/** I2: each retry may take half as long again as the one before. */
export const RETRY_TIMEOUT_FACTOR = 1.5;
/** I3: the window of a breaker, the share of failures that opens it, and how long it stays open before a probe. */
export const BREAKER_WINDOW_MAX_SAMPLES = 10;
export const BREAKER_FAILURES_MIN_RATIO = 0.6;
export const BREAKER_OPEN_MS = 30_000;
/** I5: how long an equal call gets the first one's result, counted from its settlement. */
export const CLAIM_WINDOW_MS = 300_000;
/** When a call that waits for an equal one asks again: long against a Durable Object request, short against a tool call. */
export const CLAIM_RECHECK_MS = 1_000;
/** How much longer than its own limit a gate's pass may be out before it counts as lost. */
export const GATE_HOLD_GRACE_MS = 10_000;
/** When a gate that has not answered is asked again: asking is repeatable by the same call. */
export const GATE_RETRY_MS = 5_000;
/**
 * A gate that does not take a call's end is told again after twice as long, up to this, and so many times: by then it holds
 * nothing of the call any more, however long a pass it gave (an hour, and five minutes of memory).
 */
export const GATE_RETRY_MAX_MS = 300_000;
export const GATE_LEAVES_MAX = 18;
/** I7: the three tiers of the result cache; no declared lifetime outlives the longest. */
export const CACHE_REALTIME_MS = 600_000;
export const CACHE_NEAR_REALTIME_MS = 3_600_000;
export const CACHE_STATIC_MS = 86_400_000;
/** I6: a snapshot names its age, so it may be old; but no copy of a tenant's data lies around for ever. */
export const SNAPSHOT_TTL_MS = 7 * 86_400_000;
/** One gate keeps this many results in this much text; the object's memory (128 MB) stays far away, its disk (10 GB) farther. */
export const GATE_KEPT_MAX_ENTRIES = 1_000;
export const GATE_KEPT_MAX_BYTES = 67_108_864;
/** A larger result is not cached: reading it again costs less than what it would push out. */
export const CACHE_ENTRY_MAX_BYTES = 1_048_576;
/** I8: calls in flight per class of tool, over all tenants that share the queue. */
export const CONCURRENCY_API_MAX = 10;
export const CONCURRENCY_DATABASE_MAX = 5;
/** A longer `Retry-After` is cut to this: no upstream may park a tool for ever. */
export const RETRY_AFTER_MAX_MS = 86_400_000;
/** An access token is given up this long before it ends, so that none expires on its way. */
export const TOKEN_EARLY_MS = 30_000;
/** RFC 6749 lets `expires_in` be absent: such a token is kept only this long. */
export const TOKEN_UNSTATED_TTL_MS = 60_000;
export const TOKENS_CACHED_MAX = 256;
/** Decision 41: how long an approval row may hold the answer back. */
export const APPROVAL_FLUSH_MS = 2_000;
/** One try of a read from D1, which stalls for 30 s and more on healthy databases (field case C13); a healthy read takes milliseconds. */
export const D1_READ_TRY_MS = 3_000;
/** Reads may be repeated, so a lost connection is worth another try or two. */
export const D1_READ_TRIES = 3;
/** A write to D1 is tried once; every write is keyed, so its caller may simply come back. */
export const D1_WRITE_MS = 10_000;
/** D1's limit of bound parameters in a statement. */
export const D1_PARAMETERS_MAX = 100;
/** Decision 40: an index row is small; a body that strayed into one is parked, not stored. */
export const INDEX_ROW_MAX_BYTES = 65_536;
/** JSON of one bulk statement: half of what D1 takes as one bound value (2 MB). */
export const BULK_STATEMENT_MAX_BYTES = 1_048_576;
/** Rows of one page of a list when the caller does not say, and at most. */
export const PAGE_DEFAULT_ROWS = 20;
export const PAGE_MAX_ROWS = 100;
/** Matches of one full-text search when the caller does not say, and at most. */
export const MATCHES_DEFAULT = 5;
export const MATCHES_MAX = 50;

invariant(TOOL_TIMEOUT_DEFAULT_MS < TURN_TIMEOUT_DEFAULT_MS, "tool < turn");
invariant(TURN_TIMEOUT_DEFAULT_MS < SESSION_TIMEOUT_DEFAULT_MS, "turn < session");
invariant(TOOL_TIMEOUT_MIN_MS < TOOL_TIMEOUT_MAX_MS, "tool timeout range");
invariant(APPROVAL_TTL_DEFAULT_MS <= APPROVAL_TTL_MAX_MS, "approval lifetime");
invariant(LINK_TTL_MS <= APPROVAL_TTL_DEFAULT_MS, "a link ends before its approval");
invariant(ARGUMENTS_MAX_BYTES < BODY_MAX_BYTES, "arguments fit a request");
invariant(RESULT_INLINE_MAX_BYTES <= BODY_CHUNK_BYTES, "inline results fit one row");
invariant(ARTIFACT_MIN_BYTES < RESULT_MAX_BYTES, "a result may stay inline when artifacts cannot be stored");
invariant(
	ARTIFACT_PREVIEW_MAX_BYTES + 4_096 <= RESULT_INLINE_MAX_BYTES,
	"a preview and its reference are shown inline",
);
invariant(ARTIFACT_PREVIEW_MAX_BYTES + 4_096 <= RESULT_TO_PLANNER_MAX_BYTES, "a planner gets the preview uncut");
invariant(HALT_MEMORY_MS >= APPROVAL_TTL_MAX_MS, "a halt is remembered as long as an approval may wait");
invariant(HALTS_OPEN_MAX < HALTED_MAX_INTERVALS, "a lease has room for every tool's open halt and the tenant's");
invariant(PLATFORM_ASK_MS < LEASE_TTL_MS, "the platform's word is asked for within a lease");
invariant(
	ENGINE_INSTANCES_MAX * ENGINE_MEMORY_MAX_PAGES * 65_536 <= CODE_MEMORY_MAX_BYTES,
	"engines share the code memory",
);
invariant(SEMANTIC_CHECK_MAX_CHARS * 4 < SOURCE_MAX_BYTES, "a check is a program that the sandbox takes");
invariant(SEMANTIC_CHECK_WALL_MS < SEMANTIC_CHECKS_WALL_MS, "one check < all of a decision");
invariant(SANDBOX_RESULT_MAX_BYTES <= RESULT_MAX_BYTES, "a sandbox result is a result");
invariant(INDEX_ROW_MAX_BYTES < BULK_STATEMENT_MAX_BYTES, "a row fits a bulk statement");
invariant(LISTENERS_OF_ONE_MAX < LISTENERS_MAX, "one listener leaves room for others");
invariant(PAGE_DEFAULT_ROWS <= PAGE_MAX_ROWS, "page sizes");
invariant(CACHE_REALTIME_MS < CACHE_NEAR_REALTIME_MS && CACHE_NEAR_REALTIME_MS < CACHE_STATIC_MS, "cache tiers");
invariant(CACHE_STATIC_MS <= SNAPSHOT_TTL_MS, "a snapshot outlives the cache");
invariant(
	CACHE_ENTRY_MAX_BYTES < GATE_KEPT_MAX_BYTES && RESULT_MAX_BYTES < GATE_KEPT_MAX_BYTES,
	"one result fits a gate",
);
invariant(CLAIM_RECHECK_MS < CLAIM_WINDOW_MS, "a waiting call asks within the window");
invariant(
	Array.from({ length: GATE_LEAVES_MAX }, (_, n) => Math.min(GATE_RETRY_MS * 2 ** n, GATE_RETRY_MAX_MS)).reduce(
		(sum, pause_ms) => sum + pause_ms,
	) >=
		TURN_TIMEOUT_MAX_MS + GATE_HOLD_GRACE_MS + CLAIM_WINDOW_MS,
	"a gate is told for as long as it holds anything",
);
