/**
 * `/v1/keys`: API keys of the tenant. A key is shown once, in the answer that makes it; only its SHA-256 is stored. Making
 * a key is handing out an authority, so nobody makes one that can do more than they can, and only a person makes one for
 * a person: a service that could would approve its own calls (decision 18).
 */
import * as z from "zod";
import { D1AuthorityStore } from "#adapters/d1/d1-authority-store.ts";
import { D1KeyStore, type KeyView } from "#adapters/d1/d1-key-store.ts";
import { D1Principals, type PrincipalRow } from "#adapters/d1/d1-principals.ts";
import { D1Roles } from "#adapters/d1/d1-roles.ts";
import { randomBytes } from "#adapters/random.ts";
import { PRINCIPAL_KINDS } from "#core/principal.ts";
import { audited, requireHeld } from "../administer.ts";
import { bump, controlOf } from "../control.ts";
import { idempotencyKey, newIdPart, tenantMac } from "../idempotency.ts";
import { keyHash } from "../middleware/authenticate.ts";
import { type Ctx, noun } from "../noun.ts";
import { invalidField, notFound, problem } from "../problem.ts";
import { listOf } from "../wire/envelopes.ts";

const PREFIX = "belay_live_";
const manage = { who: "caller", permission: "keys:manage:*", administrative: true } as const;

const newKey = z.strictObject({
	principal_id: z
		.string()
		.regex(/^[A-Za-z0-9][A-Za-z0-9_.@-]{0,127}$/, "letters, digits and `_.@-`")
		.describe("of whom: an existing principal, or a new one, which then needs `kind` and `name`"),
	kind: z.enum(PRINCIPAL_KINDS).optional().describe("required for a new principal; an existing one's never changes"),
	name: z
		.string()
		.min(1)
		.max(256)
		.optional()
		.describe("required for a new principal: what people read in approvals and evidence"),
	email: z.email().max(320).optional().describe("an approver's address: links are sent to registered addresses only"),
	roles: z
		.array(z.string().max(64))
		.max(20)
		.optional()
		.describe("roles that a new principal gets; an existing one's are changed at `/v1/role-bindings`"),
	expires_at: z.iso.datetime().optional().describe("ISO 8601, UTC; left out: it does not expire"),
});
const keyView = z.object({
	key_id: z.string(),
	prefix: z.string(),
	last4: z.string(),
	principal_id: z.string(),
	created_at: z.string(),
	expires_at: z.string().nullable(),
	revoked_at: z.string().nullable(),
});
const shownKey = keyView.extend({
	/** Shown now and never again. */
	key: z.string(),
});

export const keys = noun("/v1/keys", "Keys");

keys.post(
	"/",
	{
		summary: "make a key; it is shown in this answer only",
		access: manage,
		body: newKey,
		headers: ["Idempotency-Key"],
		answers: { 201: shownKey },
	},
	async (c, body) => {
		const expires_at = body.expires_at === undefined ? null : new Date(body.expires_at).toISOString();
		if (expires_at !== null && Date.parse(expires_at) <= Date.now()) {
			throw invalidField("/expires_at", "out_of_range", "the key would have expired already", "a time to come");
		}
		const made = mint(c);
		const about = { key_id: made.key_id, principal_id: body.principal_id, roles: body.roles ?? null, expires_at };
		const view = await audited(c, { action: "key.create", about }, async () => {
			await ensurePrincipal(c, body);
			return insert(c, { ...made, principal_id: body.principal_id, expires_at });
		});
		return c.json({ ...view, key: made.key }, 201);
	},
);

keys.get(
	"/",
	{
		summary: "list keys, without the keys",
		access: { who: "caller", permission: "keys:manage:*" },
		answers: { 200: listOf(keyView) },
	},
	async (c) => {
		const data = await new D1KeyStore(c.env.DB).list(c.get("caller").tenant_id);
		return c.json({ data, next_cursor: null });
	},
);

keys.delete("/:key_id", { summary: "revoke a key", access: manage, answers: { 204: null } }, async (c) => {
	const key_id = c.req.param("key_id");
	const { tenant_id } = c.get("caller");
	const rows = new D1KeyStore(c.env.DB);
	const owner = (await rows.list(tenant_id)).find((one) => one.key_id === key_id)?.principal_id;
	if (owner === undefined) throw notFound();
	await audited(c, { action: "key.revoke", about: { key_id, principal_id: owner } }, async () => {
		await rows.revoke(tenant_id, key_id, new Date().toISOString());
		const hasKey = async () => (await rows.list(tenant_id)).some((one) => one.principal_id === owner && isLive(one));
		// the last key of a principal takes its running runs along: they see it in their lease
		if (!(await hasKey())) {
			await controlOf(c.env, tenant_id, (control) => control.revoke({ v: 1, tenant_id, principal_id: owner }));
			// one that was made meanwhile has reinstated its principal before this revoked it
			if (await hasKey()) await reinstate(c, owner);
		}
		await bump(c.env, tenant_id, "policy");
	});
	return c.body(null, 204);
});

