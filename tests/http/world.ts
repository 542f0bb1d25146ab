/** A world for invokers: a recording `fetch` with scripted hosts, a vault of plain values, and calls to make. */
import type { HttpInvokerDeps } from "#adapters/http/http-invoker.ts";
import { HttpInvoker } from "#adapters/http/http-invoker.ts";
import type { JsonObject } from "#core/json.ts";
import type { InvokeOutcome } from "#core/outcome.ts";
import type { Invocation } from "#core/ports.ts";
import { toolDescriptor } from "#core/registry/descriptor.ts";

export const NOW = Date.parse("2026-11-30T12:00:00.000Z");
export const TRACE = "0af7651916cd43dd8448eb211c80319c";
export const CALL = `call_${"a".repeat(32)}_${"b".repeat(32)}`;

export type Seen = { method: string; url: string; headers: Record<string, string>; body: string };
export type Answer = (request: Request, seen: Seen) => Response | Promise<Response>;

/** Hosts by name (`host[:port]`); a host that is not listed loses its connection, as workerd says it. */
export class World {
	readonly seen: Seen[] = [];
	readonly #hosts: Record<string, Answer>;

	constructor(hosts: Record<string, Answer>) {
		this.#hosts = hosts;
	}

	readonly fetch = async (request: Request): Promise<Response> => {
		const seen = {
			method: request.method,
			url: request.url,
			headers: Object.fromEntries(request.headers),
			body: new TextDecoder().decode(await request.arrayBuffer()),
		};
		this.seen.push(seen);
		const answer = this.#hosts[new URL(request.url).host];
		if (answer === undefined) throw new Error("Network connection lost.");
		return answer(request, seen);
	};
}

export const ok: Answer = () => Response.json({ ok: true });
export const redirect = (status: number, location: string): Response =>
	new Response(null, { status, headers: { location } });

export type Setup = {
	implementation: JsonObject;
	args?: JsonObject;
	effect?: "read" | "write" | "external";
	secrets?: Record<string, string>;
	invocation?: Partial<Invocation>;
	signal?: AbortSignal;
};

export function invocationOf(setup: Pick<Setup, "implementation" | "args" | "effect" | "invocation">): Invocation {
	const descriptor = toolDescriptor.parse({
		tool_id: "the_tool",
		name: "the_tool",
		version: "1.0.0",
		description: "a tool",
		category: "data_retrieval",
		input_schema: { type: "object" },
		effect: setup.effect ?? "read",
		implementation: setup.implementation,
	});
	return {
		tenant_id: "ten_a",
		run_id: `run_${"a".repeat(32)}`,
		tool_call_id: CALL,
		attempt: 1,
		principal: { tenant_id: "ten_a", principal_id: "prn_1", kind: "agent", name: "agent" },
		descriptor,
		arguments: setup.args ?? {},
		timeout_ms: 2_000,
		idempotency_key: null,
		trace_id: TRACE,
		...setup.invocation,
	};
}

/** An invoker over the world; its vault opens `secrets` for any use and records each use. */
export function invokerOf(world: World, secrets: Record<string, string> = {}, deps: Partial<HttpInvokerDeps> = {}) {
	const uses: { name: string; tool_id: string; host: string | null }[] = [];
	const invoker = new HttpInvoker({
		fetch: world.fetch,
		rules: { own_hosts: ["belay.test"], exemptions: ["127.0.0.1:4010"] },
		clock: () => NOW,
		vault: {
			open: async (_tenant, name, use) => {
				uses.push({ name, ...use });
				const value = secrets[name];
				return value === undefined ? { ok: false, reason: "unknown_secret" } : { ok: true, value, version: 1 };
			},
		},
		...deps,
	});
	return { invoker, uses };
}

export async function call(world: World, setup: Setup): Promise<InvokeOutcome> {
	const { invoker } = invokerOf(world, setup.secrets);
	return invoker.invoke(invocationOf(setup), setup.signal ?? new AbortController().signal);
}
