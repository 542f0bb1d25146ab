/**
 * `domain:action:object`, the form of capabilities and permissions (R2, P2). Parsing only: what grants what is policy's.
 * An object may itself hold colons when it is an MCP projection's id (M2), and only then.
 */
export type ThreePart = readonly [domain: string, action: string, object: string];

const PART = /^(?:\*|[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})$/;
const MCP_OBJECT = /^mcp:[a-z0-9_-]{1,64}:tool:[A-Za-z0-9_.-]{1,128}$/;

/** The three parts, missing trailing ones read as `*` (P2); undefined when the text has another form. */
export function parseThreePart(text: string): ThreePart | undefined {
	const [domain, action = "*", ...rest] = text.split(":");
	const object = rest.length === 0 ? "*" : rest.join(":");
	if (domain === undefined || !PART.test(domain) || !PART.test(action)) return undefined;
	return PART.test(object) || MCP_OBJECT.test(object) ? [domain, action, object] : undefined;
}

/** A capability names all three parts itself (R2). */
export function isFullThreePart(text: string): boolean {
	return text.split(":").length >= 3 && parseThreePart(text) !== undefined;
}
