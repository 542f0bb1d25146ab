/** What expressions may look at: the frozen arguments and who asks, nothing of the world. */
import type { Scope } from "../expression.ts";
import type { JsonObject } from "../json.ts";
import type { Draft } from "./draft.ts";

export function scopeOf(draft: Draft, args: JsonObject): Scope {
	const { run, kit } = draft;
	const { principal_id, kind } = run.principal;
	return {
		args,
		context: {
			principal: { id: principal_id, kind, roles: [...run.authority.roles] },
			tenant_id: run.tenant_id,
			session_id: run.session_id,
			run_id: run.run_id,
			now: kit.now,
			environment: kit.environment,
		},
	};
}
