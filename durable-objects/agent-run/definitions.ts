/**
 * Compiled tools by content: schema validators and expressions are made once per definition and isolate (V1), whoever
 * asks. Definitions are content-addressed, so sharing between tenants gives nothing away.
 */
import { invariant } from "#core/invariant.ts";
import { type CompiledTool, compileTool } from "#core/registry/compile.ts";
import type { ToolVersion } from "#core/registry/descriptor.ts";
import type { RunStore } from "./store.ts";

const KEPT_MAX = 2_000;
const compiled = new Map<string, CompiledTool>();
const offered = new Map<string, ToolVersion>();

/** Definitions that a step may expose before they are stored with the run. */
export function offer(tools: readonly ToolVersion[]): void {
	if (offered.size > KEPT_MAX) offered.clear();
	for (const version of tools) offered.set(version.definition_hash, version);
}

export function definition(store: RunStore, definition_hash: string): CompiledTool {
	const found = compiled.get(definition_hash);
	if (found !== undefined) return found;
	const version = offered.get(definition_hash) ?? store.definition(definition_hash);
	invariant(version !== undefined, "a run knows every definition that it exposed");
	const tool = compileTool(version);
	if (compiled.size > KEPT_MAX) compiled.clear();
	compiled.set(definition_hash, tool);
	return tool;
}
