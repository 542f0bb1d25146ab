/**
 * `/v1/secrets`: write-only. A value goes in, is sealed for its tenant, name and version, and never comes out of any
 * route again: not in lists, not in errors, not in the audit. A secret names where it may go.
 */
import * as z from "zod";
import { D1Secrets } from "#adapters/d1/d1-secrets.ts";
import { checkAllowedUse } from "#adapters/secrets/allowed-use.ts";
import { readMasters } from "#adapters/secrets/derive.ts";
import { SecretSealer } from "#adapters/secrets/secret-sealer.ts";
import { audited } from "../administer.ts";
import { type Ctx, noun } from "../noun.ts";
import { invalid, invalidField, notFound, problem } from "../problem.ts";
import { listOf } from "../wire/envelopes.ts";

const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
const VALUE_MAX_CHARS = 65_536;
/** Two writers of one name: each seals for the next free version. */
const PUT_TRIES = 5;

const manage = { who: "caller", permission: "secrets:manage:*", administrative: true } as const;
const secretView = z.object({
	name: z.string(),
	version: z.number().int(),
	allowed_hosts: z.array(z.string()),
	allowed_tools: z.array(z.string()),
	created_at: z.string(),
	updated_at: z.string(),
});

export const secrets = noun("/v1/secrets", "Secrets");

secrets.put(
	"/:name",
	{
		summary: "store a secret, or a new value in its place",
		access: manage,
		body: z.strictObject({
			value: z.string().min(1).max(VALUE_MAX_CHARS),
			/** `api.example.com` or `*.example.com`; nothing is allowed by default. */
			allowed_hosts: z.array(z.string().max(256)).max(50),
			allowed_tools: z.array(z.string().max(256)).max(200),
		}),
		answers: { 200: secretView, 201: secretView },
	},
	async (c, { value, ...use }) => {
		const name = c.req.param("name");
		if (!NAME.test(name))
			throw invalidField("path:name", "pattern_mismatch", "the name has another form", `\`${NAME.source}\``);
		const errors = checkAllowedUse(use);
		if (errors.length > 0) throw invalid(errors);
		const view = await audited(c, { action: "secret.put", about: { name, ...use } }, () => store(c, name, value, use));
		return c.json(view, view.version === 1 ? 201 : 200);
	},
);

secrets.get(
	"/",
	{
		summary: "list names and where each may go; never values",
		access: { who: "caller", permission: "secrets:manage:*" },
		answers: { 200: listOf(secretView) },
	},
	async (c) => {
		const data = await new D1Secrets(c.env.DB).list(c.get("caller").tenant_id);
		return c.json({ data, next_cursor: null });
	},
);

secrets.delete("/:name", { summary: "forget a secret", access: manage, answers: { 204: null } }, async (c) => {
	const name = c.req.param("name");
	const { tenant_id } = c.get("caller");
	const gone = await audited(c, { action: "secret.delete", about: { name: name.slice(0, 64) } }, () =>
		new D1Secrets(c.env.DB).delete(tenant_id, name, new Date().toISOString()),
	);
	if (!gone) throw notFound();
	return c.body(null, 204);
});

async function store(c: Ctx, name: string, value: string, use: { allowed_hosts: string[]; allowed_tools: string[] }) {
	const { tenant_id } = c.get("caller");
	const rows = new D1Secrets(c.env.DB);
	const sealer = new SecretSealer(readMasters(c.env.BELAY_MASTER_SECRET), "secrets");
	for (let n = 1; n <= PUT_TRIES; n++) {
		const version = await rows.nextVersion(tenant_id, name);
		const ciphertext = await sealer.seal({ tenant_id, name, version }, value);
		const now = new Date().toISOString();
		if (!(await rows.put(tenant_id, { name, version, ciphertext, ...use }, now))) continue;
		return (
			(await rows.list(tenant_id)).find((one) => one.name === name) ?? {
				name,
				version,
				...use,
				created_at: now,
				updated_at: now,
			}
		);
	}
	throw problem("version_conflict", "the secret is being written by others; try again", { retry_after_s: 1 });
}
