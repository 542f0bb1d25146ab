/**
 * Registers a tool: core judges the descriptor and whether it may follow the versions that exist; the kind's own rules are
 * judged here because they need what only the shell knows (the URL parser, this deployment's hosts). All errors at once.
 */
import { D1ToolCatalog, type Published } from "#adapters/d1/d1-tool-catalog.ts";
import { sha256 } from "#adapters/digest.ts";
import { parseUrl } from "#adapters/http/url.ts";
import type { ExecutorApi } from "#adapters/wasm/executor-api.ts";
import { compileSemanticCheck } from "#adapters/wasm/semantic-checker.ts";
import { checkFixedSql } from "#core/data/fixed-sql.ts";
import type { JsonObject } from "#core/json.ts";
import { checkHttpImplementation } from "#core/normalize/url-rules.ts";
import type { FieldError } from "#core/refusal.ts";
import type { ToolDescriptor } from "#core/registry/descriptor.ts";
import { fault } from "#core/registry/read-issue.ts";
import { checkDescriptor, judgePublish } from "#core/registry/register.ts";
import { registrationRules } from "../address-rules.ts";
import { audited } from "../administer.ts";
import { bump } from "../control.ts";
import type { Ctx } from "../noun.ts";
import { invalid, invalidField, problem } from "../problem.ts";

export type PublishedTool = Published & { readonly warnings: readonly string[] };

/** Throws 422 with every error, 409 `version_conflict` or `incompatible_change`. */
export async function publishTool(c: Ctx, tool_id: string, body: JsonObject): Promise<PublishedTool> {
	const { tenant_id } = c.get("caller");
	const checked = checkDescriptor(body, sha256);
	if (!checked.ok) throw invalid(checked.errors);
	const { descriptor, definition_hash, warnings } = checked;
	if (descriptor.tool_id !== tool_id) {
		throw invalidField("/tool_id", "schema_violation", "`tool_id` differs from the path's", "the path's tool_id");
	}
	const errors = [...kindErrors(c, descriptor), ...(await checkErrors(c, descriptor))];
	if (errors.length > 0) throw invalid(errors);
	const about = { tool_id, version: descriptor.version, definition_hash };
	return audited(c, { action: "tool.publish", tool_id, about }, async () => {
		const catalog = new D1ToolCatalog(c.env.DB);
		const verdict = judgePublish(await catalog.versions(tenant_id, tool_id), { descriptor, definition_hash });
		if ("message" in verdict) throw problem(verdict.outcome, verdict.message);
		const [published] = await catalog.publish(tenant_id, [
			{ definition_hash, descriptor, created_at: new Date().toISOString() },
		]);
		if (published === undefined || published.outcome === "conflict") {
			// somebody else published this version with other content in the meantime
			throw problem(
				"version_conflict",
				`version \`${descriptor.version}\` exists with other content, publish the change as a new version`,
			);
		}
		await bump(c.env, tenant_id, "registry");
		return { ...published, warnings };
	});
}

/** V2: a check that does not compile would refuse every call. */
async function checkErrors(c: Ctx, { semantic_check }: ToolDescriptor): Promise<FieldError[]> {
	if (semantic_check === undefined) return [];
	const { Executor } = (c.executionCtx as unknown as { readonly exports: { readonly Executor: ExecutorApi } }).exports;
	const found = await compileSemanticCheck(Executor, semantic_check.source);
	if (found === null) return [];
	return [
		fault(
			"/semantic_check/source",
			`does not compile: ${found}`,
			"a JavaScript program that returns a list",
			"schema_violation",
		),
	];
}

function kindErrors(c: Ctx, descriptor: ToolDescriptor): FieldError[] {
	const { implementation, input_schema } = descriptor;
	switch (implementation.kind) {
		case "http":
			return checkHttpImplementation(
				implementation,
				{ rules: registrationRules(c), parseUrl },
				input_schema as JsonObject,
			);
		case "sql":
			return checkFixedSql(implementation.sql, input_schema as JsonObject);
		default:
			return [];
	}
}
