/**
 * `/v1/tools`: the registry. Registering is an administrator's act, judged by core and published once; whoever cannot call
 * a tool gets the answer for an unknown one, and lists are without it (Q7, decision 20).
 */
import * as z from "zod";
import { D1ToolCatalog } from "#adapters/d1/d1-tool-catalog.ts";
import { judgeTool, permits } from "#core/policy/permits.ts";
import type { Caller } from "#core/principal.ts";
import { type ToolVersion, toolDescriptor, VISIBILITIES } from "#core/registry/descriptor.ts";
import { onSurface } from "#core/surface/surface.ts";
import { audited } from "../administer.ts";
import { bump } from "../control.ts";
import { type Ctx, noun } from "../noun.ts";
import { notFound } from "../problem.ts";
import { jsonObject } from "../wire/any-json.ts";
import { listOf } from "../wire/envelopes.ts";
import { publishTool } from "./publish-tool.ts";
import { toolFacts, toolFactsView } from "./tool-facts.ts";
import { toolHealth, toolHealthView } from "./tool-health.ts";

const manage = { who: "caller", permission: "registry:manage:*", administrative: true } as const;
const caller = { who: "caller" } as const;
const statuses = ["online", "offline"] as const;
/** A version on the wire: the descriptor with its definition digest and state beside its members. */
export const toolView = toolDescriptor.extend({
	definition_hash: z.string(),
	status: z.enum(statuses),
	created_at: z.string(),
	offline_since: z.string().nullable(),
});

export const tools = noun("/v1/tools", "Tools");

tools.put(
	"/:tool_id",
	{
		summary: "register a tool or publish a version of it",
		access: manage,
		body: jsonObject,
		documented_body: toolDescriptor,
		answers: {
			200: toolView.extend({ warnings: z.array(z.string()) }),
			201: toolView.extend({ warnings: z.array(z.string()) }),
		},
	},
	async (c, body) => {
		const { outcome, stored, warnings } = await publishTool(c, c.req.param("tool_id"), body);
		return c.json({ ...viewOf(stored), warnings }, outcome === "created" ? 201 : 200);
	},
);

tools.get(
	"/",
	{
		summary: "list the tools that the caller may call; with `registry:manage:*` all of them",
		access: caller,
		query: z.object({ visibility: z.enum(VISIBILITIES).optional(), status: z.enum(statuses).optional() }),
		answers: { 200: listOf(toolView) },
	},
	async (c, _body, { visibility, status }) => {
		const all = await new D1ToolCatalog(c.env.DB).listAll(c.get("caller").tenant_id);
		const data = all
			.filter((one) => isSeenBy(c.get("caller"), one))
			.filter((one) => visibility === undefined || one.descriptor.visibility === visibility)
			.filter((one) => status === undefined || one.status === status)
			.map(viewOf);
		return c.json({ data, next_cursor: null });
	},
);

tools.get(
	"/:tool_id",
	{ summary: "read the newest version of a tool", access: caller, answers: { 200: toolView } },
	async (c) => {
		const [newest] = await seenVersions(c, c.req.param("tool_id"));
		return c.json(viewOf(newest));
	},
);

tools.get(
	"/:tool_id/versions",
	{ summary: "every version, newest first, offline ones too", access: caller, answers: { 200: listOf(toolView) } },
	async (c) => c.json({ data: (await seenVersions(c, c.req.param("tool_id"))).map(viewOf), next_cursor: null }),
);

tools.delete(
	"/:tool_id",
	{ summary: "take a tool offline; its versions are kept for audit", access: manage, answers: { 200: toolView } },
	async (c) => {
		const tool_id = c.req.param("tool_id");
		const { tenant_id } = c.get("caller");
		await seenVersions(c, tool_id);
		await audited(c, { action: "tool.retire", tool_id, about: { tool_id } }, async () => {
			await new D1ToolCatalog(c.env.DB).retire(tenant_id, tool_id, new Date().toISOString());
			await bump(c.env, tenant_id, "registry");
		});
		const [newest] = await seenVersions(c, tool_id);
		return c.json(viewOf(newest));
	},
);

tools.get(
	"/:tool_id/facts",
	{
		summary: "the five facts about a tool side by side; exposure and invocation within a run with `run_id`",
		access: caller,
		query: z.object({ run_id: z.string().max(64).optional() }),
		answers: { 200: toolFactsView },
	},
	async (c, _body, { run_id }) => {
		const versions = await seenVersions(c, c.req.param("tool_id"));
		return c.json(await toolFacts(c, newestOf(versions), run_id));
	},
);

tools.get(
	"/:tool_id/health",
	{
		summary: "how a tool is doing for this tenant: breaker, rate, cache and claims",
		access: caller,
		answers: { 200: toolHealthView },
	},
	async (c) => {
		const [newest] = await seenVersions(c, c.req.param("tool_id"));
		return c.json(await toolHealth(c, newest));
	},
);

/** All versions of a tool that the caller may know of, newest first; never empty, 404 instead. */
async function seenVersions(c: Ctx, tool_id: string): Promise<[ToolVersion, ...ToolVersion[]]> {
	const versions = await new D1ToolCatalog(c.env.DB).versions(c.get("caller").tenant_id, tool_id);
	const newest = newestOf(versions);
	if (newest === undefined || !isSeenBy(c.get("caller"), newest)) throw notFound();
	return [newest, ...versions.filter((one) => one !== newest)];
}

/** The newest that is online; of a tool that is offline, the newest at all. */
function newestOf<T extends ToolVersion>(versions: readonly T[]): T;
function newestOf(versions: readonly ToolVersion[]): ToolVersion | undefined;
function newestOf(versions: readonly ToolVersion[]): ToolVersion | undefined {
	return versions.find((one) => one.status === "online") ?? versions[0];
}

/** Administrators see the registry; everybody else what they may call, and agents only what is on the public surface. */
function isSeenBy(who: Caller, { descriptor }: ToolVersion): boolean {
	if (who.kind !== "agent" && permits(who.authority.permissions, "registry:manage:*")) return true;
	if (judgeTool(who.authority, descriptor).decision === "deny") return false;
	return who.kind !== "agent" || onSurface(descriptor).holds;
}

function viewOf({ descriptor, ...state }: ToolVersion): z.infer<typeof toolView> {
	return { ...descriptor, ...state };
}
