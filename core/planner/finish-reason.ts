/**
 * One vocabulary for why a planner's turn ended. Providers and gateways spell it in many ways; a spelling that is not
 * known stays as it is and therefore executes nothing. Called by the assembler and the wire decision.
 */
const ALIASES = new Map([
	["stop", "stop"],
	["end_turn", "stop"],
	["stop_sequence", "stop"],
	["eos", "stop"],
	["tool_calls", "tool_calls"],
	["tool_use", "tool_calls"],
	["length", "length"],
	["max_tokens", "length"],
	["max_output_tokens", "length"],
	["max_completion_tokens", "length"],
	["max_length", "length"],
	["model_length", "length"],
	["model_context_window_exceeded", "length"],
	["content_filter", "content_filter"],
	["safety", "content_filter"],
	["insufficient_system_resource", "insufficient_system_resource"],
]);

/** The canonical name; an unknown one is cut to 64 characters and kept. */
export function finishReason(raw: string): string {
	const name = raw.trim().toLowerCase();
	return ALIASES.get(name) ?? name.slice(0, 64);
}
