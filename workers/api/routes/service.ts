/**
 * What is public without a key (decision 25, and `/`, which leads there): liveness, the API's description and the keys that
 * verify evidence. None of it reads a tenant's data. The approval pages are in `pages/`.
 */
import * as z from "zod";
import { readMasters } from "#adapters/secrets/derive.ts";
import { tenantKeys } from "#objects/agent-run/signing.ts";
import { docsPage } from "../docs-page.ts";
import { noun, type RouteEntry } from "../noun.ts";
import { openApi } from "../openapi.ts";

const open = { who: "public" } as const;
/** Documents change with a deployment only. */
const CACHED = { "cache-control": "public, max-age=300" };

/** `table` is called late: the table is complete only when every noun has been mounted. */
export function service(table: () => readonly RouteEntry[]) {
	const routes = noun("", "Service");

	routes.get(
		"/healthz",
		{ summary: "whether this Worker answers", access: open, answers: { 200: z.object({ status: z.literal("ok") }) } },
		(c) => {
			// throws, and so fails, when the deployment has no usable master secret
			readMasters(c.env.BELAY_MASTER_SECRET);
			return c.json({ status: "ok" as const });
		},
	);

	let document: string | undefined;
	routes.get(
		"/openapi.json",
		{ summary: "this API as OpenAPI 3.1", access: open, answers: { 200: z.object({ openapi: z.string() }) } },
		(c) => {
			document ??= JSON.stringify(openApi(table()));
			return c.body(document, 200, { ...CACHED, "content-type": "application/json" });
		},
	);

	routes.get("/", { summary: "leads to the API's page, `/docs`", access: open, answers: { 302: null } }, (c) =>
		c.redirect("/docs", 302),
	);

	let page: string | undefined;
	routes.get("/docs", { summary: "this API as a page", access: open, answers: { 200: "text/html" } }, (c) => {
		page ??= docsPage(table());
		return c.html(page, 200, CACHED);
	});

	routes.get(
		"/.well-known/jwks.json",
		{
			summary:
				"the public key that verifies a tenant's evidence; any tenant id has one, so the answer says nothing about who exists",
			access: open,
			query: z.object({ tenant_id: z.string().min(1).max(128) }),
			answers: { 200: z.object({ keys: z.array(z.record(z.string(), z.unknown())) }) },
		},
		(c, _body, { tenant_id }) => {
			const { publicJwk } = tenantKeys(c.env.BELAY_MASTER_SECRET, tenant_id);
			return c.json({ keys: [{ ...publicJwk, use: "sig", alg: "EdDSA" }] }, 200, CACHED);
		},
	);

	return routes;
}
