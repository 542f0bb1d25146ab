/** The published contract: every route is in it, every reference leads somewhere, and the frozen codes stay as they are. */
import { describe, expect, it } from "vitest";
import { app, routes } from "../../workers/api/app.ts";
import { PROBLEMS } from "../../workers/api/problem.ts";
import { call, pluck, send } from "../support/client.ts";

describe("openapi.json", () => {
	it("is OpenAPI 3.1 with every route, once", async () => {
		const { status, body } = await call("GET", "/openapi.json");
		expect(status).toBe(200);
		expect(body.openapi).toBe("3.1.0");
		const described = Object.entries(body.paths).flatMap(([path, methods]) =>
			Object.keys(methods as object).map((method) => `${method.toUpperCase()} ${path}`),
		);
		const declared = routes.map(({ method, path }) => `${method} ${path.replaceAll(/:([a-z_]+)/g, "{$1}")}`);
		expect(described.sort()).toEqual(declared.sort());
		const ids = Object.values(body.paths).flatMap((methods) => pluck(Object.values(methods as object), "operationId"));
		expect(new Set(ids).size).toBe(ids.length);
	});

	it("the router serves nothing that the table does not declare", () => {
		const served = app.routes.filter(({ method }) => method !== "ALL").map(({ method, path }) => `${method} ${path}`);
		expect(served.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort());
	});

	it("names the header by which a chat goes on with a run", async () => {
		const { body } = await call("GET", "/openapi.json");
		const { parameters } = body.paths["/v1/chat/completions"].post;
		expect(parameters).toContainEqual(expect.objectContaining({ name: "belay-run-id", in: "header", required: false }));
	});

	it("describes errors as they are: pages for people, OpenAI's for chat clients, and who was first", async () => {
		const { body } = await call("GET", "/openapi.json");
		const link = body.paths["/a/{token}"];
		for (const method of ["get", "post"]) {
			const page = await call(method.toUpperCase(), "/a/nothing");
			const [type = ""] = (page.headers.get("content-type") ?? "").split(";");
			expect(Object.keys(link[method].responses.default.content)).toEqual([type]);
		}
		const form = link.post.requestBody.content["application/x-www-form-urlencoded"].schema;
		expect(form.required).toEqual(["csrf", "decision"]);
		const chat = body.paths["/v1/chat/completions"].post.responses.default.content["application/json"].schema;
		const failed = await call("POST", "/v1/chat/completions", {});
		expect(Object.keys(failed.body.error).sort()).toEqual([...chat.properties.error.required].sort());
		const { Problem } = body.components.schemas;
		expect(Problem.additionalProperties).not.toBe(false);
		expect(Object.keys(Problem.properties)).toEqual(
			expect.arrayContaining(["approval_id", "decision", "decided_by", "decided_at"]),
		);
		const key = body.paths["/v1/keys"].post.requestBody.content["application/json"].schema.properties;
		expect(key.name.description).toContain("new principal");
	});

	it("has no reference that leads nowhere, and no path parameter undeclared", async () => {
		const { body, text } = await call("GET", "/openapi.json");
		const references = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, target]) => target ?? "");
		expect(references.length).toBeGreaterThan(30);
		for (const reference of references) {
			const found = reference
				.slice(2)
				.split("/")
				.reduce((at: Record<string, never> | undefined, part) => at?.[part], body);
			expect(found, reference).toBeDefined();
		}
		expect(text).not.toContain("$defs");
		for (const [path, methods] of Object.entries(body.paths)) {
			const inPath = [...path.matchAll(/{([^}]+)}/g)].map(([, name]) => name);
			for (const one of Object.values(methods as object)) {
				const declared = pluck(
					(one.parameters as { in: string }[]).filter((parameter) => parameter.in === "path"),
					"name",
				);
				expect(declared).toEqual(inPath);
				expect(Object.keys(one.responses)).toContain("default");
			}
		}
	});

	it("describes shapes, not just names", async () => {
		const { body } = await call("GET", "/openapi.json");
		const { schemas } = body.components;
		expect(schemas.Run.properties.status.enum).toContain("awaiting_approval");
		expect(schemas.CreateRunInput.required).toEqual(["goal"]);
		expect(schemas.CreateRunInput.properties.metadata.type).toBe("object");
		expect(schemas.ToolDescriptorInput.required).toEqual([
			"tool_id",
			"name",
			"version",
			"description",
			"category",
			"input_schema",
			"implementation",
		]);
		expect(body.paths["/v1/runs"].post.requestBody.content["application/json"].schema).toEqual({
			$ref: "#/components/schemas/CreateRunInput",
		});
		expect(body.paths["/healthz"].get.security).toEqual([]);
		expect(pluck(body.paths["/v1/runs"].get.parameters, "name")).toEqual(["cursor", "limit", "status"]);
	});
});

