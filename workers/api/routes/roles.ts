/**
 * `/v1/roles` and `/v1/role-bindings`: what may be done, and by whom. A change counts for requests at once in this isolate
 * and everywhere within seconds; runs see it in their lease. Nobody grants more than they hold.
 */
import * as z from "zod";
import { D1Principals } from "#adapters/d1/d1-principals.ts";
import { D1Roles } from "#adapters/d1/d1-roles.ts";
import { parsePermission } from "#core/policy/permits.ts";
import { role } from "#core/principal.ts";
import { audited, requireHeld } from "../administer.ts";
import { bump } from "../control.ts";
import { type Ctx, noun } from "../noun.ts";
import { invalid, invalidField, notFound, problem } from "../problem.ts";
import { listOf } from "../wire/envelopes.ts";

const manage = { who: "caller", permission: "roles:manage:*", administrative: true } as const;
const look = { who: "caller", permission: "roles:manage:*" } as const;
const now = (): string => new Date().toISOString();

export const roles = noun("/v1/roles", "Roles");

roles.put(
	"/:name",
	{ summary: "create or replace a role", access: manage, body: role, answers: { 200: role } },
	async (c, body) => {
		if (body.name !== c.req.param("name"))
			throw invalidField("/name", "schema_violation", "`name` differs from the path's", "the path's name");
		requirePermissions(body.permissions);
		if (body.abac_conditions.length > 0) {
			// a condition that is stored and not judged would look like protection
			throw invalidField(
				"/abac_conditions",
				"schema_violation",
				"conditions are not judged yet, so none is taken",
				"an empty list",
			);
		}
		const { tenant_id } = c.get("caller");
		requireHeld(c.get("caller"), body);
		const store = new D1Roles(c.env.DB);
		const before = await store.get(tenant_id, body.name);
		// replacing a stronger role could only take away, and taking away is an administrator's business as well
		await audited(
			c,
			{ action: before === undefined ? "role.create" : "role.replace", about: { name: body.name } },
			async () => {
				await store.put(tenant_id, body, now());
				await bump(c.env, tenant_id, "policy");
			},
		);
		return c.json(body);
	},
);

roles.get("/", { summary: "list roles", access: look, answers: { 200: listOf(role) } }, async (c) =>
	c.json({ data: await new D1Roles(c.env.DB).list(c.get("caller").tenant_id), next_cursor: null }),
);

roles.get("/:name", { summary: "read a role", access: look, answers: { 200: role } }, async (c) => {
	const found = await new D1Roles(c.env.DB).get(c.get("caller").tenant_id, c.req.param("name"));
	if (found === undefined) throw notFound();
	return c.json(found);
});

roles.delete(
	"/:name",
	{ summary: "delete a role that nobody holds", access: manage, answers: { 204: null } },
	async (c) => {
		const { tenant_id } = c.get("caller");
		const name = c.req.param("name");
		const store = new D1Roles(c.env.DB);
		if ((await store.get(tenant_id, name)) === undefined) throw notFound();
		await audited(c, { action: "role.delete", about: { name } }, async () => {
			if (!(await store.deleteUnbound(tenant_id, name)))
				throw problem("in_use", "the role is still bound to principals");
			await bump(c.env, tenant_id, "policy");
		});
		return c.body(null, 204);
	},
);

const binding = z.object({ principal_id: z.string(), role: z.string(), created_at: z.string() });

export const roleBindings = noun("/v1/role-bindings", "Roles");

roleBindings.get(
	"/",
	{
		summary: "list who holds which role",
		access: look,
		query: z.object({ principal_id: z.string().max(128).optional() }),
		answers: { 200: listOf(binding) },
	},
	async (c, _body, { principal_id }) =>
		c.json({ data: await new D1Roles(c.env.DB).bindings(c.get("caller").tenant_id, principal_id), next_cursor: null }),
);

roleBindings.put(
	"/:principal_id/:role",
	{ summary: "give a principal a role", access: manage, answers: { 200: binding } },
	async (c) => {
		const { tenant_id } = c.get("caller");
		const { principal_id, name } = boundOf(c);
		const store = new D1Roles(c.env.DB);
		const found = await store.get(tenant_id, name);
		const principal = await new D1Principals(c.env.DB).get(tenant_id, principal_id);
		if (found === undefined || principal === undefined) throw notFound();
		requireHeld(c.get("caller"), found);
		await audited(c, { action: "role.bind", about: { principal_id, role: name } }, async () => {
			await store.bind(tenant_id, principal_id, [name], now());
			await bump(c.env, tenant_id, "policy");
		});
		const stored = (await store.bindings(tenant_id, principal_id)).find((one) => one.role === name);
		return c.json(stored ?? { principal_id, role: name, created_at: now() });
	},
);

roleBindings.delete(
	"/:principal_id/:role",
	{ summary: "take a role from a principal", access: manage, answers: { 204: null } },
	async (c) => {
		const { tenant_id } = c.get("caller");
		const { principal_id, name } = boundOf(c);
		const gone = await audited(
			c,
			{ action: "role.unbind", about: { principal_id: principal_id.slice(0, 128), role: name.slice(0, 64) } },
			async () => {
				const unbound = await new D1Roles(c.env.DB).unbind(tenant_id, principal_id, name);
				await bump(c.env, tenant_id, "policy");
				return unbound;
			},
		);
		if (!gone) throw notFound();
		return c.body(null, 204);
	},
);

function boundOf(c: Ctx<"/:principal_id/:role">): { principal_id: string; name: string } {
	return { principal_id: c.req.param("principal_id"), name: c.req.param("role") };
}

/** A permission that does not parse would grant nothing in silence. */
function requirePermissions(permissions: readonly string[]): void {
	const errors = permissions.flatMap((text, at) => {
		if (parsePermission(text) !== undefined) return [];
		const error = {
			error: "a permission has three parts",
			field: `/permissions/${at}`,
			expected: "`domain:action:object`",
			hint: "",
		};
		return [{ ...error, issue: "format_invalid" as const }];
	});
	if (errors.length > 0) throw invalid(errors);
}
