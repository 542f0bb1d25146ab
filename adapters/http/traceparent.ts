/** The W3C `traceparent` of one attempt's outgoing request. Makes no randomness: the span is the call's own. */
import type { Invocation } from "#core/ports.ts";

/** `00-<trace>-<span>-01`, the span being the last 8 bytes of the call id; undefined when either is not hexadecimal. */
export function traceparent(invocation: Pick<Invocation, "trace_id" | "tool_call_id">): string | undefined {
	const span = /[0-9a-f]{16}$/.exec(invocation.tool_call_id)?.[0];
	if (span === undefined || /^0+$/.test(span) || !/^(?!0+$)[0-9a-f]{32}$/.test(invocation.trace_id)) return undefined;
	return `00-${invocation.trace_id}-${span}-01`;
}
