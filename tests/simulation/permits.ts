/** What a permission of the simulation's people permits, said once more in the simulation's own words. */
import type { ToolDescriptor } from "#core/registry/descriptor.ts";

/** Whether one of them permits the tool. */
export const permits = (permissions: readonly string[], { tool_id, effect }: ToolDescriptor): boolean =>
	permissions.some(
		(one) => one === "*:*:*" || (effect === "read" ? one === "*:read:*" : one === `tools:write:${tool_id}`),
	);
