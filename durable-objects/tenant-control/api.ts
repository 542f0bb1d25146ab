/**
 * What the rest of Belay asks of a tenant's control object (decision 12), and what those objects ask of the platform's:
 * the one named PLATFORM_OBJECT, which holds the halts of everything.
 */
import type { Lease } from "#core/ports.ts";

/** No tenant's id: `/v1/halts` alone writes here, for people of the platform's tenant. */
export const PLATFORM_OBJECT = "platform";

/** An interval of a halt. `scope`: `tenant`, `tool:<tool_id>`, or `all` (the platform's). Times in ms since the epoch. */
export type Halt = {
	readonly halt_id: string;
	readonly scope: string;
	readonly reason: string;
	/** The principal who opened it. */
	readonly by: string;
	readonly since: number;
	/** Null while it is open. */
	readonly until: number | null;
};

export type OpenedHalt =
	| { readonly ok: true; readonly halt: Halt }
	/** `taken`: the id is of another halt. `too_many`: HALTS_OPEN_MAX of this kind of scope are open. */
	| { readonly ok: false; readonly reason: "taken" | "too_many" };

type Asked = { readonly v: 1; readonly tenant_id: string };

export interface TenantControlApi {
	/** What holds now. Costs one Durable Object request per run and LEASE_TTL_MS. */
	lease(ask: Asked): Promise<Lease>;
	/** Says that the registry or a policy (roles, bindings, keys) changed in D1. Runs see it within LEASE_TTL_MS. */
	bump(ask: Asked & { readonly what: "policy" | "registry" }): Promise<Lease>;
	revoke(ask: Asked & { readonly principal_id: string }): Promise<Lease>;
	/** Undoes `revoke`: the principal has a live key again. */
	reinstate(ask: Asked & { readonly principal_id: string }): Promise<Lease>;
	/** Opens a halt. Repeatable: the same id, scope and reason answer the halt that is there, ended or not. */
	openHalt(ask: Asked & Pick<Halt, "halt_id" | "scope" | "reason" | "by">): Promise<OpenedHalt>;
	/** Ends a halt; null when this object has none of this id and kind. A second end keeps the first one's time. */
	endHalt(ask: Asked & { readonly halt_id: string; readonly of_platform: boolean }): Promise<Halt | null>;
	/** Every open halt and the latest ended ones, newest first; the platform's too, without who opened them. */
	halts(ask: Asked): Promise<readonly Halt[]>;
	/** Halts of everything, within HALT_MEMORY_MS; asked of the platform's object by the others. */
	platformHalts(ask: { readonly v: 1 }): Promise<readonly Halt[]>;
	/** A tool's breaker opened until then (ms since the epoch), or closed (null). */
	breaker(ask: Asked & { readonly tool_id: string; readonly until: number | null }): Promise<Lease>;
}
