/**
 * The API as OpenAPI 3.1, made from the declarations that guard and validate it, so that it cannot say anything else.
 * Shapes with a name become components. Called by `/openapi.json`, once per isolate.
 */
import * as z from "zod";
import type { JsonObject } from "#core/json.ts";
import { decision } from "#core/planner/decision.ts";
import { role } from "#core/principal.ts";
import { fieldError } from "#core/refusal.ts";
import { toolDescriptor } from "#core/registry/descriptor.ts";
import { approval, call, evidence, runView, turnView } from "#core/run/view.ts";
import type { Access, RouteEntry } from "./noun.ts";
import { PROBLEMS } from "./problem.ts";
import { createRun } from "./wire/create-run.ts";

type Io = "input" | "output";

const names = z.registry<{ id: string }>();
for (const [id, schema] of Object.entries({
	Run: runView,
	CreateRun: createRun,
	Call: call,
	Approval: approval,
	Evidence: evidence,
	Turn: turnView,
	Decision: decision,
	ToolDescriptor: toolDescriptor,
	Role: role,
	FieldError: fieldError,
}))
	names.add(schema, { id });

const problemSchema = z.looseObject({
	type: z.string(),
	title: z.string(),
	status: z.number().int(),
	code: z
		.enum(Object.keys(PROBLEMS) as [string, ...string[]])
		.describe("a frozen literal; runs may answer further ones"),
	detail: z.string(),
	errors: z.array(fieldError).optional().describe("what to mend, field by field"),
	trace_id: z.string(),
	approval_id: z.string().optional().describe("of `already_decided`, as are the members below"),
	decision: z.enum(["approve", "deny"]).optional().describe("the decision that counts"),
	decided_by: z.string().optional().describe("the name of who was first"),
	decided_at: z.string().optional().describe("ISO 8601, UTC"),
});
names.add(problemSchema, { id: "Problem" });

const HEADER_TEXT = {
	"belay-run-id": "the run to go on with; every answer names its run in a header of this name",
	"Idempotency-Key": "a repeated request with the same key makes nothing new and answers like the first",
	Prefer: "`wait=n`: wait at most n seconds (60 at most) until the run rests",
	"Last-Event-ID": "resume the stream after this event",
} as const;

export function openApi(routes: readonly RouteEntry[]): JsonObject {
	const schemas: Record<string, unknown> = {};
	const paths: Record<string, Record<string, unknown>> = {};
	const problemAnswer = {
		description: "a problem (RFC 9457)",
		content: { "application/problem+json": { schema: convert(problemSchema, "output", schemas) } },
	};
	for (const route of routes) {
		const path = route.path.replaceAll(/:([a-z_]+)/g, "{$1}");
		paths[path] ??= {};
		paths[path][route.method.toLowerCase()] = operation(route, schemas, problemAnswer);
	}
	return {
		openapi: "3.1.0",
		info: {
			title: "Belay",
			version: "1",
			description:
				"A tool harness for AI agents: a model proposes; Belay decides, asks, executes and hands back evidence.",
			license: { name: "Apache-2.0", identifier: "Apache-2.0" },
		},
		servers: [{ url: "/" }],
		security: [{ key: [] }],
		tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
		paths: paths as JsonObject,
		components: {
			schemas: schemas as JsonObject,
			securitySchemes: {
				key: { type: "http", scheme: "bearer", description: "an API key, `belay_<environment>_<random>`" },
			},
		},
	};
}

function operation(route: RouteEntry, schemas: Record<string, unknown>, problemAnswer: object): object {
	const body = route.documented_form ?? route.documented_body ?? route.body;
	const bodyType = route.documented_form === undefined ? "application/json" : "application/x-www-form-urlencoded";
	return {
		operationId: operationId(route),
		tags: [route.tag],
		summary: route.summary,
		...(route.access.who === "public" ? { security: [] } : { description: accessText(route.access) }),
		parameters: parameters(route, schemas),
		...(body === undefined
			? {}
			: {
					requestBody: {
						required: route.body_optional !== true,
						content: { [bodyType]: { schema: convert(body, "input", schemas) } },
					},
				}),
		responses: {
			...Object.fromEntries(
				Object.entries(route.answers).map(([status, answer]) => [status, answerOf(answer, schemas)]),
			),
			default: route.failure === undefined ? problemAnswer : failureOf(route.failure, schemas),
		},
	};
}

