/**
 * Whether a caller may use a route at all. A principal of kind `agent` makes no administrative write and decides no
 * approval, whatever its roles say (decision 18): a planner that is talked into granting itself something meets this line
 * before any permission is looked at. Called by `noun.ts`, and by routes whose permission depends on an object.
 */
import { permits } from "#core/policy/permits.ts";
import type { Caller } from "#core/principal.ts";
import type { Access } from "../noun.ts";
import { problem } from "../problem.ts";

/** Throws 403 `forbidden` unless `caller` may. */
export function permit(caller: Caller, access: Access): void {
	if (access.people && caller.kind !== "user") throw problem("forbidden", "only a person may do this");
	if (access.administrative && caller.kind === "agent") throw problem("forbidden", "an agent may not do this");
	if (access.permission !== undefined && !permits(caller.authority.permissions, access.permission)) {
		throw problem("forbidden", `needs the permission \`${access.permission}\``);
	}
}
