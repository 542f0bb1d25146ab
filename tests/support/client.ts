/**
 * A tenant with its people, agents and keys, and a client for the real Worker. Used by every test that speaks to the API.
 */

import { env, exports } from "cloudflare:workers";
import { createHash } from "node:crypto";
import { definitionHash } from "#core/registry/register.ts";
import { DEVELOPMENT_PRINCIPALS, type DevelopmentPrincipal, seedDevelopment } from "../../ops/seed/seed.ts";

export type TestTenant = { readonly tenant_id: string } & Readonly<Record<DevelopmentPrincipal, string>>;

export const sha256 = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex");

/** Seeds a tenant (a fresh one by default) and answers a key of each of its principals. */
export async function seedTenant(options: { tenant_id?: string } = {}): Promise<TestTenant> {
	const tenant_id = options.tenant_id ?? `tenant_${crypto.randomUUID().slice(0, 8)}`;
	const principals = Object.keys(DEVELOPMENT_PRINCIPALS) as DevelopmentPrincipal[];
	const made = principals.map((principal) => ({ principal, key: newKey() }));
	await seedDevelopment(env.DB, {
		tenant_id,
		now: new Date().toISOString(),
		keys: made.map(({ principal, key }) => ({
			principal,
			hash: sha256(key),
			prefix: "belay_test_",
			last4: key.slice(-4),
		})),
		definitionHash: (descriptor) => definitionHash(descriptor, sha256),
	});
	return { tenant_id, ...Object.fromEntries(made.map(({ principal, key }) => [principal, key])) } as TestTenant;
}

/** A key of the right form that nobody has. */
export function newKey(): string {
	return `belay_test_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url")}`;
}

/** The Worker itself, with everything in front of its routes. */
export const worker = (exports as unknown as { default: Fetcher }).default;

export type Answer = {
	readonly status: number;
	readonly headers: Headers;
	readonly text: string;
	readonly body: any;
};

/** One member of every entry of a list in an answer. */
export function pluck(list: unknown, name: string): unknown[] {
	return (list as Record<string, unknown>[]).map((one) => one[name]);
}

/** Sends to the Worker as it is. `body`: an object is sent as JSON, text and bytes as they are. */
export async function send(request: Request): Promise<Answer> {
	const response = await worker.fetch(request);
	const text = await response.text();
	const json = (response.headers.get("content-type") ?? "").includes("json");
	return { status: response.status, headers: response.headers, text, body: json ? JSON.parse(text) : undefined };
}

/** One call of the API. `key` undefined sends none. */
export function call(
	method: string,
	path: string,
	body?: unknown,
	key?: string,
	headers: Record<string, string> = {},
): Promise<Answer> {
	const sent = new Headers(headers);
	if (key !== undefined) sent.set("authorization", `Bearer ${key}`);
	if (body !== undefined && !sent.has("content-type")) sent.set("content-type", "application/json");
	return send(
		new Request(`https://belay.test${path}`, {
			method,
			headers: sent,
			...(body === undefined
				? {}
				: { body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body) }),
		}),
	);
}
