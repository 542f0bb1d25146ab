/**
 * Who asks. The bearer key's SHA-256 is looked up in D1, with this isolate's short memory in front; the caller's authority
 * is resolved with it. Nothing in a request but the key ever says who somebody is. Unknown, expired and revoked keys get
 * one and the same 401. With D1 away nobody is let in: `store_unavailable`, never a guess. Called by `noun.ts`.
 */
import type { Context } from "hono";
import { D1AuthorityStore } from "#adapters/d1/d1-authority-store.ts";
import { D1KeyStore } from "#adapters/d1/d1-key-store.ts";
import { sha256 } from "#adapters/digest.ts";
import type { Caller } from "#core/principal.ts";
import { controlOf } from "../control.ts";
import type { AppEnv, Env } from "../env.ts";
import { problem } from "../problem.ts";
import { keyCache } from "./key-cache.ts";

/** `belay_<environment>_<random>`: what has another form costs no look-up. */
const API_KEY = /^belay_[a-z0-9]{1,16}_[A-Za-z0-9_-]{32,128}$/;

export const keyHash = (key: string): string => sha256(key);

/** The caller, or throws 401 / 503. */
export async function authenticate(c: Context<AppEnv>): Promise<Caller> {
	const [, key] = /^Bearer +(\S+)$/i.exec(c.req.header("authorization") ?? "") ?? [];
	if (key === undefined) throw unauthorized("send `authorization: Bearer <api key>`");
	if (!API_KEY.test(key)) throw unauthorized("the key is not valid", "invalid_token");
	const hash = keyHash(key);
	const now = Date.now();
	const known = keyCache.get(hash, now);
	const caller = known === undefined ? await lookUp(c.env, hash, now) : known;
	if (caller === null) throw unauthorized("the key is not valid", "invalid_token");
	return caller;
}

async function lookUp(env: Env, hash: string, now: number): Promise<Caller | null> {
	const found = await new D1KeyStore(env.DB).find(hash, new Date(now).toISOString());
	const caller = found.ok ? await withAuthority(env, found.principal) : null;
	keyCache.put(hash, caller, now, found.ok && found.expires_at !== null ? Date.parse(found.expires_at) : undefined);
	return caller;
}

async function withAuthority(env: Env, principal: Omit<Caller, "authority">): Promise<Caller | null> {
	const { tenant_id, principal_id } = principal;
	const { policy_rev } = await controlOf(env, tenant_id, (control) => control.lease({ v: 1, tenant_id }));
	const authority = await new D1AuthorityStore(env.DB).resolve(tenant_id, principal_id, policy_rev);
	return authority === undefined ? null : { ...principal, authority };
}

function unauthorized(detail: string, error?: "invalid_token") {
	const challenge = `Bearer realm="belay"${error === undefined ? "" : `, error="${error}"`}`;
	return problem("unauthorized", detail, { headers: { "www-authenticate": challenge } });
}
