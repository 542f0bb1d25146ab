/** How long an attempt may take (I4, decision 6). */
import { TOOL_TIMEOUT_DEFAULT_MS } from "../limits.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";

/** The declared limit, clipped to what is left of the turn, ms; at least 1. */
export function attemptLimit(descriptor: ToolDescriptor, turn_left_ms: number): number {
	return Math.max(1, Math.min(descriptor.timeout_ms ?? TOOL_TIMEOUT_DEFAULT_MS, turn_left_ms));
}
