/**
 * F3: does a tool really work for this user on this device now? Judges the conditions that the shell has gathered; asks
 * nobody itself. An unknown or stale condition counts as missing, and every missing one is named with what mends it.
 */
import type { ToolVersion } from "../registry/descriptor.ts";
import { conditionNames, parseRequirement } from "../registry/requirements.ts";
import type { Fact } from "../surface/surface.ts";

/** One observed state: `name` as in `requires` (`mcp:<id>:connection` and its two siblings for MCP servers). */
export type Condition = {
	readonly name: string;
	readonly holds: boolean;
	/** Who observed it: `heartbeat`, `health_check`, `connection`, `device_link` … */
	readonly source: string;
	/** When, ms since the epoch. */
	readonly at: number;
	/** Good for this long, ms; CONDITION_MAX_AGE_MS when the source does not say. */
	readonly max_age_ms?: number;
};
export type Availability = Fact & { readonly missing: readonly { readonly name: string; readonly mend: string }[] };

/** Twice the slowest shipped observation (health checks default to 30 s): older says nothing about now. */
export const CONDITION_MAX_AGE_MS = 60_000;
/** Observations from machines whose clocks run a little ahead are still believed. */
const CLOCK_SKEW_MS = 5_000;

/** `now` is ms since the epoch, from the server's clock. */
export function available(version: ToolVersion, conditions: ReadonlyMap<string, Condition>, now: number): Availability {
	if (version.status !== "online") {
		const since = version.offline_since === null ? "" : ` since ${version.offline_since}`;
		return { holds: false, reason: `offline${since}`, missing: [{ name: "online", mend: "register a version again" }] };
	}
	const missing: { name: string; mend: string }[] = [];
	const why: string[] = [];
	// `tool:<id>` is the tool's own health (R5): it may be absent, but when it is known to be bad the tool is down
	const health = conditions.get(`tool:${version.descriptor.tool_id}`);
	if (health !== undefined && !health.holds && isFresh(health, now)) {
		missing.push({ name: health.name, mend: "wait until the tool's service answers its health check again" });
		why.push(`the tool's service is down (${health.source}, ${age(health, now)})`);
	}
	for (const name of version.descriptor.requires.flatMap(conditionNames)) {
		const condition = conditions.get(name);
		if (condition?.holds && isFresh(condition, now)) continue;
		missing.push({ name, mend: mend(name) });
		if (condition === undefined) why.push(`\`${name}\` has not been observed`);
		else if (condition.holds) why.push(`\`${name}\` is stale (${condition.source}, ${age(condition, now)})`);
		else why.push(`\`${name}\` does not hold (${condition.source}, ${age(condition, now)})`);
	}
	if (missing.length > 0) return { holds: false, reason: why.join("; "), missing };
	return {
		holds: true,
		reason: version.descriptor.requires.length === 0 ? "needs nothing" : "every precondition holds",
		missing,
	};
}

function isFresh(condition: Condition, now: number): boolean {
	const past = now - condition.at;
	return past >= -CLOCK_SKEW_MS && past <= (condition.max_age_ms ?? CONDITION_MAX_AGE_MS);
}

const age = (condition: Condition, now: number): string =>
	`${Math.max(0, Math.round((now - condition.at) / 1000))} s ago`;

function mend(name: string): string {
	const parsed = parseRequirement(name);
	switch (parsed?.kind) {
		case "workspace":
			return "open a workspace for this run, and name it in `context.workspace_id`";
		case "device":
			return "connect the device browser";
		case "microapp":
			return `install and open the micro-app \`${parsed.id}\``;
		case "connection":
			return `connect the account \`${parsed.id}\``;
		case "expert":
			return `add the expert \`${parsed.id}\``;
		case "provider":
			return `configure the provider \`${parsed.id}\``;
		case "process":
			return `start the process \`${parsed.id}\``;
		default:
			return mendMcp(name);
	}
}

function mendMcp(name: string): string {
	const [, server = "", part = ""] = /^mcp:(.+):(connection|discovery|agent_access)$/.exec(name) ?? [];
	if (part === "connection") return `enable and connect the MCP server \`${server}\``;
	if (part === "discovery") return `discover the tools of the MCP server \`${server}\``;
	if (part === "agent_access") return `accept the disclaimer and allow agents to use the MCP server \`${server}\``;
	return `provide \`${name}\``;
}
