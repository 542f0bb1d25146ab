/**
 * Names of tools as planners see them (X3): what providers accept (`^[a-zA-Z0-9_-]{1,64}$`), one per tool, the same on
 * every turn whatever else is exposed. Called by the run when it offers functions and when it resolves a call.
 */
import { invariant } from "../invariant.ts";
import type { Digest } from "../json.ts";

/** Functions beside the tools (contract): no tool may take their names. */
export const PLANNER_FUNCTIONS = ["delegate_task", "run_chain", "search_tools"] as const;

const ACCEPTED = /^[a-zA-Z0-9_-]{1,64}$/;
const SHORT_HASH = 12;
const LONG_HASH = 32;

/** Both ways. Maps, not objects: `constructor` is a name like any other. */
type FunctionNames = {
	/** Tool id -> function name. */
	readonly toFunction: ReadonlyMap<string, string>;
	/** Function name -> tool id. */
	readonly toTool: ReadonlyMap<string, string>;
};

/**
 * A valid tool id is its own name. Another gets its readable part, `-`, and a hash of the id; a hyphen cannot occur in
 * an id that is registered here, so no registration can take the name of a projection. Where two short hashes meet,
 * which takes a search by someone who wants to be taken for the other, both get the long one.
 */
export function functionNames(toolIds: readonly string[], digest: Digest): FunctionNames {
	const reserved = new Set<string>(PLANNER_FUNCTIONS);
	const ids = [...new Set(toolIds)].sort();
	const itself = new Set(ids.filter((id) => ACCEPTED.test(id) && !reserved.has(id)));
	const hashed = ids.filter((id) => !itself.has(id)).map((id) => ({ id, hash: digest(id) }));
	const wanted = new Map<string, number>();
	for (const one of hashed) {
		const name = hashedName(one, SHORT_HASH);
		wanted.set(name, (wanted.get(name) ?? 0) + 1);
	}
	const toFunction = new Map<string, string>();
	const toTool = new Map<string, string>();
	const give = (id: string, name: string): void => {
		invariant(!toTool.has(name) && !reserved.has(name), "function names are unique");
		toFunction.set(id, name);
		toTool.set(name, id);
	};
	for (const id of itself) give(id, id);
	for (const one of hashed) {
		const short = hashedName(one, SHORT_HASH);
		give(one.id, wanted.get(short) === 1 && !itself.has(short) ? short : hashedName(one, LONG_HASH));
	}
	return { toFunction, toTool };
}

function hashedName({ id, hash }: { id: string; hash: string }, digits: number): string {
	const readable = id.replace(/[^a-zA-Z0-9]+/g, "_").replace(/^_+/, "");
	return `${readable.slice(0, 63 - digits).replace(/_+$/, "") || "tool"}-${hash.slice(0, digits)}`;
}
