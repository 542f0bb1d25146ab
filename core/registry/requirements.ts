/**
 * The closed vocabulary of `requires` (F3), parsed once at registration. What holds now is availability's question.
 */
export type Requirement =
	| { readonly kind: "workspace" }
	| { readonly kind: "microapp" | "connection" | "expert" | "provider" | "process"; readonly id: string }
	| { readonly kind: "device"; readonly id: "browser" }
	| { readonly kind: "mcp"; readonly id: string };

const ID = /^[a-z0-9][a-z0-9_.-]{0,63}$/;
const KINDS_WITH_ID: readonly string[] = ["microapp", "connection", "expert", "provider", "process", "mcp"];

/** One entry of `requires`, or undefined when it is not in the vocabulary. */
export function parseRequirement(text: string): Requirement | undefined {
	if (text === "workspace") return { kind: "workspace" };
	if (text === "device:browser") return { kind: "device", id: "browser" };
	const colon = text.indexOf(":");
	const kind = text.slice(0, colon);
	const id = text.slice(colon + 1);
	if (colon < 0 || !KINDS_WITH_ID.includes(kind) || !ID.test(id)) return undefined;
	return { kind, id } as Requirement;
}

/**
 * Whether anything here can ever say that the precondition holds (`core/availability/conditions.ts`). A tool that requires
 * another would be unavailable for ever, so it is not registered.
 */
export const isObserved = (requirement: Requirement): boolean => requirement.kind === "workspace";

/** The conditions that an entry stands for: an MCP server needs three, named apart (F3, M1). */
export function conditionNames(requirement: string): string[] {
	const parsed = parseRequirement(requirement);
	if (parsed?.kind !== "mcp") return [requirement];
	return [`${requirement}:connection`, `${requirement}:discovery`, `${requirement}:agent_access`];
}
