/**
 * Declares routes. One declaration says who may call a route, what it takes and what it answers; the same declaration
 * guards the route, validates it, and makes its part of the OpenAPI document and of the tests' tables. A route cannot be
 * declared without saying who may call it, so none is open by oversight. The order never changes: who are you (401), are
 * you allowed (403), is the body readable (400, 413, 415), does it fit (422), and only then the handler.
 */
import { type Context, Hono } from "hono";
import type * as z from "zod";
import type { AppEnv } from "./env.ts";
import { fieldErrors } from "./field-errors.ts";
import { authenticate } from "./middleware/authenticate.ts";
import { permit } from "./middleware/permit.ts";
import { readJsonObject } from "./middleware/read-body.ts";
import { invalid } from "./problem.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

export type Access = {
	/** `public`: no key. `caller`: any key; what it may see or do is judged further in, e.g. by the run. */
	readonly who: "public" | "caller";
	/** The permission that the route as a whole asks for (403 without it). */
	readonly permission?: string;
	/** Decision 18: an administrative write, which a principal of kind `agent` never makes, whatever its roles. */
	readonly administrative?: true;
	/** Decision 18: only a principal of kind `user`. */
	readonly people?: true;
};

export type RouteSpec<B extends z.ZodType | undefined, Q extends z.ZodType | undefined> = {
	readonly summary: string;
	readonly access: Access;
	readonly body?: B;
	/** What the body is documented as, where core judges it itself. */
	readonly documented_body?: z.ZodType;
	/** A form's fields, where the body is no JSON; the route reads it itself. */
	readonly documented_form?: z.ZodType;
	/** How failures of this route look where that is not `application/problem+json`: JSON of a schema, or a media type. */
	readonly failure?: z.ZodType | string;
	/** The body may be left out. */
	readonly body_optional?: true;
	readonly query?: Q;
	/** Request headers with a meaning of their own here. */
	readonly headers?: readonly ("Idempotency-Key" | "Prefer" | "Last-Event-ID" | "belay-run-id")[];
	/** Status -> schema of a JSON answer, or the media type of another one, or null for none. Problems go without saying. */
	readonly answers: Readonly<Record<number, z.ZodType | string | null>>;
};

/** A route as the table shows it: what OpenAPI, the documentation page and the tests read. */
export type RouteEntry = RouteSpec<z.ZodType | undefined, z.ZodType | undefined> & {
	readonly method: Method;
	/** Full path with `:name` parameters. */
	readonly path: string;
	readonly tag: string;
};

type Parsed<S extends z.ZodType | undefined> = S extends z.ZodType ? z.infer<S> : undefined;
export type Ctx<P extends string = string> = Context<AppEnv, P>;
export type Handler<P extends string, B extends z.ZodType | undefined, Q extends z.ZodType | undefined> = (
	c: Ctx<P>,
	body: Parsed<B>,
	query: Parsed<Q>,
) => Response | Promise<Response>;

/** The routes of one noun below `prefix`. */
export function noun(prefix: string, tag: string) {
	const app = new Hono<AppEnv>();
	const routes: RouteEntry[] = [];

	const declare =
		(method: Method) =>
		<const P extends string, B extends z.ZodType | undefined = undefined, Q extends z.ZodType | undefined = undefined>(
			path: P,
			spec: RouteSpec<B, Q>,
			handler: Handler<P, B, Q>,
		): void => {
			routes.push({ ...spec, method, path: path === "/" ? prefix || "/" : `${prefix}${path}`, tag });
			app.on(method, path, async (c) => {
				if (spec.access.who !== "public") {
					const caller = await authenticate(c);
					c.set("caller", caller);
					permit(caller, spec.access);
				}
				const query = spec.query === undefined ? undefined : checked(spec.query, c.req.query(), "query");
				const body = spec.body === undefined ? undefined : await takeBody(c, spec.body, spec.body_optional === true);
				return handler(c as unknown as Ctx<P>, body as Parsed<B>, query as Parsed<Q>);
			});
		};

	return {
		prefix,
		app,
		routes,
		get: declare("GET"),
		post: declare("POST"),
		put: declare("PUT"),
		delete: declare("DELETE"),
	};
}

async function takeBody(c: Context<AppEnv>, schema: z.ZodType, optional: boolean): Promise<unknown> {
	return checked(schema, (await readJsonObject(c.req, optional)) ?? {}, "body");
}

function checked(schema: z.ZodType, input: unknown, where: "body" | "query"): unknown {
	const result = schema.safeParse(input);
	if (result.success) return result.data;
	const errors = fieldErrors(result.error, input);
	throw invalid(where === "body" ? errors : errors.map((one) => ({ ...one, field: `query:${one.field.slice(1)}` })));
}