/** With an Idempotency-Key the key itself follows from it, under the tenant's secret: a repeat makes and shows the same one. */
function mint(c: Ctx): { key_id: string; key: string } {
	const caller = c.get("caller");
	const asked = idempotencyKey(c.req.header("idempotency-key"));
	const route = "POST /v1/keys";
	const bytes =
		asked === null
			? randomBytes(32)
			: tenantMac(c.env, caller.tenant_id, ["api key", caller.principal_id, route, asked]);
	return {
		key_id: `key_${newIdPart(c.env, caller, route, asked)}`,
		key: `${PREFIX}${Buffer.from(bytes).toString("base64url")}`,
	};
}

async function insert(
	c: Ctx,
	one: { key_id: string; key: string; principal_id: string; expires_at: string | null },
): Promise<KeyView> {
	const { tenant_id } = c.get("caller");
	const { key, ...row } = one;
	const rows = new D1KeyStore(c.env.DB);
	const stored = { ...row, prefix: PREFIX, last4: key.slice(-4), created_at: new Date().toISOString() };
	if (await rows.insert(tenant_id, { ...stored, key_hash: keyHash(key) })) {
		await reinstate(c, one.principal_id);
		await bump(c.env, tenant_id, "policy");
		return { ...stored, revoked_at: null };
	}
	const earlier = (await rows.list(tenant_id)).find((found) => found.key_id === one.key_id);
	const same = earlier?.principal_id === one.principal_id && earlier.expires_at === one.expires_at;
	if (earlier === undefined || !same) throw problem("idempotency_conflict", "the key made another API key");
	// the first request may have ended before this; a repeat of one whose key was revoked since brings nobody back
	if (isLive(earlier)) await reinstate(c, earlier.principal_id);
	return earlier;
}

/** A principal whose last key was revoked works again with a new one: its runs see it in their lease. */
async function reinstate(c: Ctx, principal_id: string): Promise<void> {
	const { tenant_id } = c.get("caller");
	await controlOf(c.env, tenant_id, (control) => control.reinstate({ v: 1, tenant_id, principal_id }));
}

async function ensurePrincipal(c: Ctx, body: z.infer<typeof newKey>): Promise<void> {
	const caller = c.get("caller");
	const { tenant_id } = caller;
	const { principal_id } = body;
	const principals = new D1Principals(c.env.DB);
	const existing = await principals.get(tenant_id, principal_id);
	const kind = existing?.kind ?? body.kind;
	if (kind === undefined)
		throw invalidField("/kind", "required_field_missing", "a new principal needs a kind", PRINCIPAL_KINDS.join(", "));
	if (kind === "user" && caller.kind !== "user")
		throw problem("forbidden", "only a person may make a key for a person");
	if (existing !== undefined) {
		requireSame(body, existing);
		await requireBound(c, principal_id, body.roles ?? []);
		const authority = await new D1AuthorityStore(c.env.DB).resolve(tenant_id, principal_id, 0);
		// a key for a stronger principal would be a way to become it
		if (authority !== undefined) requireHeld(caller, authority);
		return;
	}
	if (body.name === undefined)
		throw invalidField("/name", "required_field_missing", "a new principal needs a name", "a name");
	const roles = new D1Roles(c.env.DB);
	for (const [at, name] of (body.roles ?? []).entries()) {
		const found = await roles.get(tenant_id, name);
		if (found === undefined)
			throw invalidField(`/roles/${at}`, "unknown_name", "there is no such role", "a role's name");
		requireHeld(caller, found);
	}
	const now = new Date().toISOString();
	await principals.insert(tenant_id, {
		principal_id,
		kind,
		name: body.name,
		email: body.email ?? null,
		created_at: now,
	});
	if (body.roles !== undefined) await roles.bind(tenant_id, principal_id, body.roles, now);
}

/** Roles of an existing principal are changed at their own route; named here, they must be there already (a repeat). */
async function requireBound(c: Ctx, principal_id: string, roles: readonly string[]): Promise<void> {
	if (roles.length === 0) return;
	const held = (await new D1Roles(c.env.DB).bindings(c.get("caller").tenant_id, principal_id)).map(({ role }) => role);
	if (roles.every((one) => held.includes(one))) return;
	throw invalidField(
		"/roles",
		"schema_violation",
		"this principal exists without them",
		"no roles",
		"use `PUT /v1/role-bindings/:principal_id/:role`",
	);
}

/** A key request names an existing principal as it is; it never changes it on the side. */
function requireSame(body: z.infer<typeof newKey>, existing: PrincipalRow): void {
	const differs = (body.kind ?? existing.kind) !== existing.kind || (body.name ?? existing.name) !== existing.name;
	const moved = body.email !== undefined && body.email.toLowerCase() !== existing.email;
	// a key of a disabled principal would wake up with it
	if (existing.disabled_at !== null) throw problem("forbidden", "this principal is disabled");
	if (differs || moved) throw problem("version_conflict", "this principal exists with another kind, name or address");
}

function isLive(one: KeyView): boolean {
	return one.revoked_at === null && (one.expires_at === null || Date.parse(one.expires_at) > Date.now());
}