function answerOf(answer: z.ZodType | string | null, schemas: Record<string, unknown>): object {
	if (answer === null) return { description: "no content" };
	if (typeof answer === "string")
		return { description: "as the media type says", content: { [answer]: { schema: { type: "string" } } } };
	return { description: "done", content: { "application/json": { schema: convert(answer, "output", schemas) } } };
}

function failureOf(failure: z.ZodType | string, schemas: Record<string, unknown>): object {
	const answer = answerOf(failure, schemas);
	return { ...answer, description: typeof failure === "string" ? "a page that says what is wrong" : "an error" };
}

function parameters(route: RouteEntry, schemas: Record<string, unknown>): object[] {
	const path = [...route.path.matchAll(/:([a-z_]+)/g)].map(([, name]) => ({
		name,
		in: "path",
		required: true,
		schema: { type: "string" },
	}));
	const query =
		route.query === undefined
			? { properties: {}, required: [] }
			: (convert(route.query, "input", schemas) as { properties?: object; required?: string[] });
	const asked = Object.entries(query.properties ?? {}).map(([name, schema]) => ({
		name,
		in: "query",
		required: query.required?.includes(name) ?? false,
		schema,
	}));
	const headers = (route.headers ?? []).map((name) => ({
		name,
		in: "header",
		required: false,
		description: HEADER_TEXT[name],
		schema: { type: "string" },
	}));
	return [...path, ...asked, ...headers];
}

/** `GET /v1/runs/:run_id/exposure` -> `get_runs_run_id_exposure`. */
function operationId({ method, path }: RouteEntry): string {
	return [method.toLowerCase(), ...path.split("/").filter((part) => part !== "" && part !== "v1")]
		.join("_")
		.replaceAll(/[^a-z0-9]+/g, "_");
}

/** Who may call a route, in words. */
export function accessText(access: Access): string {
	const parts = [
		access.who === "public" ? "public" : "any key",
		...(access.permission === undefined ? [] : [`permission \`${access.permission}\``]),
		...(access.people ? ["people only"] : []),
		...(access.administrative ? ["never an agent"] : []),
	];
	return parts.join("; ");
}

/** One schema; named parts of it go to `schemas`. A part that differs between asking and answering gets two names. */
function convert(schema: z.ZodType, io: Io, schemas: Record<string, unknown>): unknown {
	const made = z.toJSONSchema(schema, {
		io,
		metadata: names,
		unrepresentable: "any",
		override: ({ zodSchema, jsonSchema }) => {
			const said = z.globalRegistry.get(zodSchema) ?? {};
			if (zodSchema._zod.def.type === "custom") Object.assign(jsonSchema, said);
			// `metadata` names the registry of names: what `.describe()` says is in the global one.
			else if (said.description !== undefined) jsonSchema.description = said.description;
		},
	});
	const suffix = io === "input" ? "Input" : "";
	const text = JSON.stringify(made).replaceAll(
		/"#\/\$defs\/([A-Za-z]+)"/g,
		(_all, name: string) => `"#/components/schemas/${name}${suffix}"`,
	);
	const {
		$schema: _dialect,
		$defs = {},
		id: _id,
		...rest
	} = JSON.parse(text) as Record<string, unknown> & { $defs?: Record<string, Record<string, unknown>> };
	for (const [name, part] of Object.entries($defs)) {
		const { id: _partId, ...plain } = part;
		schemas[`${name}${suffix}`] = plain;
	}
	const own = names.get(schema)?.id;
	if (own === undefined) return rest;
	schemas[`${own}${suffix}`] ??= rest;
	return { $ref: `#/components/schemas/${own}${suffix}` };
}
