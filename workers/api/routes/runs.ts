/**
 * `/v1/runs`: a run from its creation to its evidence. Each route passes its question to the run's object, which judges
 * who may see or move it; only lists come from D1. Nothing here decides anything about a call.
 */
import * as z from "zod";
import { D1Runs } from "#adapters/d1/d1-runs.ts";
import { formatTools } from "#core/exposure/definitions.ts";
import { EVIDENCE_PAGE_MAX_ROWS } from "#core/limits.ts";
import { decision } from "#core/planner/decision.ts";
import { permits } from "#core/policy/permits.ts";
import { call, evidence, exposureTrace, messagesView, RUN_STATUSES, runView, turnView } from "#core/run/view.ts";
import { idempotencyKey } from "../idempotency.ts";
import { answerText } from "../middleware/framed.ts";
import { preferredWait } from "../middleware/prefer.ts";
import { type Ctx, noun } from "../noun.ts";
import { invalidField } from "../problem.ts";
import { askRun } from "../run-object.ts";
import { jsonValue } from "../wire/any-json.ts";
import { createRun, TEXT_MAX_CHARS } from "../wire/create-run.ts";
import { listOf, pageQuery } from "../wire/envelopes.ts";
import { createRunFrom } from "./create-run.ts";
import { replayRun, replayRunFrom } from "./replay-run.ts";
import { eventsQuery, runEvents } from "./run-events.ts";

const caller = { who: "caller" } as const;
const runRow = z.object({
	run_id: z.string(),
	session_id: z.string(),
	principal_id: z.string(),
	trace_id: z.string(),
	status: z.enum(RUN_STATUSES),
	goal: z.string(),
	planner_kind: z.string(),
	created_at: z.string(),
	updated_at: z.string(),
});

export const runs = noun("/v1/runs", "Runs");

runs.post(
	"/",
	{
		summary: "start a run",
		access: caller,
		body: createRun,
		headers: ["Idempotency-Key", "Prefer"],
		answers: { 201: runView },
	},
	async (c, body) => {
		const run = await createRunFrom(c, body);
		return c.json(run, 201, { location: `/v1/runs/${run.run_id}` });
	},
);

runs.get(
	"/",
	{
		summary: "list runs, newest first: the caller's own, or all of the tenant's with `runs:read:*`",
		access: caller,
		query: pageQuery.extend({ status: z.enum(RUN_STATUSES).optional() }),
		answers: { 200: listOf(runRow) },
	},
	async (c, _body, query) => {
		const { tenant_id, principal_id, kind, authority } = c.get("caller");
		// decision 18: an agent reads its own runs, whatever its roles
		const everybodys = kind !== "agent" && permits(authority.permissions, "runs:read:*");
		const page = await new D1Runs(c.env.DB).list(tenant_id, { ...query, ...(everybodys ? {} : { principal_id }) });
		if (!page.ok)
			throw invalidField("query:cursor", "format_invalid", "the cursor is not one of ours", "a `next_cursor`");
		return c.json({ data: page.data.map(({ seq: _seq, ...row }) => row), next_cursor: page.next_cursor });
	},
);

runs.get(
	"/:run_id",
	{
		summary: "read a run; with `after_seq` and `Prefer: wait`, when it next rests after that entry of its log",
		access: caller,
		query: z.object({ after_seq: z.coerce.number().int().min(0).optional() }),
		headers: ["Prefer"],
		answers: { 200: runView },
	},
	async (c, _body, { after_seq = null }) => {
		const wait = preferredWait(c.req.header("prefer")) ?? 0;
		const until = Date.now() + wait;
		return c.json(
			await askRun(c.env, c.req.param("run_id"), "read", (run) =>
				// a second try after a reset waits only for what is left
				run.read({ ...said(c), after_seq, wait_ms: Math.max(0, Math.min(wait, until - Date.now())) }),
			),
		);
	},
);

runs.post(
	"/:run_id/messages",
	{
		summary:
			"say something to a run: a managed one goes on with the user's next message; one with an external planner takes decisions again, and its planner finds the words as `said` in `GET …/messages`",
		access: caller,
		body: z.strictObject({ content: z.string().min(1).max(TEXT_MAX_CHARS) }),
		headers: ["Idempotency-Key", "Prefer"],
		answers: { 200: runView },
	},
	async (c, { content }) => {
		const wait_ms = preferredWait(c.req.header("prefer")) ?? 0;
		const idempotency_key = idempotencyKey(c.req.header("idempotency-key"));
		return c.json(await write(c, (run) => run.say({ ...said(c), content, idempotency_key, wait_ms })));
	},
);

runs.get(
	"/:run_id/messages",
	{
		summary:
			"the tool messages of a turn, one per call in request order; without `turn`, of the newest turn that has calls",
		access: caller,
		query: z.object({ turn: z.coerce.number().int().min(1).optional() }),
		answers: { 200: messagesView },
	},
	async (c, _body, { turn = null }) => c.json(await read(c, (run) => run.messages({ ...said(c), turn }))),
);

runs.post(
	"/:run_id/decisions",
	{
		summary: "hand in an external planner's turn",
		access: caller,
		body: decision,
		headers: ["Idempotency-Key", "Prefer"],
		answers: { 200: turnView },
	},
	async (c, body) => {
		const wait_ms = preferredWait(c.req.header("prefer"));
		const idempotency_key = idempotencyKey(c.req.header("idempotency-key"));
		const ask = { ...said(c), decision: body, wait_ms, idempotency_key, as_text: true } as const;
		const turned = await write(c, (run) => run.decide(ask));
		return typeof turned === "string" ? answerText(c, turned) : c.json(turned);
	},
);

