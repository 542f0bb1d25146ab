/** What no route matched: 405 with `Allow` where the path exists under other methods, else the one 404. */
import type { NotFoundHandler } from "hono";
import type { AppEnv } from "../env.ts";
import type { RouteEntry } from "../noun.ts";
import { notFound, problem } from "../problem.ts";
import { respond } from "./problem.ts";

export function methodGuard(routes: readonly RouteEntry[]): NotFoundHandler<AppEnv> {
	const known = routes.map(({ path, method }) => ({
		method,
		pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/:[a-z_]+/g, "[^/]+")}$`),
	}));
	return (c) => {
		const methods = known.filter(({ pattern }) => pattern.test(c.req.path)).map(({ method }) => method);
		if (methods.length === 0) return respond(c, notFound());
		const allow = [...new Set([...methods, ...(methods.includes("GET") ? ["HEAD"] : [])])].join(", ");
		return respond(c, problem("method_not_allowed", `use ${allow}`, { headers: { allow } }));
	};
}
