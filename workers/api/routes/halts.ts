/**
 * `/v1/halts`: the kill switch (decision 17, Q6). A halt freezes what has not started, for one tool, for the tenant, or for
 * everything; approvals that wait under it keep their time. People only: an agent that could halt could also lift. Every
 * halt stands until it is itself ended, so nobody lifts another's by ending their own.
 */
import * as z from "zod";
import { D1ToolCatalog } from "#adapters/d1/d1-tool-catalog.ts";
import type { Caller } from "#core/principal.ts";
import { type Halt, PLATFORM_OBJECT } from "#objects/tenant-control/api.ts";
import { audited } from "../administer.ts";
import { controlOf } from "../control.ts";
import { idempotencyKey, newIdPart } from "../idempotency.ts";
import { type Ctx, noun } from "../noun.ts";
import { invalidField, notFound, problem } from "../problem.ts";
import { listOf } from "../wire/envelopes.ts";

const people = { who: "caller", permission: "halts:manage:*", people: true } as const;
const manage = { ...people, administrative: true } as const;
const TOOL = "tool:";

const newHalt = z.strictObject({
	/** `all`, everything of every tenant, is the platform's alone. */
	scope: z
		.string()
		.max(256)
		.regex(/^(?:tenant|all|tool:\S+)$/, "`tenant`, `tool:<tool_id>` or `all`"),
	/** Why, for whoever finds everything standing still. */
	reason: z.string().trim().min(1).max(1024),
});
const haltView = z.object({
	halt_id: z.string(),
	scope: z.string(),
	reason: z.string(),
	/** The principal who opened it; `platform` for one of the platform's. */
	by: z.string(),
	since: z.string(),
	until: z.string().nullable(),
});

export const halts = noun("/v1/halts", "Halts");

halts.post(
	"/",
	{
		summary: "halt a tool, the tenant, or everything: nothing of it starts until the halt is ended",
		access: manage,
		body: newHalt,
		headers: ["Idempotency-Key"],
		answers: { 201: haltView },
	},
	async (c, { scope, reason }) => {
		const caller = c.get("caller");
		const object = objectOf(c, scope);
		await requireTool(c, scope);
		const asked = idempotencyKey(c.req.header("idempotency-key"));
		const halt_id = `halt_${newIdPart(c.env, caller, "POST /v1/halts", asked)}`;
		const by = caller.principal_id;
		const halt = await audited(c, { ...about("halt.open", scope), about: { halt_id, scope, reason } }, async () => {
			const opened = await controlOf(c.env, object, (control) =>
				control.openHalt({ v: 1, tenant_id: object, halt_id, scope, reason, by }),
			);
			if (opened.ok) return opened.halt;
			if (opened.reason === "taken") throw problem("idempotency_conflict", "the key opened another halt");
			throw invalidField("/scope", "out_of_range", "too many halts are open", "fewer open halts", "end some first");
		});
		return c.json(viewOf(halt), 201);
	},
);

halts.get(
	"/",
	{ summary: "open halts and the latest ended ones, newest first", access: people, answers: { 200: listOf(haltView) } },
	async (c) => c.json({ data: (await seenBy(c)).map(viewOf), next_cursor: null }),
);

halts.delete(
	"/:halt_id",
	{ summary: "end a halt; what it froze goes on within half a minute", access: manage, answers: { 200: haltView } },
	async (c) => {
		const halt_id = c.req.param("halt_id");
		// looked for among what the caller may see: another tenant's is not there, and leaves no row in the audit
		const found = (await seenBy(c)).find((one) => one.halt_id === halt_id);
		if (found === undefined) throw notFound();
		const object = objectOf(c, found.scope);
		const { scope } = found;
		const ended = await audited(c, { ...about("halt.end", scope), about: { halt_id, scope } }, () =>
			controlOf(c.env, object, (control) =>
				control.endHalt({ v: 1, tenant_id: object, halt_id, of_platform: scope === "all" }),
			),
		);
		if (ended === null) throw notFound();
		return c.json(viewOf(ended));
	},
);

/** The control object that holds halts of this scope. Throws 403 for `all` unless the caller is of the platform's tenant. */
function objectOf(c: Ctx, scope: string): string {
	const caller = c.get("caller");
	if (scope !== "all") return caller.tenant_id;
	if (!isOfPlatform(c, caller)) throw problem("forbidden", "only the platform's people may halt everything");
	return PLATFORM_OBJECT;
}

function isOfPlatform(c: Ctx, { tenant_id }: Caller): boolean {
	const platform = c.env.BELAY_PLATFORM_TENANT;
	return platform !== "" && tenant_id === platform;
}

/** The tenant's halts and the platform's; the platform's people see those with who opened them. */
async function seenBy(c: Ctx): Promise<readonly Halt[]> {
	const caller = c.get("caller");
	const halts = (tenant_id: string) => controlOf(c.env, tenant_id, (control) => control.halts({ v: 1, tenant_id }));
	const seen = await halts(caller.tenant_id);
	if (!isOfPlatform(c, caller)) return seen;
	const everything = (await halts(PLATFORM_OBJECT)).filter(({ scope }) => scope === "all");
	const own = seen.filter(({ scope }) => scope !== "all");
	return [...own, ...everything].sort((a, b) => b.since - a.since || (a.halt_id < b.halt_id ? 1 : -1));
}

/** A halt of a misspelt tool would look like one and stop nothing. */
async function requireTool(c: Ctx, scope: string): Promise<void> {
	if (!scope.startsWith(TOOL)) return;
	const versions = await new D1ToolCatalog(c.env.DB).versions(c.get("caller").tenant_id, scope.slice(TOOL.length));
	if (versions.length === 0)
		throw invalidField("/scope", "unknown_name", "there is no such tool", "`tool:` and a registered tool's id");
}

function about(action: string, scope: string): { action: string; tool_id?: string } {
	return scope.startsWith(TOOL) ? { action, tool_id: scope.slice(TOOL.length) } : { action };
}

function viewOf({ since, until, ...halt }: Halt): z.infer<typeof haltView> {
	return {
		...halt,
		since: new Date(since).toISOString(),
		until: until === null ? null : new Date(until).toISOString(),
	};
}