describe("what else is public", () => {
	it("/docs explains every route and every problem, without scripts or anything from elsewhere", async () => {
		const { status, text, headers } = await call("GET", "/docs");
		expect(status).toBe(200);
		expect(headers.get("content-type")).toContain("text/html");
		for (const { path } of routes) expect(text).toContain(`<code>${path}</code>`);
		for (const code of Object.keys(PROBLEMS)) expect(text).toContain(`id="problem-${code}"`);
		expect(text).not.toMatch(/<script|src=|@import|url\(/);
		expect(text).not.toContain("`");
	});

	it("/ leads to /docs", async () => {
		const { status, headers } = await send(new Request("https://belay.test/", { redirect: "manual" }));
		expect([status, headers.get("location")]).toEqual([302, "/docs"]);
		const other = await call("POST", "/", {});
		expect([other.status, other.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
	});

	it("/healthz answers", async () => {
		expect((await call("GET", "/healthz")).body).toEqual({ status: "ok" });
	});

	it("/.well-known/jwks.json has an Ed25519 key per tenant and no private part, whether or not the tenant exists", async () => {
		const { body } = await call("GET", "/.well-known/jwks.json?tenant_id=tenant_dev");
		expect(body.keys).toHaveLength(1);
		expect(body.keys[0]).toMatchObject({ kty: "OKP", crv: "Ed25519", use: "sig", alg: "EdDSA" });
		expect(body.keys[0].d).toBeUndefined();
		const nobody = await call("GET", "/.well-known/jwks.json?tenant_id=nobody");
		expect(nobody.status).toBe(200);
		expect(nobody.body.keys[0].x).not.toBe(body.keys[0].x);
	});
});

describe("frozen literals", () => {
	it("problem codes and their statuses", () => {
		expect(Object.entries(PROBLEMS).map(([code, [status]]) => `${status} ${code}`)).toEqual([
			"400 malformed_body",
			"401 unauthorized",
			"403 forbidden",
			"403 csrf_failed",
			"404 not_found",
			"405 method_not_allowed",
			"409 session_taken",
			"409 idempotency_conflict",
			"409 turn_open",
			"409 not_external",
			"409 not_awaiting_decision",
			"409 not_replayable",
			"409 not_suspended",
			"409 run_finished",
			"409 too_many_messages",
			"409 call_started",
			"409 outcome_known",
			"409 approval_mismatch",
			"409 approval_superseded",
			"409 already_decided",
			"409 caller_call_closed",
			"409 version_conflict",
			"409 incompatible_change",
			"409 in_use",
			"410 approval_expired",
			"410 link_used",
			"410 link_expired",
			"413 body_too_large",
			"415 unsupported_media_type",
			"422 invalid_request",
			"422 empty_decision",
			"422 caller_tools_unsupported",
			"422 caller_tool_collision",
			"422 caller_calls_unanswered",
			"422 unknown_tool_call",
			"429 rate_limited",
			"500 internal",
			"503 run_unavailable",
			"503 store_unavailable",
			"503 control_unavailable",
			"503 planner_unavailable",
			"503 delivery_failed",
		]);
	});
});
