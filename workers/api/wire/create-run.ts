/** The body of `POST /v1/runs`: its shape, its defaults and the relations between its numbers (I4). */
import * as z from "zod";
import { SESSION_ID } from "#core/ids.ts";
import {
	EXPOSURE_LIMIT_TOOLS,
	RUN_TURNS_DEFAULT,
	RUN_TURNS_MAX,
	SESSION_TIMEOUT_DEFAULT_MS,
	SESSION_TIMEOUT_MAX_MS,
	TOOL_TIMEOUT_MIN_MS,
	TURN_TIMEOUT_DEFAULT_MS,
	TURN_TIMEOUT_MAX_MS,
} from "#core/limits.ts";
import { decision } from "#core/planner/decision.ts";
import { LOCALES } from "#core/registry/explain-words.ts";
import { smallJsonObject } from "./any-json.ts";

/** Text of a goal or message: half a request body, so that a run's rows stay far below a row's 2 MB. */
export const TEXT_MAX_CHARS = 262_144;
const METADATA_MAX_BYTES = 16_384;
const MESSAGES_MAX = 200;

const limits = z
	.strictObject({
		turns: z.number().int().min(1).max(RUN_TURNS_MAX).default(RUN_TURNS_DEFAULT),
		turn_timeout_ms: z.number().int().min(1).max(TURN_TIMEOUT_MAX_MS).default(TURN_TIMEOUT_DEFAULT_MS),
		session_timeout_ms: z.number().int().min(1).max(SESSION_TIMEOUT_MAX_MS).default(SESSION_TIMEOUT_DEFAULT_MS),
		/** 0: no limit declared. */
		max_tokens: z.number().int().min(0).default(0),
		/** Calls that may start, fallbacks and status look-ups included; a retry is the same call. Absent: no limit. */
		max_calls: z.number().int().min(0).optional(),
		/** What calls and planner may cost together, in millionths of a US dollar; 0: nothing that costs. Absent: no limit. */
		max_cost_micro_usd: z.number().int().min(0).optional(),
	})
	// a tool's own limit is cut to what is left of the turn, so the shortest tool limit must fit
	.refine((one) => one.turn_timeout_ms > TOOL_TIMEOUT_MIN_MS, {
		path: ["turn_timeout_ms"],
		error: `more than the shortest tool limit, ${TOOL_TIMEOUT_MIN_MS} ms`,
		params: { issue: "out_of_range" },
	})
	.refine((one) => one.turn_timeout_ms < one.session_timeout_ms, {
		path: ["turn_timeout_ms"],
		error: `less than \`session_timeout_ms\` (defaults: ${TURN_TIMEOUT_DEFAULT_MS} and ${SESSION_TIMEOUT_DEFAULT_MS})`,
		params: { issue: "out_of_range" },
	});

const planner = z
	.strictObject({
		kind: z.enum(["openai", "workers_ai", "scripted", "external"]).default("openai"),
		model: z.string().min(1).max(128).optional(),
		script: z.array(decision).min(1).max(RUN_TURNS_MAX).optional(),
		spotlight: z
			.boolean()
			.describe(
				"mark every word of a tool's result for the model, which is told that marked text is data; managed kinds only",
			)
			.optional(),
	})
	.refine((one) => one.spotlight !== true || one.kind === "openai" || one.kind === "workers_ai", {
		path: ["spotlight"],
		error: "only where `kind` is a model's, `openai` or `workers_ai`",
	})
	.refine((one) => (one.kind === "scripted") === (one.script !== undefined), {
		path: ["script"],
		error: "a script exactly when `kind` is `scripted`",
	});

export const createRun = z.strictObject({
	goal: z.string().min(1).max(TEXT_MAX_CHARS),
	/** Decision 39: no tool messages and no tool calls; history from outside proves nothing. */
	messages: z
		.array(z.strictObject({ role: z.enum(["user", "system", "assistant"]), content: z.string().max(TEXT_MAX_CHARS) }))
		.max(MESSAGES_MAX)
		.default([]),
	session_id: z.string().regex(SESSION_ID, "`sess_` and 1 to 64 letters, digits, `_` or `-`").optional(),
	/** None can be registered yet, so naming one is naming something unknown. */
	toolpacks: z
		.array(z.string().max(64))
		.max(20)
		.refine((packs) => packs.length === 0, { error: "a known toolpack", params: { issue: "unknown_name" } })
		.default([]),
	/** An explicit set of eligible tools; without it the exposure rule decides. */
	tools: z
		.array(z.string().min(1).max(256))
		.max(EXPOSURE_LIMIT_TOOLS)
		.refine((tools) => new Set(tools).size === tools.length, {
			error: "each tool once",
			params: { issue: "not_unique" },
		})
		.optional(),
	planner: planner.default({ kind: "openai" }),
	limits: limits.prefault({}),
	/** Without it, the goal's script says. */
	locale: z.enum(LOCALES).describe("the language of repair hints in tool messages; without it, the goal's").optional(),
	metadata: smallJsonObject(METADATA_MAX_BYTES).default({}),
	/** Where the run works. A `workspace_id` in it is what a tool that requires `workspace` needs (F3). */
	context: smallJsonObject(METADATA_MAX_BYTES).default({}),
});
export type CreateRunBody = z.infer<typeof createRun>;
