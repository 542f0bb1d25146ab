/**
 * How one tool of a tenant is doing, as its gate counts it (I3, I7): breaker, pause, cache, claims. Numbers only, no
 * result and no argument. Called by the tools route after it has checked who may see the tool: a gate exists for tools of
 * the tenant, and asking for any other must not make one.
 */
import * as z from "zod";
import { gateName } from "#core/invoke/gate-keys.ts";
import type { ToolVersion } from "#core/registry/descriptor.ts";
import type { ToolGateApi } from "#objects/tool-gate/api.ts";
import type { Ctx } from "../noun.ts";
import { problem } from "../problem.ts";

const RETRY_AFTER_S = 2;
const count = z.number().int().min(0);

export const toolHealthView = z.object({
	tool_id: z.string(),
	breaker: z.object({
		state: z.enum(["closed", "open", "half_open"]),
		/** When an open breaker lets a probe through; in the past while it is half-open. */
		until: z.string().nullable(),
		samples: count,
		failures: count,
	}),
	rate: z.object({ paused_until: z.string().nullable() }),
	cache: z.object({ cached: count, hits: count, misses: count, hit_rate: z.number().nullable() }),
	claims: count,
});

export async function toolHealth(c: Ctx, { descriptor }: ToolVersion): Promise<z.infer<typeof toolHealthView>> {
	const { tool_id, criticality } = descriptor;
	const { breaker, cached, claims, hits, misses, paused_until } = await askGate(c, tool_id, criticality);
	return {
		tool_id,
		breaker: { ...breaker, until: iso(breaker.until) },
		rate: { paused_until: iso(paused_until) },
		cache: { cached, hits, misses, hit_rate: hits + misses === 0 ? null : hits / (hits + misses) },
		claims,
	};
}

/** Reads may be repeated: once more on a fresh stub when the object was reset. */
async function askGate(c: Ctx, tool_id: string, criticality: ToolVersion["descriptor"]["criticality"]) {
	const { tenant_id } = c.get("caller");
	for (let attempt = 1; ; attempt++) {
		try {
			const gate = c.env.TOOL_GATE.getByName(gateName(tenant_id, tool_id)) as unknown as ToolGateApi;
			return await gate.view({ v: 1, tenant_id, tool_id, criticality });
		} catch (error) {
			if (attempt === 1) continue;
			const name = error instanceof Error ? error.name : typeof error;
			console.error(JSON.stringify({ level: "warn", what: "tool gate unreachable", error: name }));
			throw problem("control_unavailable", "the tool's gate cannot be reached just now; try again", {
				retry_after_s: RETRY_AFTER_S,
			});
		}
	}
}

const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