/** A page goes on after the `seq` of the last record that was seen. */
const evidenceQuery = z.object({
	cursor: z
		.string()
		.regex(/^\d{1,15}$/, "a `next_cursor`")
		.optional(),
	limit: z.coerce.number().int().min(1).max(EVIDENCE_PAGE_MAX_ROWS).default(EVIDENCE_PAGE_MAX_ROWS),
});

const noMembers = z.strictObject({});

runs.post(
	"/:run_id/cancel",
	{ summary: "end a run", access: caller, body: noMembers, body_optional: true, answers: { 200: runView } },
	async (c) => c.json(await write(c, (run) => run.cancel(said(c)))),
);

runs.post(
	"/:run_id/resume",
	{
		summary: "take up a suspended run",
		access: caller,
		body: noMembers,
		body_optional: true,
		headers: ["Prefer"],
		answers: { 200: runView },
	},
	async (c) =>
		c.json(await write(c, (run) => run.resume({ ...said(c), wait_ms: preferredWait(c.req.header("prefer")) ?? 0 }))),
);

runs.post(
	"/:run_id/replay",
	{
		summary: "play what a finished run recorded, as a new run of the caller's",
		access: caller,
		body: replayRun,
		body_optional: true,
		headers: ["Idempotency-Key", "Prefer"],
		answers: { 201: runView },
	},
	async (c, body) => {
		const run = await replayRunFrom(c, c.req.param("run_id"), body);
		return c.json(run, 201, { location: `/v1/runs/${run.run_id}` });
	},
);

runs.get(
	"/:run_id/exposure",
	{
		summary: "what the planner sees this turn, and why each tool is in or out",
		access: caller,
		query: z.object({ format: z.enum(["openai", "anthropic", "mcp"]).default("openai") }),
		answers: {
			200: z.object({
				turn: z.number().int(),
				mode: z.enum(["all", "ranked"]),
				tools: z.array(z.unknown()),
				trace: z.array(exposureTrace),
			}),
		},
	},
	async (c, _body, { format }) => {
		const { turn, mode, definitions, trace } = await read(c, (run) => run.exposure(said(c)));
		return c.json({ turn, mode, tools: formatTools(definitions, format), trace });
	},
);

runs.get(
	"/:run_id/events",
	{
		summary: "the run's log as server-sent events, live and resumable",
		access: caller,
		query: eventsQuery,
		headers: ["Last-Event-ID"],
		answers: { 200: "text/event-stream" },
	},
	(c, _body, query) => runEvents(c, query),
);

runs.get(
	"/:run_id/evidence",
	{
		summary: "the run's evidence, masked, as a hash chain, in pages; `head_hash` is that of the whole chain",
		access: caller,
		query: evidenceQuery,
		answers: { 200: listOf(evidence).extend({ head_hash: z.string() }) },
	},
	async (c, _body, { cursor, limit }) => {
		const after_seq = Number(cursor ?? "0");
		// an object of an older version answers the whole chain, and knows no pages
		const { next_seq = null, ...page } = await read(c, (run) => run.evidence({ ...said(c), after_seq, limit }));
		return c.json({ ...page, next_cursor: next_seq === null ? null : String(next_seq) });
	},
);

runs.get(
	"/:run_id/evidence/verify",
	{
		summary: "whether the chain and its signatures hold",
		access: caller,
		answers: {
			200: z.object({ valid: z.boolean(), checked: z.number().int(), broken_at: z.number().int().nullable() }),
		},
	},
	async (c) => c.json(await read(c, (run) => run.verify(said(c)))),
);

runs.get(
	"/:run_id/calls/:tool_call_id",
	{ summary: "one call, its result whole however large", access: caller, answers: { 200: call } },
	async (c) => c.json(await read(c, (run) => run.call({ ...said(c), tool_call_id: c.req.param("tool_call_id") }))),
);

runs.post(
	"/:run_id/calls/:tool_call_id/outcome",
	{
		summary: "settle a call whose outcome is unknown; people only",
		access: { who: "caller", people: true },
		body: z.strictObject({
			outcome: z.enum(["happened", "not_happened"]),
			result: jsonValue.optional(),
			reason: z.string().min(1).max(1024),
		}),
		answers: { 200: runView },
	},
	async (c, { outcome, result = null, reason }) => {
		const tool_call_id = c.req.param("tool_call_id");
		return c.json(await write(c, (run) => run.settleOutcome({ ...said(c), tool_call_id, outcome, result, reason })));
	},
);

runs.post(
	"/:run_id/calls/:tool_call_id/cancel",
	{
		summary: "withdraw a call that waits",
		access: caller,
		body: noMembers,
		body_optional: true,
		answers: { 200: runView },
	},
	async (c) => {
		const tool_call_id = c.req.param("tool_call_id");
		return c.json(await write(c, (run) => run.cancelCall({ ...said(c), tool_call_id })));
	},
);

type OfRun = Ctx<"/:run_id">;
const said = (c: Ctx) => ({ v: 1 as const, caller: c.get("caller") });
const read = <T>(c: Ctx, ask: Parameters<typeof askRun<T>>[3]) =>
	askRun(c.env, (c as OfRun).req.param("run_id"), "read", ask);
const write = <T>(c: Ctx, ask: Parameters<typeof askRun<T>>[3]) =>
	askRun(c.env, (c as OfRun).req.param("run_id"), "write", ask);
