/**
 * The freeze (N2, decision 26): one hash over everything that makes this invocation this one. Same tool, definition,
 * arguments and surroundings, same hash; anything else, another. Run and call ids are bound beside it, not in it. Keys may
 * come in any order and numbers in any spelling; text is taken as it is, without Unicode normalization.
 */
import { canonicalJson, type Digest, type JsonObject } from "../json.ts";
import type { ToolDescriptor } from "../registry/descriptor.ts";

export const PREIMAGE_VERSION = 1;

export type FrozenContext = {
	readonly cwd: string | null;
	readonly env: JsonObject | null;
	/** The declared base time-out, ms; growth within the declared retry policy is the same invocation. */
	readonly timeout_ms: number;
	readonly target: string | null;
	readonly egress: readonly string[] | null;
	readonly credential_version: number | null;
};
export type FreezeInput = {
	/** Per tenant and secret: without it a reader of masked evidence could try phone numbers against the hash. */
	readonly tenant_salt: string;
	readonly descriptor: Pick<ToolDescriptor, "tool_id" | "version">;
	readonly definition_hash: string;
	/** As normalize gave them, defaults included. */
	readonly arguments: JsonObject;
	readonly context: FrozenContext;
};

export function freeze(
	input: FreezeInput,
	digest: Digest,
): { readonly input_hash: string; readonly preimage_version: 1 } {
	const { context } = input;
	const preimage = {
		v: PREIMAGE_VERSION,
		tenant_salt: input.tenant_salt,
		tool_id: input.descriptor.tool_id,
		tool_version: input.descriptor.version,
		definition_hash: input.definition_hash,
		arguments: input.arguments,
		// member by member: a context with an additional member must not change every hash
		context: {
			cwd: context.cwd,
			env: context.env,
			timeout_ms: context.timeout_ms,
			target: context.target,
			egress: context.egress,
			credential_version: context.credential_version,
		},
	};
	return { input_hash: digest(canonicalJson(preimage)), preimage_version: PREIMAGE_VERSION };
}
