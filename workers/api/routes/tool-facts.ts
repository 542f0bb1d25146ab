/**
 * F6: one call explains a tool, the five facts side by side. Each fact is asked of the part that owns it: what is exposed
 * and what was invoked only a run can say. Decides nothing. Called by the tools route after it has checked who may see
 * the tool.
 */
import * as z from "zod";
import { available } from "#core/availability/available.ts";
import { runPart } from "#core/ids.ts";
import { judgeTool } from "#core/policy/permits.ts";
import type { ToolVersion } from "#core/registry/descriptor.ts";
import type { CallView, ExposureTrace } from "#core/run/view.ts";
import { type Fact, onSurface } from "#core/surface/surface.ts";
import type { Ctx } from "../noun.ts";
import { notFound } from "../problem.ts";
import { askRun } from "../run-object.ts";

const fact = z.object({ holds: z.boolean(), reason: z.string() });
const missing = z.array(z.object({ name: z.string(), mend: z.string() }));
export const toolFactsView = z.object({
	tool_id: z.string(),
	registry: fact,
	surface: fact,
	availability: fact.extend({ missing }),
	exposure: fact,
	invocation: fact,
});

export async function toolFacts(
	c: Ctx,
	version: ToolVersion,
	runId: string | undefined,
): Promise<z.infer<typeof toolFactsView>> {
	const { descriptor } = version;
	const said = { v: 1 as const, caller: c.get("caller") };
	if (runId !== undefined && runPart(runId) === undefined) throw notFound();
	const [seen, run] =
		runId === undefined
			? [null, null]
			: await Promise.all([
					askRun(c.env, runId, "read", (object) => object.exposure(said)),
					askRun(c.env, runId, "read", (object) => object.read({ ...said, after_seq: null, wait_ms: 0 })),
				]);
	// Conditions are a run's: without one none has been observed.
	const observed = new Map((seen?.conditions ?? []).map((condition) => [condition.name, condition]));
	const availability = available(version, observed, Date.now());
	return {
		tool_id: descriptor.tool_id,
		registry: registered(version),
		surface: pick(onSurface(descriptor)),
		availability: { ...pick(availability), missing: availability.missing.map(({ name, mend }) => ({ name, mend })) },
		exposure: seen === null ? eligible(c, version, availability) : exposed(descriptor.tool_id, seen.trace),
		invocation: run === null ? { holds: false, reason: "no run was named" } : invoked(descriptor.tool_id, run.calls),
	};
}

function registered(version: ToolVersion): Fact {
	if (version.status === "offline")
		return { holds: false, reason: `offline since ${version.offline_since ?? "an unknown time"}` };
	return {
		holds: true,
		reason: `version ${version.descriptor.version} is registered as kind ${version.descriptor.implementation.kind}`,
	};
}

function exposed(tool_id: string, trace: readonly ExposureTrace[]): Fact {
	const traced = trace.find((one) => one.tool_id === tool_id);
	if (traced === undefined) return { holds: false, reason: "not among the run's tools" };
	return { holds: traced.exposed, reason: traced.reason };
}

function invoked(tool_id: string, all: readonly CallView[]): Fact {
	const calls = all.filter((one) => one.tool_id === tool_id);
	const last = calls.at(-1);
	if (last === undefined) return { holds: false, reason: "not called among the run's last calls" };
	return {
		holds: true,
		reason: `called ${calls.length} time${calls.length === 1 ? "" : "s"}, last in turn ${last.turn}: ${last.state}`,
	};
}

/** Without a run: whether the tool would be eligible for this caller. */
function eligible(c: Ctx, { descriptor }: ToolVersion, availability: Fact): Fact {
	const permission = judgeTool(c.get("caller").authority, descriptor);
	const unmet = [
		...(onSurface(descriptor).holds ? [] : ["not on the public surface"]),
		...(availability.holds ? [] : ["not available"]),
		...(permission.decision === "deny" ? ["not permitted for this caller"] : []),
	];
	if (unmet.length > 0) return { holds: false, reason: `not eligible: ${unmet.join(", ")}` };
	return { holds: true, reason: "eligible for this caller; a run's turn decides what is exposed" };
}

const pick = ({ holds, reason }: Fact): Fact => ({ holds, reason });
